// Where vectors lie as they were sent, each on lines of its own behind room for a port to write
// what goes before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "catchment/common/cache_line.hpp"
#include "port.hpp"

namespace catchment::host {

class Payloads {
 public:
  Payloads(std::size_t count, std::size_t bytes)
      : bytes_(bytes),
        stride_(Port::kFront + (bytes + kCacheLine - 1) / kCacheLine * kCacheLine),
        memory_(std::make_unique<std::uint8_t[]>(count * stride_ + kCacheLine)) {
    const auto place = reinterpret_cast<std::uintptr_t>(memory_.get()) + Port::kFront;
    first_ = memory_.get() + Port::kFront + (kCacheLine - place % kCacheLine) % kCacheLine;
  }

  std::span<std::uint8_t> operator[](std::size_t place) const {
    return {first_ + place * stride_, bytes_};
  }

 private:
  std::size_t bytes_;
  std::size_t stride_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::uint8_t* first_ = nullptr;
};

}  // namespace catchment::host
