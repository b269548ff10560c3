// A port without a switch: the ranks of a stream add up its vectors themselves, in a ring of TCP
// connections (docs/explanation/rails.md, "Rings").  An engine sees what a switch would say.
#pragma once

#include <vector>

#include "port.hpp"
#include "ring_links.hpp"
#include "ring_sums.hpp"
#include "ring_windows.hpp"

namespace catchment::host::ring {

class RingPort final : public Port, private Sink {
 public:
  // Throws std::system_error.
  RingPort(const UdpAddress& local, const UdpAddress& next, Transport transport,
           const Greeting& stream);

  std::uint8_t* stage() override;
  using Port::commit;
  void commit(std::size_t bytes, std::span<const std::uint8_t> rest) override;
  bool flush() override;
  std::span<const std::span<const std::uint8_t>> receive() override;
  bool more() const override { return more_; }
  bool may_sleep(bool full, const std::atomic<int>& stop) override;
  std::size_t path_bytes() const override { return frame_bytes_; }
  int descriptor() const override { return links_.descriptor(); }
  std::uint64_t errors() const override { return links_.errors(); }
  int last_error() const override { return links_.last_error(); }
  std::uint64_t foreign() const override { return 0; }
  bool lossless() const override { return true; }
  std::uint64_t connections() const override { return links_.made(); }
  bool tells_absence() const override { return true; }
  bool absent() const override { return links_.lost(monotonic_now()); }
  std::string absence() const override;

  std::uint16_t port() const { return links_.port(); }

 private:
  void pass_on(const Message& message) override;
  void deliver(const wire::Header& header, std::span<const std::uint8_t> payload) override;
  // Takes a message from the front of `bytes`, and returns its length; 0: there is no whole one.
  std::size_t take(std::span<const std::uint8_t> bytes);

  std::size_t frame_bytes_;
  RingLinks links_;
  RingSums sums_;
  RingWindows windows_;
  std::size_t most_backlog_;
  std::vector<std::uint8_t> room_;
  std::vector<std::uint8_t> in_;    // no whole message is left in it
  std::vector<std::uint8_t> made_;  // frames for the engine, one after the other
  std::vector<std::size_t> ends_;   // of each of them
  std::vector<std::uint8_t> handed_;
  std::vector<std::span<const std::uint8_t>> frames_;
  bool more_ = false;
};

}  // namespace catchment::host::ring
