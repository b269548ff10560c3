#include "watchdog.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace catchment::host {
namespace {

constexpr Nanos kInterval = kSecond / 8;

std::string seconds(Nanos duration) {
  const Nanos tenths = duration / (kSecond / 10);
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

std::string sending(const Transmitter& out) {
  const SenderWindow& window = out.window();
  const std::string last = "last ack=" + std::to_string(window.acked());
  if (window.no_credit()) {
    return "everything sent is acknowledged but no receiver has room: nobody pulls what was "
           "pushed, " +
           last + ", credit=" + std::to_string(window.credit());
  }
  return "the ack does not advance: another worker, or the receiver, is missing or behind, " + last;
}

std::string receiving(const Receiver& in) {
  return "nothing arrives: whoever pushes on this stream has not, or a worker is missing, last "
         "ack=" +
         std::to_string(in.window().ack());
}

Nanos last_progress(const Transmitter* out, const Receiver* in) {
  return std::max(out != nullptr ? out->progressed_at() : 0,
                  in != nullptr ? in->progressed_at() : 0);
}

}  // namespace

std::vector<Stall> Watchdog::stalls(const Transmitter* out, const Receiver* in,
                                    const Contact& contact, Nanos now) {
  next_ = now + std::min(kInterval, timeout_ / 4);
  std::vector<Stall> result;
  const std::string silent = contact.frames == 0 ? "nothing was ever heard from the switch; " : "";
  if (out != nullptr && out->busy() && now - out->progressed_at() >= kSecond) {
    result.push_back({out->name() + " push", out->progressed_at(), out->window().acked(),
                      silent + sending(*out)});
  }
  if (in != nullptr && in->busy() && now - in->progressed_at() >= kSecond) {
    result.push_back(
        {in->name() + " pull", in->progressed_at(), in->window().ack(), silent + receiving(*in)});
  }
  return result;
}

std::optional<Failure> Watchdog::expired(const Transmitter* out, const Receiver* in,
                                         const Contact& contact, Nanos now) const {
  const bool pushing = out != nullptr && out->busy();
  const bool pulling = in != nullptr && in->busy();
  if ((!pushing && !pulling) || now - last_progress(out, in) < timeout_) return std::nullopt;
  Failure failure;
  failure.fatal = true;
  failure.peer = peer_;
  failure.stream = pushing ? out->name() + " push" : in->name() + " pull";
  failure.seq = pushing ? out->window().acked() : in->window().ack();
  failure.message = "no progress for " + seconds(timeout_);
  if (contact.frames == 0) {
    failure.kind = "unreachable";
    failure.message += ", and nothing was ever heard from the switch";
    failure.hint = contact.last_error == 0
                       ? "is the switch running, is its address right, does it know this job's gen "
                         "on this port, and are all the other members there?"
                       : std::string("the network says: ") + std::strerror(contact.last_error) +
                             "; is the switch running, and its address right?";
    return failure;
  }
  failure.kind = "stalled";
  failure.hint = "the switch was last heard " + seconds(now - contact.last_frame) + " ago; " +
                 (pushing ? sending(*out) : receiving(*in)) + "; `catchment doctor` says who, " +
                 "or that an earlier run has used the job";
  return failure;
}

}  // namespace catchment::host
