// The cheapest possible switch for one worker and one root, so that a benchmark measures endpoints:
// it turns PA into FA and heartbeats into merged ones, in batches, and checks nothing.
#include <arpa/inet.h>
#include <pthread.h>
#include <pybind11/pybind11.h>
#include <sys/eventfd.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <time.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "catchment/common/file_descriptor.hpp"
#include "wire.hpp"

namespace py = pybind11;

namespace catchment::bench {
namespace {

using wire::PacketType;

constexpr std::size_t kBatch = 64;
constexpr std::size_t kFrameBytes = wire::kHeaderBytes + wire::kMaxParamBytes;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

class Reflector {
 public:
  Reflector()
      : socket_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket"),
        stop_(eventfd(0, EFD_CLOEXEC), "eventfd"),
        buffers_(kBatch * kFrameBytes) {
    const sockaddr_in own = loopback(0);
    const int size = 1 << 26;
    const int on = 1;
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(socket_.get(), SOL_SOCKET, SO_NO_CHECK, &on, sizeof on);
    if (bind(socket_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) != 0) {
      throw std::system_error(errno, std::generic_category(), "bind");
    }
  }
  ~Reflector() { stop(); }

  std::uint16_t port() const {
    sockaddr_in own{};
    socklen_t size = sizeof own;
    getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&own), &size);
    return ntohs(own.sin_port);
  }

  void start(std::uint16_t worker, std::uint16_t root) {
    worker_ = loopback(worker);
    root_ = loopback(root);
    thread_ = std::thread([this] { run(); });
  }

  // Seconds that the thread has used so far.
  double processor_time() {
    clockid_t clock{};
    timespec used{};
    pthread_getcpuclockid(thread_.native_handle(), &clock);
    clock_gettime(clock, &used);
    return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
  }

  void stop() {
    if (!thread_.joinable()) return;
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto size = write(stop_.get(), &one, sizeof one);
    thread_.join();
  }

 private:
  void run() {
    std::array<mmsghdr, kBatch> messages{};
    std::array<iovec, kBatch> parts{};
    std::array<sockaddr_in, kBatch> sources{};
    while (true) {
      std::array<pollfd, 2> ready{{{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
      poll(ready.data(), ready.size(), -1);
      if (ready[1].revents != 0) return;
      for (std::size_t i = 0; i < kBatch; ++i) {
        parts[i] = {&buffers_[i * kFrameBytes], kFrameBytes};
        messages[i].msg_hdr = {.msg_name = &sources[i],
                               .msg_namelen = sizeof(sockaddr_in),
                               .msg_iov = &parts[i],
                               .msg_iovlen = 1,
                               .msg_control = nullptr,
                               .msg_controllen = 0,
                               .msg_flags = 0};
      }
      const int count = recvmmsg(socket_.get(), messages.data(), kBatch, MSG_DONTWAIT, nullptr);
      for (int i = 0; i < count; ++i) turn(messages[static_cast<std::size_t>(i)]);
      int sent = 0;
      while (sent < count) {
        const int more = sendmmsg(socket_.get(), &messages[static_cast<std::size_t>(sent)],
                                  static_cast<unsigned>(count - sent), 0);
        sent += more > 0 ? more : 1;
      }
    }
  }

  void turn(mmsghdr& message) {
    auto* const frame = static_cast<std::uint8_t*>(message.msg_hdr.msg_iov->iov_base);
    message.msg_hdr.msg_iov->iov_len = message.msg_len;
    auto* const address = static_cast<sockaddr_in*>(message.msg_hdr.msg_name);
    wire::Header header = wire::decode(frame);
    if (header.type == static_cast<std::uint8_t>(PacketType::kPA)) {
      header.type = static_cast<std::uint8_t>(PacketType::kFA);
    } else if (header.type == static_cast<std::uint8_t>(PacketType::kHB)) {
      header.type = static_cast<std::uint8_t>(PacketType::kMH);
    }
    wire::encode(header, frame);
    *address = address->sin_port == worker_.sin_port ? root_ : worker_;
  }

  FileDescriptor socket_;
  FileDescriptor stop_;
  std::vector<std::uint8_t> buffers_;
  sockaddr_in worker_{};
  sockaddr_in root_{};
  std::thread thread_;
};

}  // namespace

PYBIND11_MODULE(_reflector, module) {
  py::class_<Reflector>(module, "Reflector")
      .def(py::init<>())
      .def_property_readonly("port", &Reflector::port)
      .def_property_readonly("processor_time", &Reflector::processor_time)
      .def("start", &Reflector::start)
      .def("stop", &Reflector::stop, py::call_guard<py::gil_scoped_release>());
}

}  // namespace catchment::bench
