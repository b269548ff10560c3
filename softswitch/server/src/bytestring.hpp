// P4Runtime byte strings (specification section "Bytestrings"): big-endian integers of any length
// on the wire, the shortest form on the way out, fixed width inside the switch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "where.hpp"

namespace catchment::server {

// Returns how many bytes hold `width` bits.
constexpr unsigned byte_width(unsigned width) { return (width + 7) / 8; }

// Throws RpcError(UNIMPLEMENTED) when values have no width in P4Info: those of types that are
// translated to strings.
void require_bits(std::int32_t bitwidth, const Where& where);

// Returns the unsigned value as exactly byte_width(width) bytes. `where` names the value in the
// error. Throws RpcError(OUT_OF_RANGE) when the string is empty or the value needs more than
// `width` bits.
std::string to_fixed(std::string_view value, unsigned width, const Where& where);

// Same for a two's complement value of type int<width>: sign-extended to byte_width(width) bytes.
std::string to_fixed_signed(std::string_view value, unsigned width, const Where& where);

// Returns the shortest byte string of an unsigned value (one zero byte for 0).
std::string to_canonical(std::string_view fixed);

// Returns the shortest byte string of a two's complement int<width> that is stored in
// byte_width(width) bytes, whose bits above `width` are ignored.
std::string to_canonical_signed(std::string_view fixed, unsigned width);

// Returns the value of a byte string of at most 8 significant bytes; throws RpcError(OUT_OF_RANGE)
// above `width` bits.
std::uint64_t to_uint64(std::string_view value, unsigned width, const Where& where);

// Returns byte_width(width) bytes with the `ones` most significant of `width` bits set (the mask of
// a prefix).
std::string prefix_mask(unsigned width, unsigned ones);

// Returns byte_width(width) bytes with all `width` bits set.
std::string all_ones(unsigned width);

// Returns the bytes as "0x..." for messages.
std::string to_hex(std::string_view bytes);

}  // namespace catchment::server
