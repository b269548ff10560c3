#include "listener.hpp"

#include <grpcpp/security/tls_credentials_options.h>
#include <sys/resource.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "program_store.hpp"
#include "socket_file.hpp"

namespace catchment::server {

namespace {

constexpr char kUnix[] = "unix:";
constexpr unsigned kCertificateSeconds = 1;  // between two looks at the files
constexpr int kStreamsPerConnection = 64;
constexpr int kHandshakeMs = 5'000;
constexpr std::size_t kReceiveBytes = std::size_t{64} << 20;  // that all connections hold

// The files are read again when they change, so certificates are rotated without a restart.
std::shared_ptr<grpc::ServerCredentials> credentials(const Options& options) {
  if (options.tls_cert.empty()) {
    return grpc::InsecureServerCredentials();
  }
  using grpc::experimental::FileWatcherCertificateProvider;
  const bool mutual = !options.tls_client_ca.empty();
  read_file(options.tls_key);  // throws, where gRPC would only log
  read_file(options.tls_cert);
  std::shared_ptr<FileWatcherCertificateProvider> files;
  if (mutual) {
    read_file(options.tls_client_ca);
    files = std::make_shared<FileWatcherCertificateProvider>(
        options.tls_key, options.tls_cert, options.tls_client_ca, kCertificateSeconds);
  } else {
    files = std::make_shared<FileWatcherCertificateProvider>(options.tls_key, options.tls_cert,
                                                             kCertificateSeconds);
  }
  grpc::experimental::TlsServerCredentialsOptions tls(files);
  tls.watch_identity_key_cert_pairs();
  if (mutual) {
    tls.watch_root_certs();
    tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  if (!options.tls_crl_dir.empty()) {
    tls.set_crl_directory(options.tls_crl_dir);
  }
  return grpc::experimental::TlsServerCredentials(tls);
}

// A connection is a file: as many as the system lets a process have.
void allow_many_connections() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    ::setrlimit(RLIMIT_NOFILE, &limit);
  }
}

void make_room(const std::filesystem::path& socket) {
  std::error_code error;
  std::filesystem::create_directories(socket.parent_path(), error);  // bind says what is wrong
  if (const auto fault = make_room_for_socket(socket)) {
    throw StartError("--grpc unix:" + socket.string() + ": " + *fault);
  }
}

}  // namespace

std::pair<std::unique_ptr<grpc::Server>, std::string> listen(const Options& options,
                                                             grpc::Service& service) {
  const bool is_socket_file = options.grpc.starts_with(kUnix);
  if (is_socket_file) {
    make_room(options.grpc.substr(sizeof kUnix - 1));
  }
  allow_many_connections();
  int port = 0;
  grpc::ServerBuilder builder;
  // Two switches on one port would each get some of the clients.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_request_bytes));
  // A client whose machine vanished must not stay primary.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder.SetResourceQuota(grpc::ResourceQuota("catchment-switch").Resize(kReceiveBytes));
  builder.AddListeningPort(options.grpc, credentials(options), &port);
  builder.RegisterService(&service);
  std::unique_ptr<grpc::Server> server;
  {
    std::optional<PrivateFiles> for_us_alone;
    if (is_socket_file) {
      for_us_alone.emplace();
    }
    server = builder.BuildAndStart();
  }
  if (server == nullptr || port == 0) {
    throw StartError("cannot listen on " + options.grpc +
                     " (--grpc): the address is in use, not one of this machine, or a folder that "
                     "this user may not write");
  }
  const auto colon = options.grpc.rfind(':');
  const bool has_port = !is_socket_file && colon != std::string::npos;
  return {std::move(server),
          has_port ? options.grpc.substr(0, colon + 1) + std::to_string(port) : options.grpc};
}

}  // namespace catchment::server
