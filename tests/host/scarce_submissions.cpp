// Takes the place of io_uring_submit (LD_PRELOAD) and does what a kernel may do:
// SCARCE_SUBMISSIONS=none: every second call takes nothing, for EAGAIN and EBUSY in turn;
// one: each call takes one entry; never: from the sixth call on none is taken, for EBADF.
#include <dlfcn.h>
#include <liburing.h>

#include <cerrno>
#include <cstdlib>
#include <string>

extern "C" int io_uring_submit(io_uring* ring) {
  static const auto submit =
      reinterpret_cast<int (*)(io_uring*)>(::dlsym(RTLD_NEXT, "io_uring_submit"));
  static const std::string mode = std::getenv("SCARCE_SUBMISSIONS");
  static int calls = 0;
  ++calls;
  if (mode == "none" && calls % 2 == 1) return calls % 4 == 1 ? -EAGAIN : -EBUSY;
  if (mode == "never" && calls > 5) return -EBADF;
  if (mode != "one" || io_uring_sq_ready(ring) == 0) return submit(ring);
  const unsigned tail = ring->sq.sqe_tail;
  ring->sq.sqe_tail = tail - io_uring_sq_ready(ring) + 1;
  const int taken = submit(ring);
  ring->sq.sqe_tail = tail;
  return taken;
}
