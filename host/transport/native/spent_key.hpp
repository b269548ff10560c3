// Of a request that needs more sequence numbers than the stream's key serves for.
#pragma once

#include <string>

#include "request.hpp"

namespace catchment::host {

inline Failure spent_key(const std::string& stream, const std::string& peer) {
  Failure failure;
  failure.message = "the key of the stream does not serve for so many frames";
  failure.kind = "spent";
  failure.hint = "renew the job (`catchment job renew`; with a controller its members ask for it)";
  failure.stream = stream;
  failure.peer = peer;
  return failure;
}

}  // namespace catchment::host
