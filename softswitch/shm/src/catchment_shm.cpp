// The C interface: nothing but translation. No exception leaves it.
#include "catchment_shm.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "catchment/shm/error.hpp"
#include "catchment/shm/insider.hpp"
#include "peer.hpp"

struct catchment_shm {
  catchment_shm(const char* path, int timeout_ms, catchment::shm::Enter enter = {})
      : peer(path, timeout_ms, std::move(enter)) {}
  explicit catchment_shm(const char* path, catchment::shm::Enter enter = {})
      : peer(path, std::move(enter)) {}
  catchment::shm::Peer peer;
};

namespace {

void tell(const char* what, char* error, size_t error_bytes) {
  if (error != nullptr && error_bytes != 0) {
    const size_t length = std::min(std::strlen(what), error_bytes - 1);
    std::memcpy(error, what, length);
    error[length] = '\0';
  }
}

/// Calls `work(peer)`; a failure to get memory or descriptors becomes a status, and a text.
template <class Work>
int guarded(catchment_shm* port, Work work) {
  if (port == nullptr) {
    return CATCHMENT_SHM_ARGUMENT;
  }
  if (!port->peer.ours()) {
    return CATCHMENT_SHM_DETACHED;
  }
  try {
    return work(port->peer);
  } catch (const catchment::shm::ShmError& problem) {
    return problem.status();
  } catch (const std::exception& problem) {
    return port->peer.fail(problem.what());
  }
}

/// What `make` makes; NULL, and why, where it throws.
template <class Make>
catchment_shm* made(Make make, int* status, char* error, size_t error_bytes) {
  const auto failed = [&](int why, const char* text) -> catchment_shm* {
    if (status != nullptr) {
      *status = why;
    }
    tell(text, error, error_bytes);
    return nullptr;
  };
  try {
    return make().release();
  } catch (const catchment::shm::ShmError& problem) {
    return failed(problem.status(), problem.what());
  } catch (const std::exception& problem) {
    return failed(CATCHMENT_SHM_SYSTEM, problem.what());
  }
}

}  // namespace

int catchment_shm_abi(void) { return CATCHMENT_SHM_ABI; }

catchment_shm* catchment_shm_attach(const char* path, int timeout_ms, int* status, char* error,
                                    size_t error_bytes) {
  const auto make = [&] {
    return std::make_unique<catchment_shm>(path == nullptr ? "" : path, timeout_ms);
  };
  return made(make, status, error, error_bytes);
}

catchment_shm* catchment_shm_attach_later(const char* path, int* status, char* error,
                                          size_t error_bytes) {
  const auto make = [&] { return std::make_unique<catchment_shm>(path == nullptr ? "" : path); };
  return made(make, status, error, error_bytes);
}

namespace catchment::shm {

OwnPort attach(const std::string& path, int timeout_ms, Enter enter) {
  return {new catchment_shm(path.c_str(), timeout_ms, std::move(enter)), catchment_shm_detach};
}

OwnPort attach_later(const std::string& path, Enter enter) {
  return {new catchment_shm(path.c_str(), std::move(enter)), catchment_shm_detach};
}

int commit_in_place(catchment_shm* port, std::span<const std::uint8_t> frame) {
  return guarded(port, [&](auto& peer) {
    const int status = peer.commit_in_place(frame);
    return status == CATCHMENT_SHM_OK && peer.has_own_frames() ? 1 : status;
  });
}

int flush_if_free(catchment_shm* port) {
  return guarded(port, [](auto& peer) { return peer.flush_if_free(); });
}

std::span<const std::uint8_t> own_frame(catchment_shm* port) {
  return port->peer.ours() ? port->peer.own_frame() : std::span<const std::uint8_t>{};
}

void take_own(catchment_shm* port) { port->peer.take_own(); }

bool inside(const catchment_shm* port) { return port->peer.inside(); }

bool move_apart(catchment_shm* port) { return port->peer.ours() && port->peer.move_apart(); }

}  // namespace catchment::shm

void catchment_shm_detach(catchment_shm* port) { std::default_delete<catchment_shm>()(port); }

int catchment_shm_send(catchment_shm* port, const catchment_shm_frame* frames, int count) {
  return guarded(port, [&](auto& peer) { return peer.send(frames, count); });
}

int catchment_shm_receive(catchment_shm* port, catchment_shm_frame* frames, int count) {
  return guarded(port, [&](auto& peer) { return peer.receive(frames, count); });
}

int catchment_shm_peek(catchment_shm* port, catchment_shm_frame* frames, int count) {
  return guarded(port, [&](auto& peer) { return peer.peek(frames, count); });
}

void* catchment_shm_reserve(catchment_shm* port) {
  void* room = nullptr;
  guarded(port, [&](auto& peer) {
    room = peer.reserve();
    return CATCHMENT_SHM_OK;
  });
  return room;
}

int catchment_shm_commit(catchment_shm* port, uint32_t length) {
  return guarded(port, [&](auto& peer) { return peer.commit(length, {}); });
}

int catchment_shm_commit_with(catchment_shm* port, uint32_t length, const void* rest,
                              uint32_t rest_length) {
  return guarded(port, [&](auto& peer) {
    return rest == nullptr && rest_length != 0
               ? peer.refuse("the frame's last " + std::to_string(rest_length) + " bytes are NULL")
               : peer.commit(length, {static_cast<const uint8_t*>(rest), rest_length});
  });
}

int catchment_shm_flush(catchment_shm* port) {
  return guarded(port, [&](auto& peer) { return peer.flush(); });
}

int catchment_shm_wait(catchment_shm* port, int events, int64_t timeout_us) {
  return guarded(port, [&](auto& peer) { return peer.wait(events, timeout_us); });
}

int catchment_shm_descriptor(const catchment_shm* port) { return port->peer.descriptor(); }

int catchment_shm_arm(catchment_shm* port, int events) {
  return guarded(port, [&](auto& peer) { return peer.arm(events); });
}

int catchment_shm_look(catchment_shm* port, int events, const int* stop) {
  return guarded(port, [&](auto& peer) { return peer.look(events, stop); });
}

int catchment_shm_check(catchment_shm* port) {
  return guarded(port, [](auto& peer) { return peer.check(); });
}

const char* catchment_shm_error(const catchment_shm* port) { return port->peer.error().c_str(); }

void catchment_shm_get_info(const catchment_shm* port, catchment_shm_info* info) {
  *info = port->peer.info();
}
