// The kernels behind C functions, for the tests of the RTL.
#include <cstdint>
#include <cstring>

#include "convert.hpp"
#include "convert_lane.hpp"
#include "transport.hpp"

namespace {

using namespace catchment::hls_model;

// The low bits of `range` are h; bit 3 says that lanes are packed, bit 4 that the workers are 2^h.
Format format_of(std::uint32_t dtype, std::int32_t exponent, std::uint32_t range) {
  return {dtype, exponent, range & 7U, range >> 3 & 1U, range >> 4 & 1U};
}

FormatBeat read_beat(const std::uint8_t* from, std::size_t bytes, std::size_t kept, bool last,
                     const Format& format) {
  FormatBeat beat;
  beat.data = 0;
  beat.keep = 0;
  beat.user = pack(format);
  beat.last = last ? 1 : 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    const int bit = static_cast<int>(i);
    beat.data.range(8 * bit + 7, 8 * bit) = from[i];
    beat.keep[bit] = i < kept ? 1 : 0;
  }
  return beat;
}

template <typename AnyBeat>
std::size_t write_beat(const AnyBeat& beat, std::uint8_t* to) {
  std::size_t count = 0;
  for (int i = 0; i < kBeatBytes && beat.keep[i] == 1; ++i, ++count)
    to[i] = static_cast<std::uint8_t>(beat.data.range(8 * i + 7, 8 * i).to_uint());
  return count;
}

// A message through a kernel, of which `kept` bytes are kept; returns the bytes written, and shows
// each beat of the answer.
template <typename AnyBeat, typename Show>
std::size_t run(void (*kernel)(hls::stream<FormatBeat>&, hls::stream<AnyBeat>&),
                const std::uint8_t* from, std::size_t bytes, std::size_t kept, const Format& format,
                std::uint8_t* to, Show show) {
  hls::stream<FormatBeat> in;
  hls::stream<AnyBeat> out;
  for (std::size_t done = 0; done < bytes; done += kBeatBytes) {
    const std::size_t part = bytes - done < kBeatBytes ? bytes - done : kBeatBytes;
    in.write(read_beat(from + done, part, kept - done, done + part == bytes, format));
  }
  kernel(in, out);
  std::size_t written = 0;
  while (!out.empty()) {
    const AnyBeat beat = out.read();
    written += write_beat(beat, to + written);
    show(beat);
  }
  return written;
}

}  // namespace

extern "C" {

// A message through the kernel; returns the bytes written.
std::uint64_t hls_float_to_int(const std::uint8_t* from, std::uint64_t bytes, std::uint32_t dtype,
                               std::int32_t exponent, std::uint32_t range, std::uint8_t* to,
                               std::uint64_t* saturated, std::uint64_t* nonfinite) {
  return run(float_to_int, from, bytes, bytes, format_of(dtype, exponent, range), to,
             [&](const CutBeat& beat) {
               for (int i = 0; i < 2 * kLanes; ++i) {
                 *saturated += beat.user[2 * kLanes + i] == 1 ? 1 : 0;
                 *nonfinite += beat.user[i] == 1 ? 1 : 0;
               }
             });
}

// Of packed lanes two bytes are kept for each element, which the last lane may lack.
std::uint64_t hls_int_to_float(const std::uint8_t* from, std::uint64_t bytes, std::uint64_t kept,
                               std::uint32_t dtype, std::int32_t exponent, std::uint32_t range,
                               std::uint8_t* to) {
  return run(int_to_float, from, bytes, kept, format_of(dtype, exponent, range), to,
             [](const PlainBeat&) {});
}

// How to convert, as it lies in a kernel's TUSER.
std::uint32_t hls_format(std::uint32_t dtype, std::int32_t exponent, std::uint32_t range) {
  return pack(format_of(dtype, exponent, range)).to_uint();
}

// Bits of TDATA, TKEEP, TUSER and TLAST of the kernels' streams: what both take, what float_to_int
// gives.
void hls_pins(std::uint32_t* bits) {
  const FormatBeat in;
  const CutBeat out;
  const int found[] = {in.data.width,  in.keep.width,  in.user.width,  in.last.width,
                       out.data.width, out.keep.width, out.user.width, out.last.width};
  for (const int width : found) *bits++ = static_cast<std::uint32_t>(width);
}

// `count` words (fp16 and bf16 in the low half) through the lane alone: for exhaustive runs.
void hls_quantize_words(const std::uint32_t* words, std::uint64_t count, std::uint32_t dtype,
                        std::int32_t exponent, std::uint32_t range, std::int32_t* lanes,
                        std::uint64_t* saturated, std::uint64_t* nonfinite) {
  const Format format = format_of(dtype, exponent, range);
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
