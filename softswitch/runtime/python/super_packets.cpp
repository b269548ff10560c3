#include "super_packets.hpp"

#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "send_batch.hpp"
#include "super_packet.hpp"

namespace py = pybind11;

namespace catchment::softswitch {

namespace {

FrameNote note_of(std::string_view bytes) {
  FrameNote note;
  if (bytes.size() != sizeof note) {
    throw py::value_error("a note has 10 bytes");
  }
  std::memcpy(&note, bytes.data(), sizeof note);
  return note;
}

/// The frames of a packet of which `at_hand` bytes can be looked at; None: it cannot be split.
std::optional<std::vector<py::bytes>> split(std::string_view note, const std::string& packet,
                                            std::size_t at_hand, std::size_t longest) {
  // Of its own, so that a tool for memory errors sees a read behind it.
  const std::vector<std::uint8_t> head(
      packet.begin(),
      packet.begin() + static_cast<std::ptrdiff_t>(std::min(at_hand, packet.size())));
  const auto read = SuperPacket::read(head, packet.size(), note_of(note), longest);
  if (!read) {
    return std::nullopt;
  }
  std::vector<py::bytes> out;
  std::size_t from = read->header_bytes();
  for (std::size_t i = 0; i < read->segments(); ++i) {
    std::string frame =
        std::string(read->header_bytes(), '\0') + packet.substr(from, read->bytes_of(i));
    from += read->bytes_of(i);
    frame.resize(read->finish(i, reinterpret_cast<std::uint8_t*>(frame.data())));
    out.emplace_back(frame);
  }
  return out;
}

/// What leaves for one batch of frames: notes and packets.
std::vector<py::bytes> merge(std::vector<std::string> frames, std::size_t longest) {
  std::vector<rt::OutFrame> outgoing;
  for (std::string& frame : frames) {
    outgoing.push_back({reinterpret_cast<std::uint8_t*>(frame.data()),
                        static_cast<std::uint32_t>(frame.size()), 1});
  }
  SendBatch batch;
  batch.fill(outgoing, true, longest);
  std::vector<py::bytes> out;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const msghdr& message = batch.message(i)->msg_hdr;
    std::string bytes;
    for (std::size_t part = 0; part < message.msg_iovlen; ++part) {
      const iovec& one = message.msg_iov[part];
      bytes.append(static_cast<const char*>(one.iov_base), one.iov_len);
    }
    out.emplace_back(bytes);
  }
  return out;
}

std::optional<py::bytes> finished(std::string_view note, std::string frame) {
  if (!finish_checksum({reinterpret_cast<std::uint8_t*>(frame.data()), frame.size()},
                       note_of(note))) {
    return std::nullopt;
  }
  return py::bytes(frame);
}

}  // namespace

void bind_super_packets(py::module_& module) {
  using namespace py::literals;
  module.def("split_super_packet", &split, "note"_a, "packet"_a, "at_hand"_a, "longest"_a);
  module.def("merge_frames", &merge, "frames"_a, "longest"_a);
  module.def("finish_checksum", &finished, "note"_a, "frame"_a);
}

}  // namespace catchment::softswitch
