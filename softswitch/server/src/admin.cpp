#include "admin.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "fault_option.hpp"
#include "handshake_failures.hpp"
#include "json.hpp"
#include "socket_file.hpp"

namespace catchment::server {

namespace {

constexpr std::size_t kMostClients = 16;
constexpr std::size_t kLongestLine = 4096;
constexpr int kPauseMs = 100;

struct Client {
  int socket = -1;
  std::string received;
};

std::string field(const char* name, std::uint64_t value) {
  return std::string(", \"") + name + "\": " + std::to_string(value);
}

// `fields` as field() makes them.
std::string object(const std::string& fields) {
  std::string result("{");
  result.append(fields, 2).append("}");
  return result;
}

std::string counters(const softswitch::FaultCounters& c) {
  std::string fields = field("seen", c.seen) + field("lost", c.lost) +
                       field("duplicated", c.duplicated) + field("reordered", c.reordered) +
                       field("delayed", c.delayed) + field("overflow", c.overflow);
  return object(fields);
}

std::string drops(const softswitch::PortStatistics& statistics) {
  std::string fields;
  for (std::size_t cause = 0; cause < softswitch::kDropCauses; ++cause) {
    fields += field(softswitch::drop_cause_name(static_cast<softswitch::DropCause>(cause)),
                    statistics.drops[cause]);
  }
  return object(fields);
}

std::string one_port(const softswitch::PortStatus& port) {
  const softswitch::PortStatistics& s = port.statistics;
  return "{\"port\": " + std::to_string(port.port) + ", \"name\": " + json_string(port.name) +
         ", \"up\": " + (port.up ? "true" : "false") + field("rx_packets", s.rx_packets) +
         field("rx_bytes", s.rx_bytes) + field("tx_packets", s.tx_packets) +
         field("tx_bytes", s.tx_bytes) + field("missed", port.io.missed) +
         ", \"merged_udp\": " + (port.io.merged_udp ? "true" : "false") +
         ", \"drops\": " + drops(s) + ", \"faults\": " + json_string(port.faults.text()) +
         ", \"faults_in\": " + counters(port.faults_in) +
         ", \"faults_out\": " + counters(port.faults_out) + "}";
}

std::string refused(const std::string& why) {
  return "{\"ok\": false, \"error\": " + json_string(why) + "}";
}

// Whether the client is to stay: takes what it sent and answers every full line.
bool serve_client(Client& client, softswitch::PortLoop& loop, const Connections& connections) {
  char buffer[kLongestLine];
  const ssize_t count = ::recv(client.socket, buffer, sizeof buffer, MSG_DONTWAIT);
  if (count <= 0) {
    return count < 0 && (errno == EAGAIN || errno == EINTR);
  }
  client.received.append(buffer, static_cast<std::size_t>(count));
  for (auto end = client.received.find('\n'); end != std::string::npos;
       end = client.received.find('\n')) {
    const std::string text = answer(loop, connections, client.received.substr(0, end)) + "\n";
    client.received.erase(0, end + 1);
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(client.socket, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;  // gone, or does not read its answers
      }
      at += static_cast<std::size_t>(sent);
    }
  }
  return client.received.size() <= kLongestLine;
}

}  // namespace

std::string answer(softswitch::PortLoop& loop, const Connections& connections,
                   const std::string& request) {
  if (request == "ports") {
    std::string list;
    for (const softswitch::PortStatus& port : loop.ports()) {
      list += (list.empty() ? "" : ", ") + one_port(port);
    }
    return "{\"ok\": true, \"ports\": [" + list + "]}";
  }
  if (request == "clients") {
    const ConnectionCounts counts = connections.counts();
    return "{\"ok\": true, \"clients\": " +
           object(field("open", counts.open) + field("unfinished_bytes", counts.bytes) +
                  field("accepted", counts.accepted) + field("cut_off", counts.cut_off) +
                  field("failed_handshakes", HandshakeFailures::count())) +
           "}";
  }
  if (request.starts_with("fault ")) {
    const auto option = parse_fault(request.substr(6));
    if (!option.ok()) {
      return refused(option.status().message());
    }
    const auto status = loop.set_faults(option.value().port, option.value().faults);
    return status.ok() ? "{\"ok\": true}" : refused(status.message());
  }
  return refused(std::string("'").append(request, 0, 100) +
                 "' is not `ports`, `clients` or `fault PORT:SPEC`");
}

Admin::Admin(std::filesystem::path path, softswitch::PortLoop& loop, const Connections& connections)
    : path_(std::move(path)), loop_(loop), connections_(connections) {
  const std::string text = path_.string();
  if (const auto fault = make_room_for_socket(text)) {
    throw AdminError("--admin " + text + ": " + *fault);
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, text.c_str(), text.size() + 1);
  listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const auto bound = [&] {
    const PrivateFiles here;
    return ::bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }();
  const int error = errno;
  if (bound != 0 || ::listen(listener_, kMostClients) != 0) {
    ::close(listener_);
    throw AdminError("--admin " + text + ": " + std::strerror(error));
  }
  ending_ = ::eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this] { serve(); });
}

Admin::~Admin() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(ending_, &one, sizeof one));
  thread_.join();
  ::close(ending_);
  ::close(listener_);
  ::unlink(path_.c_str());
}

void Admin::serve() {
  std::vector<Client> clients;
  bool accepts = true;
  while (true) {
    std::vector<pollfd> wanted{{ending_, POLLIN, 0}};
    wanted.push_back({accepts && clients.size() < kMostClients ? listener_ : -1, POLLIN, 0});
    for (const Client& client : clients) {
      wanted.push_back({client.socket, POLLIN, 0});
    }
    const int pause = std::exchange(accepts, true) ? -1 : kPauseMs;
    if (::poll(wanted.data(), wanted.size(), pause) < 0 && errno != EINTR) {
      break;
    }
    if (wanted[0].revents != 0) {
      break;
    }
    for (std::size_t i = clients.size(); i-- > 0;) {
      if (wanted[i + 2].revents != 0 && !serve_client(clients[i], loop_, connections_)) {
        ::close(clients[i].socket);
        clients.erase(clients.begin() + static_cast<std::ptrdiff_t>(i));
      }
    }
    if (wanted[1].revents != 0) {
      if (const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); socket >= 0) {
        const timeval patience{.tv_sec = 1, .tv_usec = 0};
        ::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        clients.push_back({socket, {}});
      } else {
        accepts = errno == EAGAIN;  // too many files are open, say: who waits is taken later
      }
    }
  }
  for (const Client& client : clients) {
    ::close(client.socket);
  }
}

}  // namespace catchment::server
