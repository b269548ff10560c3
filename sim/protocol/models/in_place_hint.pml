/* The word beside the data plane's lock that its waiters look at (docs/explanation/switch-in-callers.md).
 *
 * Three callers take the lock twice each, and control calls once, which leave the word alone. A caller tries the lock;
 * where it is taken it looks at the word some times, and tries again only where the word says that nobody is inside; then
 * it waits for the lock. The owner sets the word after it has the lock, and clears it after it has given the lock back, so
 * that it may clear what the next owner has set. A caller may run nothing, as where there is no program, or die at any
 * step; the lock is robust.
 *
 * What must hold: one is inside at a time, whoever lives gets in as often as it wants, whatever the word says, and the word
 * says that somebody is inside when nobody is only after a death.
 *
 * MUT 1: a waiter believes the word for ever.     MUT 2: who finds nobody inside does not ask for the lock.
 * MUT 3: who runs nothing leaves the word as it is. */
#ifndef MUT
#define MUT 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define CALLERS 3
#define CONTROL 3
#define FREE 4
#define LOOKS 2

byte owner = FREE;
bool dead[CALLERS+1], left[CALLERS+1];
byte deaths = DEATHS;
byte inside;                              /* 1 + who is between having the lock and giving it back; 0: nobody */
bool occupied;

#define CAN_TAKE (owner == FREE || dead[owner])
#define OR_DIES :: atomic { deaths > 0 -> deaths--; dead[me] = true; goto gone }
#define STEP(what) if :: atomic { what } OR_DIES fi
/* What a dead owner left is none of the next one's. */
#define ENTER assert(inside == 0 || dead[inside-1]); inside = 1 + me

inline take(me) { atomic { CAN_TAKE -> owner = me; ENTER } }

proctype Caller(byte me) {
  byte turns, looks;
  bool runs;
  do
  :: turns < 2 ->
     looks = 0;
     do
     :: atomic { looks == 0 && CAN_TAKE -> owner = me; ENTER; break }
     :: atomic { MUT != 2 && looks > 0 && looks <= LOOKS && !occupied && CAN_TAKE -> owner = me; ENTER; break }
     :: atomic { MUT == 2 && looks > 0 && looks <= LOOKS && !occupied -> ENTER; break }
     :: atomic { looks == 0 && !CAN_TAKE -> looks = 1 }
     :: atomic { looks > 0 && looks <= LOOKS && (occupied || !CAN_TAKE) && (MUT != 1 || looks < LOOKS) -> looks++ }
     :: looks > LOOKS -> take(me); break
     OR_DIES
     od;
     STEP(true -> occupied = true);
     if
     :: STEP(true -> runs = true)            /* its frames */
     :: runs = false                         /* there is no program */
     fi;
     STEP(true -> inside = 0; owner = FREE);
     if
     :: MUT == 3 && !runs
     :: else -> STEP(true -> occupied = false)
     fi;
     turns++
  :: else -> break
  od;
  left[me] = true;
gone: skip
}

proctype Control() {
  byte me = CONTROL;
  take(me);
  atomic { inside = 0; owner = FREE };
  left[CONTROL] = true
}

#define OVER(r) (left[r] || dead[r])

proctype Monitor() {
  OVER(0) && OVER(1) && OVER(2) && left[CONTROL];
  assert(!occupied || deaths < DEATHS)
}

init { atomic { run Caller(0); run Caller(1); run Caller(2); run Control(); run Monitor() } }
