#include "hubs.hpp"

#include <catchment/shm/fork_guard.hpp>
#include <map>
#include <mutex>
#include <utility>

namespace catchment::host {
namespace {

constexpr int kAttachPieceMs = 50;

// A forked child has neither its parent's threads nor its ports.
struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<Hub>> hubs;
};

Registry& registry() { return shm::of_process<Registry>(); }

}  // namespace

std::shared_ptr<Hub> Hubs::join(const std::string& path, std::optional<Nanos> attach, Nanos spin,
                                const Change& enter) {
  Registry& all = registry();
  const Nanos until = monotonic_now() + attach.value_or(0);
  while (true) {
    {
      const std::scoped_lock lock(all.mutex);
      const auto found = all.hubs.find(path);
      if (found != all.hubs.end()) {
        const Hub::Turn turn(*found->second);
        enter(*found->second);
        return found->second;
      }
    }
    try {
      // The switch lets one in: of two threads that come here, the other finds this one's hub.
      auto attachment = attach ? std::make_shared<ShmAttachment>(path, kAttachPieceMs)
                               : std::make_shared<ShmAttachment>(path);
      const std::scoped_lock lock(all.mutex);
      if (all.hubs.contains(path)) continue;  // without a switch both were let in
      auto hub = std::make_shared<Hub>(std::move(attachment), spin);
      {
        const Hub::Turn turn(*hub);
        enter(*hub);
      }
      all.hubs.emplace(path, hub);
      return hub;
    } catch (const AttachError& error) {
      if (error.final() || monotonic_now() >= until) throw;
    }
  }
}

bool Hubs::join_present(const std::string& path, const Change& enter) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  const auto found = all.hubs.find(path);
  if (found == all.hubs.end()) return false;
  const Hub::Turn turn(*found->second);
  enter(*found->second);
  return true;
}

void Hubs::leave(const std::shared_ptr<Hub>& hub, const Change& exit) {
  Registry& all = registry();
  const std::scoped_lock lock(all.mutex);
  bool last = false;
  {
    const Hub::Turn turn(*hub);
    exit(*hub);
    last = hub->empty();
  }
  if (!last) return;
  hub->stop();
  std::erase_if(all.hubs, [&](const auto& entry) { return entry.second == hub; });
}

}  // namespace catchment::host
