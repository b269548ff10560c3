// float_to_int or int_to_float behind one C function.
#include <memory>

#include "stream_bench.hpp"

extern "C" void convert(const Beat* in, std::uint64_t count, Beat* out, std::uint64_t room,
                        std::uint32_t idle, std::uint32_t stall, std::uint32_t seed,
                        Outcome* outcome) {
  const auto top = std::make_unique<Top>();
  const auto put = [](Top& t, const Beat& beat) {
    std::memcpy(&t.s_axis_tdata, beat.data, sizeof beat.data);
    t.s_axis_tkeep = beat.keep;
    t.s_axis_tlast = beat.last != 0;
    t.s_axis_tuser = static_cast<std::uint32_t>(beat.user);
  };
  const auto take = [](auto& t, Beat& beat) {
    std::memcpy(beat.data, &t.m_axis_tdata, sizeof beat.data);
    beat.keep = t.m_axis_tkeep;
    beat.last = t.m_axis_tlast;
    if constexpr (requires { t.m_axis_tuser; }) beat.user = t.m_axis_tuser;
  };
  *outcome = run_stream(*top, {in, count, out, room, idle, stall, seed}, put, take);
}
