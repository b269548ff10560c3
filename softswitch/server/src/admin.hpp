// The admin socket: a Unix socket on which an operator reads the ports' statistics and sets their
// faults, and what came of clients, which P4Runtime has no words for. One request a line, one line
// of JSON back:
//   ports            {"ok": true, "ports": [{"port": 1, "name": "s1-eth1", "up": true, ...}]}
//   clients          {"ok": true, "clients": {"open": 2, "failed_handshakes": 0, ...}}
//   fault PORT:SPEC  {"ok": true}, or {"ok": false, "error": "..."}; SPEC as in --fault
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <thread>

#include "catchment/softswitch/port_loop.hpp"
#include "connections.hpp"

namespace catchment::server {

class AdminError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Admin {
 public:
  // Listens at `path`, for the owner of the process only. A socket file that no process listens on
  // is replaced. Throws AdminError. What is passed by reference must outlive it.
  Admin(std::filesystem::path path, softswitch::PortLoop& loop, const Connections& connections);
  ~Admin();
  Admin(const Admin&) = delete;
  Admin& operator=(const Admin&) = delete;

 private:
  void serve();

  std::filesystem::path path_;
  softswitch::PortLoop& loop_;
  const Connections& connections_;
  int listener_ = -1;
  int ending_ = -1;  // an eventfd
  std::thread thread_;
};

// Returns the answer to one request line.
std::string answer(softswitch::PortLoop& loop, const Connections& connections,
                   const std::string& request);

}  // namespace catchment::server
