// Where vectors lie as they were sent, each on lines of its own behind its header, and that behind
// room for what a port writes before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "catchment/common/cache_line.hpp"
#include "port.hpp"
#include "wire.hpp"

namespace catchment::host {

class Payloads {
 public:
  Payloads(std::size_t count, std::size_t bytes)
      : bytes_(bytes),
        stride_(kFront + (bytes + kCacheLine - 1) / kCacheLine * kCacheLine),
        memory_(std::make_unique<std::uint8_t[]>(count * stride_ + kCacheLine)) {
    const auto place = reinterpret_cast<std::uintptr_t>(memory_.get()) + kFront;
    first_ = memory_.get() + kFront + (kCacheLine - place % kCacheLine) % kCacheLine;
  }

  std::span<std::uint8_t> operator[](std::size_t place) const {
    return {first_ + place * stride_, bytes_};
  }
  // The same behind its header.
  std::span<std::uint8_t> frame(std::size_t place) const {
    return {first_ + place * stride_ - wire::kHeaderBytes, wire::kHeaderBytes + bytes_};
  }

 private:
  static constexpr std::size_t kFront = Port::kFront + wire::kHeaderBytes;
  static_assert(kFront % kCacheLine == 0);

  std::size_t bytes_;
  std::size_t stride_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::uint8_t* first_ = nullptr;
};

}  // namespace catchment::host
