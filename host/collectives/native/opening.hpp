#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "catchment_collectives.h"
#include "handles.hpp"

namespace catchment::host {

// What is wrong with the rails as they are given; empty if nothing is.
std::string wrong_with(std::span<const catchment_rail> rails, std::int32_t policy);

// A group over rails with which nothing is wrong. Throws what the port or the memory of one of them
// throws.
std::unique_ptr<catchment_group> open_rails(std::span<const catchment_rail> asked,
                                            std::int32_t policy);

}  // namespace catchment::host
