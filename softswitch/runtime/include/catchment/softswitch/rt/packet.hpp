// packet_in and packet_out, header stacks and varbits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "catchment/softswitch/rt/wire_bits.hpp"

namespace catchment::softswitch::rt {

/// The bytes that are not parsed yet.
struct PacketReader {
  const std::uint8_t* begin = nullptr;
  const std::uint8_t* at = nullptr;
  const std::uint8_t* end = nullptr;

  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end - at); }
  [[nodiscard]] std::uint32_t length() const { return static_cast<std::uint32_t>(end - begin); }
};

/// The deparser's buffer. Headers that do not fit set `overflow` and are left out.
struct PacketWriter {
  std::uint8_t* at = nullptr;
  std::uint8_t* end = nullptr;
  bool streams = false;  // whole lines are stored past the caches
  bool overflow = false;

  /// Room for the next `bytes`, or nullptr.
  std::uint8_t* take(std::size_t bytes) {
    if (static_cast<std::size_t>(end - at) < bytes) {
      overflow = true;
      return nullptr;
    }
    std::uint8_t* p = at;
    at += bytes;
    return p;
  }
};

/// varbit<Max>: the first `width` bits of `data`; bits after them are zero.
template <unsigned Max>
struct Varbit {
  std::uint32_t width = 0;
  std::array<std::uint8_t, (Max + 7) / 8> data{};

  friend bool operator==(const Varbit&, const Varbit&) = default;

  void load(const std::uint8_t* p, std::size_t offset, std::uint32_t bits_taken) {
    width = bits_taken;
    data.fill(0);
    if (offset % 8 == 0) {
      std::memcpy(data.data(), p + offset / 8, (bits_taken + 7) / 8);
      if (bits_taken % 8 != 0) {
        data[bits_taken / 8] &= static_cast<std::uint8_t>(0xFF00U >> (bits_taken % 8));
      }
      return;
    }
    for (std::uint32_t i = 0; i < bits_taken; ++i) {
      const std::size_t from = offset + i;
      const unsigned bit = (p[from / 8] >> (7 - from % 8)) & 1U;
      data[i / 8] |= static_cast<std::uint8_t>(bit << (7 - i % 8));
    }
  }
  void store(std::uint8_t* p, std::size_t offset) const {
    if (offset % 8 == 0 && width % 8 == 0) {
      std::memcpy(p + offset / 8, data.data(), width / 8);
      return;
    }
    for (std::uint32_t i = 0; i < width; ++i) {
      store_bits64(p, offset + i, 1, (data[i / 8] >> (7 - i % 8)) & 1U);
    }
  }
};

/// H[N]. `next` is nextIndex.
template <class H, std::uint32_t N>
struct Stack {
  std::array<H, N> e{};
  std::uint32_t next = 0;

  /// Compares the elements; nextIndex does not count.
  friend bool operator==(const Stack& a, const Stack& b) { return a.e == b.e; }

  void push_front(std::uint32_t count) {
    for (std::uint32_t i = N; i-- > 0;) {
      e[i] = i >= count ? e[i - count] : H{};
    }
    next = next + count < N ? next + count : N;
  }
  void pop_front(std::uint32_t count) {
    for (std::uint32_t i = 0; i < N; ++i) {
      e[i] = count < N - i ? e[i + count] : H{};
    }
    next = next > count ? next - count : 0;
  }
};

/// An element by a run-time index; outside the stack: a header that reads as invalid and forgets
/// what is written.
template <class H, std::uint32_t N>
inline H& element(Stack<H, N>& stack, std::uint64_t index, H& nowhere) {
  if (index < N) {
    return stack.e[index];
  }
  nowhere = H{};
  return nowhere;
}

}  // namespace catchment::softswitch::rt
