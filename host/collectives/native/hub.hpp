// The engines of this process that use one port, and the threads that give them turns.
//
// A caller that waits for an operation runs the protocol in its own thread, for all engines of the
// port: nothing is handed over, which is what makes small operations fast.  While no caller waits,
// or is expected to, a thread of the hub's own runs it.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "attendance.hpp"
#include "catchment/common/patience.hpp"
#include "engine.hpp"
#include "shm_port.hpp"
#include "sleepers.hpp"

namespace catchment::host {

class Hub : public std::enable_shared_from_this<Hub> {
 public:
  // Waits for its turn at the engines; a thread that runs the protocol lets others in between. Who
  // sleeps and has what it waits for is woken at its end.
  class Turn {
   public:
    explicit Turn(Hub& hub);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    Hub& hub_;
  };

  // `attachment`: what the engines have shares of; null: one engine comes, with a port of its own.
  // spin: see collective_patience().  No thread sleeps for longer than `longest`.
  Hub(std::shared_ptr<ShmAttachment> attachment, Nanos spin, Nanos longest = 50 * kMillisecond);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  ~Hub();

  const std::shared_ptr<ShmAttachment>& attachment() const { return attachment_; }

  // With a Turn.
  void add(Engine& engine, ShmShare* share);
  void remove(Engine& engine);
  bool empty() const { return members_.empty(); }
  // Gives a turn to every engine that has something to do; true when anything came or went.  Who
  // has called it calls sleep() or hand_on() next.
  bool turn(Nanos now, IfTaken taken = IfTaken::kWait);

  // Without one.
  // Waits until `done`, or the time `until` has come; the calling thread runs the protocol.
  // `begun`: the time by which what it waits for was begun.  `spins`: it looks for frames for a
  // while before it sleeps, so that it is soon done on a machine that has a processor for it; one
  // that sleeps at once is run sooner on a machine that has none.
  void wait(const std::atomic<bool>& done, Nanos begun, Nanos until, bool spins = true);
  // Sleeps until the port has something, the time `until` has come, or somebody wakes the thread.
  void sleep(Nanos until) { sleep(until, nullptr, nullptr); }
  // Leaves the port to others, of whom some may sleep.  `begun`: what this thread has started is
  // under way, and the hub's own thread runs it unless callers are expected to.
  void hand_on(bool begun = false);
  // Has whoever sleeps look again at what there is.
  void wake();
  // Ends the hub's own thread and gives the attachment back; there is no engine any more.
  void stop();

 private:
  struct Member {
    Engine* engine;
    ShmShare* share;  // null: the engine's port is its own
    Nanos due = 0;    // a turn, even if no frame comes
    bool turned = false;
  };

  bool turn(Member& member, Nanos now, IfTaken taken);
  // Sends what turns have left queued.
  void flush();
  bool busy() const;
  // Whether every rank of each group has a processor, and whoever runs the switch's program, too.
  bool own_processor() const;
  void run();
  // The own thread's rest while callers run the protocol.
  void rest(Nanos longest);
  // The same as sleep(), until `done`, where there is such, and `stop` is not 0.
  void sleep(Nanos until, const std::atomic<bool>* done, const std::atomic<int>* stop);

  std::shared_ptr<ShmAttachment> attachment_;
  Patience alone_;    // of callers that have a processor for themselves
  Patience sharing_;  // of all others, and of the hub's own thread, beside which a caller computes
  const Nanos longest_;
  const int processors_ = Processor::count();
  std::vector<Member> members_;
  std::mutex mutex_;            // of the engines
  std::atomic<int> wanted_{0};  // threads that wait for the mutex
  Attendance callers_;
  std::atomic<int> stirred_{0};  // something is new for the own thread
  std::atomic<bool> stop_{false};
  Sleepers sleepers_;
  std::mutex resting_;
  std::condition_variable rested_;
  std::mutex stopping_;
  std::thread thread_;
};

}  // namespace catchment::host
