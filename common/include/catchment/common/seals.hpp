// Seals of memory that other processes map: what nobody can do to it any more.
#pragma once

#include <fcntl.h>

namespace catchment {

/// Memory of a fixed size: whoever maps it is never killed by a page that has gone.
inline constexpr int kSizeSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
/// The same, and nobody can write it.
inline constexpr int kWriteSeals = kSizeSeals | F_SEAL_WRITE;

/// Whether memory has all of `seals`; false for what cannot be sealed.
inline bool sealed(int memory, int seals) {
  const int found = fcntl(memory, F_GET_SEALS);
  return found >= 0 && (found & seals) == seals;
}

/// Whether memory could be given `seals`; errno says why not.
inline bool seal(int memory, int seals) { return fcntl(memory, F_ADD_SEALS, seals) == 0; }

}  // namespace catchment
