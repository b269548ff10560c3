// The kernels behind C functions, for the tests of the RTL.
#include <cstdint>
#include <cstring>

#include "convert.hpp"
#include "convert_lane.hpp"
#include "transport.hpp"

namespace {

using namespace catchment::hls_model;

Format format_of(std::uint32_t dtype, std::int32_t exponent, std::uint32_t headroom) {
  return {dtype, exponent, headroom};
}

Beat read_beat(const std::uint8_t* from, std::size_t bytes, bool last) {
  Beat beat{0, 0, last ? 1 : 0, 0};
  for (std::size_t i = 0; i < bytes; ++i) {
    const int bit = static_cast<int>(i);
    beat.data.range(8 * bit + 7, 8 * bit) = from[i];
    beat.keep[bit] = 1;
  }
  return beat;
}

std::size_t write_beat(const Beat& beat, std::uint8_t* to) {
  std::size_t count = 0;
  for (int i = 0; i < kBeatBytes && beat.keep[i] == 1; ++i, ++count)
    to[i] = static_cast<std::uint8_t>(beat.data.range(8 * i + 7, 8 * i).to_uint());
  return count;
}

template <typename Kernel>
std::size_t run(Kernel kernel, const std::uint8_t* from, std::size_t bytes, const Format& format,
                std::uint8_t* to, std::uint64_t* saturated, std::uint64_t* nonfinite) {
  hls::stream<Beat> in;
  hls::stream<Beat> out;
  for (std::size_t done = 0; done < bytes; done += kBeatBytes) {
    const std::size_t part = bytes - done < kBeatBytes ? bytes - done : kBeatBytes;
    in.write(read_beat(from + done, part, done + part == bytes));
  }
  kernel(in, out, format);
  std::size_t written = 0;
  while (!out.empty()) {
    const Beat beat = out.read();
    written += write_beat(beat, to + written);
    for (int i = 0; i < kLanes; ++i) {
      *saturated += beat.user[kLanes + i] == 1 ? 1 : 0;
      *nonfinite += beat.user[i] == 1 ? 1 : 0;
    }
  }
  return written;
}

}  // namespace

extern "C" {

// A message through the kernel; returns the bytes written.
std::uint64_t hls_float_to_int(const std::uint8_t* from, std::uint64_t bytes, std::uint32_t dtype,
                               std::int32_t exponent, std::uint32_t headroom, std::uint8_t* to,
                               std::uint64_t* saturated, std::uint64_t* nonfinite) {
  return run(float_to_int, from, bytes, format_of(dtype, exponent, headroom), to, saturated,
             nonfinite);
}

std::uint64_t hls_int_to_float(const std::uint8_t* from, std::uint64_t bytes, std::uint32_t dtype,
                               std::int32_t exponent, std::uint32_t headroom, std::uint8_t* to) {
  std::uint64_t none = 0;
  return run(int_to_float, from, bytes, format_of(dtype, exponent, headroom), to, &none, &none);
}

// `count` words (fp16 and bf16 in the low half) through the lane alone: for exhaustive runs.
void hls_quantize_words(const std::uint32_t* words, std::uint64_t count, std::uint32_t dtype,
                        std::int32_t exponent, std::uint32_t headroom, std::int32_t* lanes,
                        std::uint64_t* saturated, std::uint64_t* nonfinite) {
  const Format format = format_of(dtype, exponent, headroom);
  for (std::uint64_t i = 0; i < count; ++i) {
    const Lane lane = quantize_lane(words[i], format);
    lanes[i] = lane.value.to_int();
    *saturated += lane.saturated.to_uint();
    *nonfinite += lane.nonfinite.to_uint();
  }
}

// Events are four words {kind, first, second, third}; answers are seven {sends, again, impossible,
// seq, acked, next, credit}.
void hls_sender(const std::uint32_t* events, std::uint64_t count, std::uint32_t* answers) {
  hls::stream<SenderEvent> in;
  hls::stream<SenderAnswer> out;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t* const e = events + 4 * i;
    in.write({e[0], e[1], e[2], e[3]});
    sender(in, out);
    const SenderAnswer a = out.read();
    const std::uint32_t row[] = {a.sends.to_uint(), a.again.to_uint(), a.impossible.to_uint(),
                                 a.seq.to_uint(),   a.acked.to_uint(), a.next.to_uint(),
                                 a.credit.to_uint()};
    std::memcpy(answers + 7 * i, row, sizeof row);
  }
}

// Events are three words {kind, first, second}; answers are four {verdict, ack, consumed, credit}.
void hls_consumer(const std::uint32_t* events, std::uint64_t count, std::uint32_t* answers) {
  hls::stream<ConsumerEvent> in;
  hls::stream<ConsumerAnswer> out;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint32_t* const e = events + 3 * i;
    in.write({e[0], e[1], e[2]});
    consumer(in, out);
    const ConsumerAnswer a = out.read();
    const std::uint32_t row[] = {a.verdict.to_uint(), a.ack.to_uint(), a.consumed.to_uint(),
                                 a.credit.to_uint()};
    std::memcpy(answers + 4 * i, row, sizeof row);
  }
}
}
