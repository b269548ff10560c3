#include "listener.hpp"

#include <grpcpp/security/tls_credentials_options.h>
#include <sys/resource.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "listening_sockets.hpp"
#include "program_store.hpp"
#include "socket_file.hpp"
#include "start_error.hpp"

namespace catchment::server {

namespace {

constexpr char kUnix[] = "unix:";
constexpr unsigned kCertificateSeconds = 1;  // between two looks at the files
constexpr int kStreamsPerConnection = 64;
// What a client may have sent that is no whole message: so much for what gRPC lets it send ahead on
// its streams, and some of the longest messages at once; all clients as much as a few of them.
constexpr std::size_t kAheadBytes = std::size_t{16} << 20;
constexpr std::size_t kMessagesAtOnce = 4;
constexpr std::size_t kFullConnections = 8;
constexpr int kHandshakeMs = 5'000;
// Memory of all connections and what comes in on them, beyond which gRPC ends streams at random.
// Over TCP `Connections` cuts off those who fill it long before.
constexpr std::size_t kSocketFileBytes = std::size_t{64} << 20;
constexpr std::size_t kTcpBytes = std::size_t{1} << 30;

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

Listening listen_at_file(const Options& options, grpc::ServerBuilder& builder) {
  make_room(options.grpc.substr(sizeof kUnix - 1));
  builder.SetResourceQuota(grpc::ResourceQuota("catchment-switch").Resize(kSocketFileBytes));
  int bound = 0;
  builder.AddListeningPort(options.grpc, credentials(options), &bound);
  const PrivateFiles for_us_alone;
  Listening made{builder.BuildAndStart(), options.grpc};
  if (made.server == nullptr || bound == 0) {
    throw StartError("cannot listen on " + options.grpc +
                     " (--grpc): the address is in use, or a folder that this user may not write");
  }
  return made;
}

// gRPC does not listen itself: it has no account of what each connection brings.
Listening listen_at_port(const Options& options, grpc::ServerBuilder& builder,
                         Connections& connections) {
  builder.SetResourceQuota(grpc::ResourceQuota("catchment-switch").Resize(kTcpBytes));
  using From = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  const std::shared_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor =
      builder.experimental().AddExternalConnectionAcceptor(From::FROM_FD, credentials(options));
  auto [sockets, port] = listen_at(options.grpc);
  Listening made{builder.BuildAndStart(),
                 options.grpc.substr(0, options.grpc.rfind(':') + 1) + std::to_string(port)};
  if (made.server == nullptr) {
    throw StartError("cannot serve P4Runtime on " + options.grpc + " (--grpc)");
  }
  connections.start(std::move(sockets), [acceptor](int listener, int socket) {
    grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
    connection.listener_fd = listener;
    connection.fd = socket;
    acceptor->HandleNewConnection(&connection);
  });
  return made;
}

}  // namespace

ReceiveLimits receive_limits(const Options& options) {
  const std::size_t each = kAheadBytes + kMessagesAtOnce * options.max_request_bytes;
  return {.connection_bytes = each, .all_bytes = kFullConnections * each};
}

Listening listen(const Options& options, grpc::Service& service, Connections& connections) {
  allow_many_connections();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(static_cast<int>(options.max_request_bytes));
  // A client whose machine vanished must not stay primary.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, kStreamsPerConnection);
  builder.RegisterService(&service);
  return options.grpc.starts_with(kUnix) ? listen_at_file(options, builder)
                                         : listen_at_port(options, builder, connections);
}

}  // namespace catchment::server
