/* Waking the receiver of a ring that several callers fill (docs/explanation/switch-in-callers.md).
 *
 * Two callers put frames into the ring of a third one, each with the data plane's lock, and wake the receiver afterwards,
 * without the lock, if it says that it waits. The receiver says so before it looks for the last time, and then sleeps
 * until its bell rings. A caller may die at any step: with the lock, after a frame is shown, after it has taken back the
 * receiver's word. The switch process hears of a death and rings for everybody. With OTHERS=1 it once gives the
 * receiver's port to another receiver, which has the same ring, made new, and a bell of its own.
 *
 * What must hold: when nothing moves any more, no frame waits in the ring.
 *
 * MUT 1: the switch rings for nobody.          MUT 2: the receiver does not look once more before it sleeps.
 * MUT 3: a caller looks who waits before it shows its frames.
 * MUT 4: the switch rings only for who still says that he waits.
 * MUT 5: a word does not say whose it is. */
#ifndef MUT
#define MUT 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#ifndef OTHERS
#define OTHERS 0
#endif
#define CALLERS 2
#define SWITCH 2
#define FREE 3

byte owner = FREE;
bool dead[CALLERS];
byte deaths = DEATHS;
byte written, read;
byte waiting;  /* who says that he waits, from one on */
bool bell[2];
byte now, others = OTHERS;

inline lock(me) {
  atomic { (owner == FREE || (owner < CALLERS && dead[owner])) -> owner = me }
}

/* Whether the receiver of a caller's last frame says that it waits. */
#define WAITS (MUT == 5 -> waiting != 0 : waiting == whose + 1)

#define OR_DIES :: atomic { deaths > 0 -> deaths--; dead[me] = true; goto gone }
#define STEP(what) if :: atomic { what } OR_DIES fi

proctype Caller(byte me) {
  byte frames, whose;
  bool ring;
  do
  :: frames < 2 ->
     lock(me);
     whose = now;
     if :: MUT == 3 -> STEP(true -> ring = WAITS) :: else fi;
     STEP(true -> written = written + 1);
     STEP(true -> owner = FREE);
     if :: MUT != 3 -> STEP(true -> ring = WAITS) :: else fi;
     if
     :: ring -> STEP(true -> ring = WAITS; waiting = (ring -> 0 : waiting)); STEP(true -> bell[whose] = (bell[whose] || ring))
     :: else
     fi;
     frames++; ring = false
  :: else -> break
  od;
gone: skip
}

/* It may be gone at any step. */
#define ITS(what) if :: atomic { me == now -> what } :: atomic { me != now -> goto gone } fi

proctype Receiver(byte me) {
  byte seen;
end:
  do
  :: true ->
     ITS(seen = written);
     if
     :: seen != read -> ITS(read = seen)
     :: else ->
        ITS(waiting = me + 1);
        if
        :: MUT != 2 && written != read -> ITS(waiting = 0)
        :: else ->
end_asleep: if
           :: atomic { bell[me] -> bell[me] = false }
           :: me != now -> goto gone
           fi;
           ITS(waiting = 0)
        fi
     fi
  od;
gone: skip
}

/* Whoever no longer says that he waits may be asleep: the one who took back his word is dead. */
#define RING \
  if \
  :: MUT == 1 \
  :: MUT == 4 -> bell[now] = (bell[now] || waiting != 0) \
  :: MUT != 1 && MUT != 4 -> bell[now] = true \
  fi

/* It takes the lock for what it has to change of a dead caller's. */
proctype Switch() {
  byte heard;
end:
  do
  :: atomic { dead[0] && heard != 1 -> heard = 1 }; lock(SWITCH); owner = FREE; RING
  :: others > 0 ->
     lock(SWITCH);
     atomic { others--; now++; written = 0; read = 0; waiting = 0 };
     run Receiver(now);
     owner = FREE
  :: atomic { dead[1] && heard != 2 -> heard = 2 }; lock(SWITCH); owner = FREE; RING
  od
}

proctype Monitor() {
end: timeout -> assert(written == read)
}

init { atomic { run Caller(0); run Caller(1); run Receiver(0); run Switch(); run Monitor() } }
