// Names the place a value stands at, put into words only when an error needs them.
#pragma once

#include <string>
#include <string_view>

namespace catchment::server {

// For example {"table", "ingress.l2", "field", "hdr.ethernet.dst"}. Views: must not outlive the
// strings they were made of.
struct Where {
  std::string_view kind;
  std::string_view name;
  std::string_view part_kind = {};
  std::string_view part = {};

  std::string text() const {
    std::string result = std::string(kind) + " '" + std::string(name) + "'";
    if (!part_kind.empty()) {
      result += ", " + std::string(part_kind) + " '" + std::string(part) + "'";
    }
    return result;
  }
};

}  // namespace catchment::server
