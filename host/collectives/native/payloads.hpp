// Where vectors lie as they were sent, each on lines of its own behind room for a port to write
// what goes before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "port.hpp"

namespace catchment::host {

class Payloads {
 public:
  Payloads(std::size_t count, std::size_t bytes)
      : bytes_(bytes),
        stride_(Port::kFront + (bytes + kLine - 1) / kLine * kLine),
        memory_(std::make_unique<std::uint8_t[]>(count * stride_ + kLine)) {
    const auto place = reinterpret_cast<std::uintptr_t>(memory_.get()) + Port::kFront;
    first_ = memory_.get() + Port::kFront + (kLine - place % kLine) % kLine;
  }

  std::span<std::uint8_t> operator[](std::size_t place) const {
    return {first_ + place * stride_, bytes_};
  }

 private:
  static constexpr std::size_t kLine = 64;

  std::size_t bytes_;
  std::size_t stride_;
  std::unique_ptr<std::uint8_t[]> memory_;
  std::uint8_t* first_ = nullptr;
};

}  // namespace catchment::host
