/* A switch's program that runs in its callers, on a data plane in memory that they share
 * (docs/explanation/switch-in-callers.md).
 *
 * Ranks 0 and 1 are job 0, rank 2 is job 1. Whoever has a frame takes the one lock of the data plane and runs the program:
 * who is in the slot, then two lanes, then what leaves into the rings of its receivers. A sum that is complete goes to all
 * of the job, and again to a rank that repeats its vector. Any rank may die at any step, so also with the lock. The lock is
 * robust: who takes it from a dead owner says that the state is torn; frames are dropped then, until the switch process has
 * made all registers new, as a switch does that restarts. That process also writes an entry of two words.
 *
 * What must hold: a receiver takes exact sums only, from a ring that is sound; a frame sees a whole entry; and whoever
 * lives and has all of its job alive gets its sum, whatever others do.
 *
 * MUT 1: what a dead owner left is worked on.           MUT 2: a frame is shown before it is written.
 * MUT 3: the lock is not robust.                        MUT 4: entries are written without the lock.
 * MUT 5: the state is said to be sound before all of its registers are new. */
#ifndef MUT
#define MUT 0
#endif
#ifndef DEATHS
#define DEATHS 1
#endif
#define RANKS 3
#define SWITCH 3
#define FREE 4

#define NEXT(place) (((place)+1)%4)                     /* positions in a ring */
#define JOB(r) ((r)==2 -> 1 : 0)
#define BIT(r) (1<<(r))
#define VALUE(r) ((r)==0 -> 1 : ((r)==1 -> 4 : 16))   /* one that was added twice is seen */
#define ALL(j) ((j)==0 -> 3 : 4)
#define SUM(j) ((j)==0 -> 5 : 16)
#define SERVED(r) ((r)==2 -> got[2] : (got[0] && got[1]))
#define BEREFT(r) ((r)!=2 && dead[1-(r)])

byte owner = FREE;
bool dead[SWITCH+1], ended[RANKS], got[RANKS];
bool torn;
byte deaths = DEATHS;

byte members[2], lane0[2], lane1[2];      /* the registers: a slot for each job */
byte entry0, entry1;                      /* the words of a table's entry */
byte cell0[RANKS], cell1[RANKS];          /* of each rank a ring of one cell */
byte written[RANKS], read[RANKS];

inline lock(me) {
  atomic {
    if
    :: owner == FREE -> owner = me
    :: MUT != 3 && owner != FREE && dead[owner] -> owner = me; torn = (MUT != 1)
    fi
  }
}
inline unlock() { owner = FREE }

#define OR_DIES :: atomic { deaths > 0 -> deaths--; dead[me] = true; goto gone }
#define STEP(what) if :: atomic { what } OR_DIES fi

/* One frame into a ring; it is dropped where there is no room. */
#define SHOW written[to] = NEXT(written[to])
#define DELIVER \
  if \
  :: written[to] != read[to] \
  :: else -> \
     if :: MUT==2 -> STEP(true -> SHOW) :: else fi; \
     STEP(true -> cell0[to] = out0); \
     STEP(true -> cell1[to] = out1); \
     if :: MUT!=2 -> STEP(true -> SHOW) :: else fi \
  fi

proctype Rank(byte me) {
  byte j, seen, before, out0, out1, to;
  j = JOB(me);
  do
  :: !SERVED(me) && !BEREFT(me) ->
     lock(me);
     if
     :: torn
     :: else ->
        STEP(true -> seen = entry0);
        STEP(true -> before = members[j]; members[j] = before | BIT(me));
        STEP(true -> lane0[j] = ((before & BIT(me)) -> lane0[j] : (before==0 -> VALUE(me) : lane0[j] + VALUE(me))); out0 = lane0[j]);
        STEP(true -> lane1[j] = ((before & BIT(me)) -> lane1[j] : (before==0 -> VALUE(me) : lane1[j] + VALUE(me))); out1 = lane1[j]);
        assert(seen == entry1);
        if
        :: (before | BIT(me)) == ALL(j) ->
           to = me; DELIVER;
           if
           :: me != 2 && !(before & BIT(me)) -> to = 1 - me; DELIVER
           :: else
           fi
        :: else
        fi
     fi;
     atomic { seen = 0; before = 0; out0 = 0; out1 = 0; to = 0; unlock() }
  :: atomic { written[me] != read[me] ->
       assert(written[me] == NEXT(read[me]));
       assert(cell0[me] == SUM(j) && cell1[me] == SUM(j));
       read[me] = NEXT(read[me]); got[me] = true }
  :: atomic { SERVED(me) || BEREFT(me) -> ended[me] = true; break }
  :: atomic { deaths > 0 -> deaths--; dead[me] = true; break }
  od;
gone: skip
}

#define OVER(r) (ended[r] || dead[r])
#define LEFT_BEHIND (owner < RANKS && dead[owner])

/* Nothing of its own ends here: a switch process that dies hangs up on all ranks. */
proctype Switch() {
  bool wrote;
  do
  :: torn || (LEFT_BEHIND && MUT != 3) ->
     lock(SWITCH);
     members[1] = 0; lane0[1] = 0; lane1[1] = 0;
     if :: MUT == 5 -> torn = false; unlock(); lock(SWITCH) :: else fi;
     members[0] = 0; lane0[0] = 0; lane1[0] = 0;
     torn = false;
     unlock()
  :: !wrote ->
     if :: MUT != 4 -> lock(SWITCH) :: else fi;
     entry0 = 1; entry1 = 1; wrote = true;
     if :: MUT != 4 -> unlock() :: else fi
  :: atomic { OVER(0) && OVER(1) && OVER(2) && !torn && !LEFT_BEHIND -> break }
  od
}

init { atomic { run Rank(0); run Rank(1); run Rank(2); run Switch() } }
