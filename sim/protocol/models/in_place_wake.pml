/* Waking the receiver of a ring that several callers fill (docs/explanation/switch-in-callers.md).
 *
 * Two callers put frames into the ring of a third one, each with the data plane's lock, and wake the receiver afterwards,
 * without the lock, if it says that it waits. The receiver says so before it looks for the last time, and then sleeps
 * until its bell rings. A caller may die at any step: with the lock, after a frame is shown, after it has taken back the
 * receiver's word. The switch process hears of a death and rings for everybody.
 *
 * What must hold: when nothing moves any more, no frame waits in the ring.
 *
 * MUT 1: the switch rings for nobody.          MUT 2: the receiver does not look once more before it sleeps.
 * MUT 3: a caller looks who waits before it shows its frames.
 * MUT 4: the switch rings only for who still says that he waits. */
#ifndef MUT
#define MUT 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define CALLERS 2
#define SWITCH 2
#define FREE 3

byte owner = FREE;
bool dead[CALLERS];
byte deaths = DEATHS;
byte written, read;
bool waiting, bell;

inline lock(me) {
  atomic { (owner == FREE || (owner < CALLERS && dead[owner])) -> owner = me }
}

#define OR_DIES :: atomic { deaths > 0 -> deaths--; dead[me] = true; goto gone }
#define STEP(what) if :: atomic { what } OR_DIES fi

proctype Caller(byte me) {
  byte frames;
  bool ring;
  do
  :: frames < 2 ->
     lock(me);
     if :: MUT == 3 -> STEP(true -> ring = waiting) :: else fi;
     STEP(true -> written = written + 1);
     STEP(true -> owner = FREE);
     if :: MUT != 3 -> STEP(true -> ring = waiting) :: else fi;
     if
     :: ring -> STEP(true -> waiting = false); STEP(true -> bell = true)
     :: else
     fi;
     frames++; ring = false
  :: else -> break
  od;
gone: skip
}

proctype Receiver() {
  byte seen;
end:
  do
  :: true ->
     seen = written;
     if
     :: seen != read -> read = seen
     :: else ->
        waiting = true;
        if
        :: MUT != 2 && written != read -> waiting = false
        :: else ->
end_asleep: atomic { bell -> bell = false };
           waiting = false
        fi
     fi
  od
}

/* Whoever no longer says that he waits may be asleep: the one who took back his word is dead. */
#define RING \
  if \
  :: MUT == 1 \
  :: MUT == 4 -> bell = (bell || waiting) \
  :: MUT != 1 && MUT != 4 -> bell = true \
  fi

/* It takes the lock for what it has to change of a dead caller's. */
proctype Switch() {
  byte heard;
end:
  do
  :: atomic { dead[0] && heard != 1 -> heard = 1 }; lock(SWITCH); owner = FREE; RING
  :: atomic { dead[1] && heard != 2 -> heard = 2 }; lock(SWITCH); owner = FREE; RING
  od
}

proctype Monitor() {
end: timeout -> assert(written == read)
}

init { atomic { run Caller(0); run Caller(1); run Receiver(); run Switch(); run Monitor() } }
