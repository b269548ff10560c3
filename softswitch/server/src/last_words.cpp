#include "last_words.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

namespace catchment::server {

namespace {

/// Writes the line without taking memory, of which there may be none.
void say(const char* what, const char* hint) {
  std::array<char, 1024> line{};
  const int length = std::snprintf(
      line.data(), line.size(),
      "catchment-switch: ending: a thread cannot go on: %.500s. A frame may have been carried out "
      "in part, so no other is. %s and start the switch again\n",
      what, hint);
  static_cast<void>(!::write(STDERR_FILENO, line.data(),
                             static_cast<std::size_t>(std::max(0, std::min(length, 1023)))));
}

[[noreturn]] void end() {
  constexpr const char* kMend = "Mend the program's own externs, or report this,";
  try {
    if (const std::exception_ptr thrown = std::current_exception()) {
      std::rethrow_exception(thrown);
    }
    say("it was ended from inside", "Report this");
  } catch (const std::bad_alloc&) {
    say("memory has ended", "Give it more memory");
  } catch (const std::exception& error) {
    say(error.what(), kMend);
  } catch (...) {
    say("an exception of an unknown type", kMend);
  }
  std::abort();
}

}  // namespace

void say_last_words() { std::set_terminate(end); }

}  // namespace catchment::server
