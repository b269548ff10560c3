// The hubs of this process, by the path of their shared-memory port.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "hub.hpp"

namespace catchment::host {

class Hubs {
 public:
  using Change = std::function<void(Hub&)>;

  // Has `enter` add an engine, with the turn, to the hub on the port at `path`: the one that there
  // is, or a new one, for which it waits up to `attach` for the switch and the port; nothing: not
  // at all, and the switch may come later.  Throws AttachError, and what `enter` throws.
  static std::shared_ptr<Hub> join(const std::string& path, std::optional<Nanos> attach, Nanos spin,
                                   const Change& enter);
  // Has `enter` add an engine, with the turn, to the hub on the port at `path` if there is one.
  static bool join_present(const std::string& path, const Change& enter);
  // Has `exit` remove an engine, with the turn.  Behind the last engine the hub stops, and gives
  // its port back before a hub on that port can be made again.
  static void leave(const std::shared_ptr<Hub>& hub, const Change& exit);
};

}  // namespace catchment::host
