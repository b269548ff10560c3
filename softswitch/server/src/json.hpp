// JSON as the switch writes it.
#pragma once

#include <string>

namespace catchment::server {

// Returns the text in quotes, escaped.
std::string json_string(const std::string& text);

}  // namespace catchment::server
