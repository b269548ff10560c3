#include "software_port.hpp"

#include <algorithm>
#include <utility>

namespace catchment::performance {

using wire::PacketType;

namespace {

constexpr std::size_t kBatch = 64;

std::uint32_t read_lane(const std::uint8_t* from) {
  return std::uint32_t{from[0]} << 24U | std::uint32_t{from[1]} << 16U |
         std::uint32_t{from[2]} << 8U | from[3];
}

void write_lane(std::uint32_t value, std::uint8_t* to) {
  for (int byte = 0; byte < 4; ++byte)
    to[byte] = static_cast<std::uint8_t>(value >> (24 - 8 * byte));
}

bool carries_data(PacketType type) {
  return type == PacketType::kPA || type == PacketType::kFA || type == PacketType::kPARAM;
}

}  // namespace

Picos SoftwarePort::writable_at() const {
  const world::Line& line = fabric_.line(out_.line);
  return line.free_at() - static_cast<Picos>(ring_bytes_ / 2) * line.timing().byte;
}

std::uint8_t* SoftwarePort::stage() {
  if (fabric_.line(out_.line).backlog(fabric_.world.now()) > ring_bytes_) {
    full_ = true;
    return nullptr;
  }
  return staged_.data();
}

void SoftwarePort::commit(std::size_t bytes, std::span<const std::uint8_t> rest) {
  std::copy_n(rest.begin(), std::min(rest.size(), staged_.size() - bytes),
              staged_.begin() + static_cast<std::ptrdiff_t>(bytes));
  const wire::Header header = wire::decode(staged_.data());
  Frame frame;
  frame.seq = header.seq;
  frame.ack = header.ack;
  frame.credit = header.credit;
  frame.type = static_cast<PacketType>(header.type);
  frame.flags = header.flags;
  const bool data = carries_data(frame.type);
  if (data) frame.sum = read_lane(&staged_[wire::kHeaderBytes]);
  const Picos now = fabric_.world.now();
  fabric_.send(out_, frame, data ? data_bytes_ : kHeaderFrame, now);
}

bool SoftwarePort::flush() { return !std::exchange(full_, false); }

std::span<const std::span<const std::uint8_t>> SoftwarePort::receive() {
  batch_.resize(std::min(kBatch, arrived_.size()));
  payloads_.clear();
  for (Bytes& bytes : batch_) {
    const Frame frame = arrived_.front();
    arrived_.pop_front();
    wire::Header header;
    header.version = wire::kVersion;
    header.type = static_cast<std::uint8_t>(frame.type);
    header.flags = frame.flags;
    header.gen = gen_;
    header.seq = frame.seq;
    header.ack = frame.ack;
    header.credit = frame.credit;
    const bool data = carries_data(frame.type);
    if (data) {
      const bool sums = frame.type != PacketType::kPARAM;
      header.lanes = static_cast<std::uint16_t>(sums ? 1 : kLane);
      header.dtype =
          static_cast<std::uint8_t>(sums ? wire::DataType::kINT32 : wire::DataType::kBYTES);
      write_lane(frame.sum, &bytes[wire::kHeaderBytes]);
    }
    wire::encode(header, bytes.data());
    payloads_.emplace_back(bytes.data(), wire::kHeaderBytes + (data ? kLane : 0));
  }
  return payloads_;
}

}  // namespace catchment::performance
