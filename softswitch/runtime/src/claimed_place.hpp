// Which of the places for switches' shared memory are free, among the processes of one user: a
// process that attaches to several switches maps each where it lies, so no two should overlap.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>

#include "catchment/common/file_descriptor.hpp"

namespace catchment::softswitch {

/// A numbered place that no other process of this user has while this one does, if all ask. It is
/// the name of an abstract socket, which ends with the process.
class ClaimedPlace {
 public:
  /// Nothing if another has it.
  static std::optional<ClaimedPlace> take(std::size_t number);

 private:
  explicit ClaimedPlace(FileDescriptor socket) : socket_(std::move(socket)) {}

  FileDescriptor socket_;
};

}  // namespace catchment::softswitch
