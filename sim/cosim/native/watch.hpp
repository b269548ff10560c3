// Something that somebody waits for.
#pragma once

#include "frame.hpp"

namespace catchment::cosim {

struct Watch {
  Picos at = 0;  // when it was seen, 0: not yet
};

}  // namespace catchment::cosim
