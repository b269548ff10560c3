#include "handshake_failures.hpp"

#include <grpc/support/log.h>
#include <openssl/x509.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <string_view>

namespace catchment::server {

namespace {

constexpr std::string_view kMark = "Handshake failed with";
constexpr std::string_view kVerifyMark = "Certificate verify failed with code ";
constexpr std::size_t kMostClients = 4;  // that a line names

std::atomic<std::uint64_t> failed = 0;
std::mutex mutex;  // guards what follows
const Log* the_log = nullptr;
const Connections* the_connections = nullptr;

// Why this thread took a certificate for bad: gRPC says that first, then that the handshake failed.
thread_local std::string bad_certificate;

std::string suspects() {
  std::string list;
  for (const std::string& client : the_connections->silent(kMostClients)) {
    list += (list.empty() ? "" : ", ") + client;
  }
  return list.empty() ? "it is gone" : "those connected without a request: " + list;
}

// OpenSSL's reason, such as "peer did not return a certificate" of "... fatal error SSL_ERROR_SSL:
// error:0A0000C7:SSL routines::peer did not return a certificate."; else the whole message.
std::string handshake_fault(const std::string& message) {
  const auto colon = message.rfind(':');
  if (message.find("SSL routines") == std::string::npos || colon == std::string::npos) {
    return message;
  }
  std::string fault = message.substr(colon + 1);
  while (!fault.empty() && fault.back() == '.') {
    fault.pop_back();
  }
  return fault;
}

void on_log(gpr_log_func_args* entry) {
  const std::string message = entry->message;
  if (message.starts_with(kVerifyMark)) {
    const long code = std::strtol(message.c_str() + kVerifyMark.size(), nullptr, 10);
    bad_certificate = ::X509_verify_cert_error_string(code);
    return;
  }
  const std::lock_guard lock(mutex);
  if (the_log == nullptr) {
    return;
  }
  if (!message.starts_with(kMark)) {
    return the_log->info("gRPC: " + message);
  }
  ++failed;
  const std::string why = bad_certificate.empty() ? handshake_fault(message) : bad_certificate;
  bad_certificate.clear();
  the_log->info("refused: a client failed the TLS handshake (" + why + "); " + suspects());
}

}  // namespace

HandshakeFailures::HandshakeFailures(const Log& log, const Connections& connections) {
  const std::lock_guard lock(mutex);
  the_log = &log;
  the_connections = &connections;
  gpr_set_log_function(on_log);
}

HandshakeFailures::~HandshakeFailures() {
  const std::lock_guard lock(mutex);
  the_log = nullptr;
  the_connections = nullptr;
}

std::uint64_t HandshakeFailures::count() { return failed; }

}  // namespace catchment::server
