// The socket beside the memory: it hands the memory over, wakes a side that sleeps, and hangs up
// when a side dies, however it dies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "catchment/common/file_descriptor.hpp"

namespace catchment::shm {

/// What comes with the first message.
enum class Attachment : std::uint32_t {
  refused = 0,  // nothing: the text says why
  rings = 1,    // the memory of the port's rings
  let_in = 2,   // the memory of the whole data plane, rings within; the text is the port's number
};

/// The first message on a connection, from the switch; with the memory's descriptor when it is
/// `attached`.
struct Welcome {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t attached;  // an Attachment
  char text[240];          // ends with a zero
};
static_assert(sizeof(Welcome) == 256);

class Link {
 public:
  explicit Link(FileDescriptor socket) : socket_(std::move(socket)) {}

  [[nodiscard]] int descriptor() const { return socket_.get(); }

  /// Hands over `memory` (-1: none), with the text that the attachment has. False: the other side
  /// is gone.
  bool welcome(Attachment attachment, int memory, const std::string& text);
  /// Makes the other side's descriptor readable. Never blocks.
  void wake();
  /// Tells why this side is about to hang up.
  void farewell(const std::string& text);
  /// Takes in wake-ups that arrived. False: the other side hung up; reason() says why, if it did.
  bool drain();
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  [[nodiscard]] bool hung_up() const;
  bool read_some();

  FileDescriptor socket_;
  std::string reason_;
  bool reading_reason_ = false;
};

/// What a peer got from welcome().
struct Handover {
  Welcome welcome{};
  FileDescriptor memory;
};

/// Reads the welcome. nullopt: it has not arrived. Throws ShmError when it is none, or the switch
/// hung up.
std::optional<Handover> receive_welcome(int socket);

}  // namespace catchment::shm
