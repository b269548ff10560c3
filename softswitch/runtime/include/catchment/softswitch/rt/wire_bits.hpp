// Numbers on the wire: big-endian bit fields at any bit offset.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "catchment/common/cache_line.hpp"
#include "catchment/common/stream_line.hpp"
#include "catchment/softswitch/rt/bits.hpp"

namespace catchment::softswitch::rt {

template <class T>
inline T load_be(const std::uint8_t* p) {
  T v;
  std::memcpy(&v, p, sizeof v);
  if constexpr (sizeof(T) == 2) {
    v = static_cast<T>(__builtin_bswap16(v));
  } else if constexpr (sizeof(T) == 4) {
    v = static_cast<T>(__builtin_bswap32(v));
  } else if constexpr (sizeof(T) == 8) {
    v = static_cast<T>(__builtin_bswap64(v));
  }
  return v;
}

template <class T>
inline void store_be(std::uint8_t* p, T v) {
  if constexpr (sizeof(T) == 2) {
    v = static_cast<T>(__builtin_bswap16(v));
  } else if constexpr (sizeof(T) == 4) {
    v = static_cast<T>(__builtin_bswap32(v));
  } else if constexpr (sizeof(T) == 8) {
    v = static_cast<T>(__builtin_bswap64(v));
  }
  std::memcpy(p, &v, sizeof v);
}

/// A run of whole bytes that fields are put into as numbers of 64 bits, first bytes most
/// significant: memory is written number by number, and not read. (Behind many small stores a
/// larger load would wait until all stores before it are done.)
template <std::size_t Bytes>
class FieldWords {
 public:
  /// Writes W bits where zeros are, `offset` bits after the first.
  template <unsigned W>
  [[gnu::always_inline]] void put(std::size_t offset, const bits<W>& value) {
    for (std::size_t i = 0; i < (W + 63) / 64; ++i) {
      const unsigned width = W - 64 * i < 64 ? static_cast<unsigned>(W - 64 * i) : 64;
      place(offset + W - 64 * i - width, width, limb_of(value, i));
    }
  }
  /// The same for `width` bits, 1 to 64.
  [[gnu::always_inline]] void place(std::size_t offset, unsigned width, std::uint64_t value) {
    const unsigned end = static_cast<unsigned>(offset % 64) + width;
    std::uint64_t* const word = &words_[offset / 64];
    if (end <= 64) {
      word[0] |= value << (64 - end);
    } else {
      word[0] |= value >> (end - 64);
      word[1] |= value << (128 - end);
    }
  }
  void store(std::uint8_t* p) const {
    constexpr std::size_t kWhole = Bytes / 8;
    for (std::size_t i = 0; i < kWhole; ++i) {
      store_be(p + 8 * i, words_[i]);
    }
    p += 8 * kWhole;
    if constexpr ((Bytes & 4U) != 0) {
      store_be(p, static_cast<std::uint32_t>(words_[kWhole] >> 32));
    }
    if constexpr ((Bytes & 2U) != 0) {
      store_be(p + (Bytes & 4U),
               static_cast<std::uint16_t>(words_[kWhole] >> (48 - 8 * (Bytes & 4U))));
    }
    if constexpr ((Bytes & 1U) != 0) {
      store_be(p + (Bytes & 6U),
               static_cast<std::uint8_t>(words_[kWhole] >> (56 - 8 * (Bytes & 6U))));
    }
  }

 private:
  std::array<std::uint64_t, (Bytes + 7) / 8> words_{};
};

/// Loads a run of numbers, one after the other.
template <class T, std::size_t N>
inline void load_run(T (&to)[N], const std::uint8_t* p) {
  for (std::size_t i = 0; i < N; ++i) {
    to[i] = load_be<T>(p + sizeof(T) * i);
  }
}

/// Stores a run of N numbers that lie in cells, one after the other; `streams`: whole lines go past
/// the caches, where the run lies on the beginnings of lines.
template <class T, std::size_t N>
inline void store_cells(std::uint8_t* p, const std::uint8_t* cells, bool streams) {
  const auto number = [cells](std::size_t i) {
    T value{};
    std::memcpy(&value, cells + sizeof(T) * i, sizeof(T));
    return value;
  };
  constexpr std::size_t kInLine = kCacheLine / sizeof(T);
  std::size_t done = 0;
  if constexpr (kStreamsLines && N >= 4 * kInLine) {
    if (streams && reinterpret_cast<std::uintptr_t>(p) % kCacheLine == 0) {
      for (; done + kInLine <= N; done += kInLine) {
        alignas(kCacheLine) std::uint8_t line[kCacheLine];
        for (std::size_t i = 0; i < kInLine; ++i) {
          store_be<T>(line + sizeof(T) * i, number(done + i));
        }
        stream_line(p + sizeof(T) * done, line);
      }
    }
  }
  for (std::size_t i = done; i < N; ++i) {
    store_be<T>(p + sizeof(T) * i, number(i));
  }
}

/// The same of a run that lies in an array.
template <class T, std::size_t N>
inline void store_run(std::uint8_t* p, const T (&from)[N], bool streams) {
  store_cells<T, N>(p, reinterpret_cast<const std::uint8_t*>(from), streams);
}

/// The W bits that begin `offset` bits after `p`, most significant first.
template <unsigned W>
inline bits<W> load_bits(const std::uint8_t* p, std::size_t offset) {
  p += offset / 8;
  const unsigned skip = static_cast<unsigned>(offset % 8);
  if constexpr (W == 8 || W == 16 || W == 32 || W == 64) {
    if (skip == 0) {
      return load_be<bits<W>>(p);
    }
  }
  if constexpr (W <= 120) {
    using Acc = std::conditional_t<W <= 56, std::uint64_t, u128>;
    Acc acc = 0;
    const unsigned bytes = (skip + W + 7) / 8;
    for (unsigned i = 0; i < bytes; ++i) {
      acc = static_cast<Acc>((acc << 8) | p[i]);
    }
    return mask<W>(acc >> (8 * bytes - skip - W));
  } else {
    // Limb by limb from the least significant end.
    std::array<std::uint64_t, (W + 63) / 64> limbs{};
    for (std::size_t i = 0; i < limbs.size(); ++i) {
      const std::size_t high = W - 64 * i;  // bits of the field down to this limb's end
      const std::size_t take = high < 64 ? high : 64;
      const std::size_t start = skip + high - take;
      u128 acc = 0;
      const std::size_t first = start / 8;
      const std::size_t last = (start + take + 7) / 8;
      for (std::size_t b = first; b < last; ++b) {
        acc = (acc << 8) | p[b];
      }
      acc >>= 8 * last - start - take;
      limbs[i] = take == 64 ? static_cast<std::uint64_t>(acc)
                            : static_cast<std::uint64_t>(acc) & ((std::uint64_t{1} << take) - 1);
    }
    return from_limbs<W>(limbs);
  }
}

/// Writes up to 64 bits, leaving the neighbours in the first and last byte as they are.
inline void store_bits64(std::uint8_t* p, std::size_t offset, unsigned width, std::uint64_t value) {
  p += offset / 8;
  const unsigned skip = static_cast<unsigned>(offset % 8);
  const unsigned bytes = (skip + width + 7) / 8;
  const unsigned below = 8 * bytes - skip - width;
  const std::uint64_t ones = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  u128 field = static_cast<u128>(value & ones) << below;
  u128 hole = static_cast<u128>(ones) << below;
  for (unsigned i = bytes; i-- > 0;) {
    p[i] = static_cast<std::uint8_t>((p[i] & ~static_cast<std::uint8_t>(hole)) |
                                     static_cast<std::uint8_t>(field));
    field >>= 8;
    hole >>= 8;
  }
}

/// Writes the W bits of `value` at `offset` bits after `p`, leaving the neighbouring bits as they
/// are.
template <unsigned W>
inline void store_bits(std::uint8_t* p, std::size_t offset, const bits<W>& value) {
  if constexpr (W == 8 || W == 16 || W == 32 || W == 64) {
    if (offset % 8 == 0) {
      store_be<bits<W>>(p + offset / 8, value);
      return;
    }
  }
  constexpr std::size_t limbs = (W + 63) / 64;
  for (std::size_t i = 0; i < limbs; ++i) {
    const std::size_t high = W - 64 * i;
    const std::size_t take = high < 64 ? high : 64;
    store_bits64(p, offset + high - take, static_cast<unsigned>(take), limb_of(value, i));
  }
}

}  // namespace catchment::softswitch::rt
