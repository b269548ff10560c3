// The command line of catchment-switch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "catchment/softswitch/faults.hpp"
#include "catchment/softswitch/port_spec.hpp"
#include "catchment/softswitch/rt/engine.hpp"
#include "log.hpp"

namespace catchment::server {

// What is wrong with the command line, in words for the operator.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Options {
  std::string grpc;        // address; of a socket file: unix:PATH
  bool plaintext = false;  // without TLS on an address that other machines reach
  std::uint64_t device_id = 1;
  std::map<std::uint32_t, softswitch::PortSpec> ports;     // by number
  std::map<std::uint32_t, softswitch::PortFaults> faults;  // by number
  std::filesystem::path admin;                             // the operator's socket; empty: none
  std::filesystem::path program;                           // with p4info: runs from the start
  std::filesystem::path p4info;
  std::filesystem::path program_dir;
  std::uint32_t workers = 1;  // packet threads
  std::uint32_t cpu_port = 510;
  std::uint32_t drop_port = 511;
  std::uint32_t max_steps = softswitch::rt::kDefaultMaxSteps;  // of loops, per frame
  std::size_t max_status_bytes = 8192;
  std::filesystem::path tls_cert;
  std::filesystem::path tls_key;
  std::filesystem::path tls_client_ca;
  std::filesystem::path tls_crl_dir;
  std::vector<std::string> tls_client_names;  // empty: every client that the authority knows
  std::uint32_t max_request_bytes = 4U << 20;
  std::uint32_t stream_timeout_ms = 10'000;
  LogLevel log_level = LogLevel::info;
  bool in_callers = false;  // peers of this user run the program themselves
  int owner = 0;            // process that the switch ends with; 0: none
  std::string help;         // the text to print instead of starting; empty: none was asked for
};

// Returns the options of the arguments after the program's name. Throws UsageError.
Options parse_options(const std::vector<std::string>& arguments);

}  // namespace catchment::server
