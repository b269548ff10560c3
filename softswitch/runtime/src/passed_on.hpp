// A digest as bytes, on its way from a caller to the switch.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "catchment/softswitch/entities.hpp"

namespace catchment::softswitch {

std::string digest_bytes(const DigestMessage& message);
/// nullopt: the bytes are no digest.
std::optional<DigestMessage> digest_in(std::span<const std::uint8_t> bytes);

}  // namespace catchment::softswitch
