// product_column behind one C function: random bytes in, a sum a clock out.
#include <cstdint>
#include <cstring>
#include <memory>

#include "rtl/harness/top.hpp"

extern "C" void run_column(const std::uint8_t* in, std::uint64_t clocks, std::uint64_t* sums) {
  const auto top = std::make_unique<Top>();
  constexpr unsigned kBytes = 64;  // of a clock's numbers
  constexpr unsigned kScaleBits = 8 * 20, kFeatureBits = 8 * 16, kBaseBits = 48;
  // Takes the next bits of a clock's bytes for a port; Verilator keeps those beyond its width zero.
  const auto fill = [](auto& port, const std::uint8_t* from, unsigned bits) {
    std::memset(&port, 0, sizeof port);
    std::memcpy(&port, from, (bits + 7) / 8);
    reinterpret_cast<std::uint8_t*>(&port)[(bits - 1) / 8] &=
        static_cast<std::uint8_t>(0xff >> (7 - (bits - 1) % 8));
  };
  for (std::uint64_t i = 0; i < clocks; ++i) {
    const std::uint8_t* at = in + i * kBytes;
    fill(top->scales, at, kScaleBits);
    fill(top->features, at + 24, kFeatureBits);
    fill(top->base, at + 40, kBaseBits);
    top->with_base = at[48] & 1;
    top->clk = 0;
    top->eval();
    top->clk = 1;
    top->eval();
    sums[i] = top->sum;
  }
}
