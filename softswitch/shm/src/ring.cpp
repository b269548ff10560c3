#include "catchment/shm/ring.hpp"

namespace catchment::shm {

std::string Fault::text() const {
  switch (kind) {
    case Kind::none:
      return "no fault";
    case Kind::written:
      return "its write index " + std::to_string(value) + " is not within " + std::to_string(most) +
             " cells after frame " + std::to_string(position);
    case Kind::read:
      return "its read index " + std::to_string(value) + " goes back, or beyond frame " +
             std::to_string(position);
    case Kind::length:
      return "frame " + std::to_string(position) + " claims " + std::to_string(value) +
             " bytes; 1 to " + std::to_string(most) + " are possible";
  }
  return {};
}

}  // namespace catchment::shm
