/* An all-reduce that loses a rail (docs/explanation/rails.md, "When a rail fails").
 *
 * One operation of U units runs in place on rail 0: a rank writes a finished sum over its own input, so that the input is gone
 * where the sum has come.  The rail may stop at any time, and any rank may suspect it at any time, rightly or not.  Then the ranks
 * gather a record each on another rail (a round): the units that the rank has placed, and how many places of rail 0's stream it
 * has sent on.  From all records everybody computes the same repair: a unit that some rank has is copied from its owner, and a unit
 * that nobody has is reduced again.  The rail of a round may fail too, in the gathering or in the repair: the next round, on another
 * rail, takes its place.  At the end rail 0 returns, and the next operation begins on it at the place that the records name.
 *
 * What was sent may arrive at any time or never, and every rank may stay behind as long as it likes.
 * MUT 1: units that some ranks lack are reduced again.          MUT 2: a rank decides from its own record.
 * MUT 3: a rank places sums of rail 0 after its record.         MUT 4: a rank goes on at its own place, not at the largest.
 * MUT 5: a rank repairs by a decision after it has recorded for a later round. */
#ifndef W
#define W 2
#endif
#ifndef U
#define U 3
#endif
#ifndef D
#define D 2
#endif
#ifndef ROUNDS
#define ROUNDS 2
#endif
#ifndef MUT
#define MUT 0
#endif
#define UNITS ((1<<U)-1)
#define RANKS ((1<<W)-1)
#define MX(a,b) (((a)>(b))->(a):(b))
#define MN(a,b) (((a)<(b))->(a):(b))
#define ARRAY(w,u) array[(w)*U+(u)]
#define PREFIX(w) ((placed[w]&1)==0 -> 0 : ((placed[w]&2)==0 -> 1 : ((placed[w]&4)==0 -> 2 : 3)))

mtype = { input, sum, wrong };
mtype array[W*U] = input;
byte placed[W];              /* units that the rank has placed, by whichever rail */
byte sent[W];                /* places of rail 0's stream that the rank has sent on for this operation */
bool called[W];              /* the application has made the call: there is an array */
byte vectors[U+1];           /* per place of rail 0: ranks whose vector the switch has */
byte kinds[U+1];             /* and what these are: 1 of this operation, 2 filler, 4 of the next operation */
byte recorded[W];            /* last round that the rank has given a record to; 0: its part on rail 0 goes on */
byte decided[W];             /* last round from which the rank has everybody's record */
byte records[ROUNDS];        /* per round: ranks that have given their record */
byte record_placed[ROUNDS*W], record_sent[ROUNDS*W];
byte given[ROUNDS*U];        /* per round and unit: ranks that have contributed to the repair */
byte ways[ROUNDS*U];         /* how: 1 copied from its owner, 2 reduced again, 4 from an array that held something else */
bool gone_on[W];             /* the rank has sent its vector of the next operation */
bool rail_dead, round_dead;  /* rail 0, and the rail of round 1 */
byte some, every, cut, owner, i;

#define R(k,w) (((k)-1)*W+(w))
#define G(k,u) (((k)-1)*U+(u))
#define RUNS(k) (!((k)==1 && round_dead))
#if W==3
#define SLOWEST MN(PREFIX(0),MN(PREFIX(1),PREFIX(2)))
#define ENDED (placed[0]==UNITS && placed[1]==UNITS && placed[2]==UNITS)
#define NO_ROUND (recorded[0]==0 && recorded[1]==0 && recorded[2]==0)
#define ON (gone_on[0] && gone_on[1] && gone_on[2])
#else
#define SLOWEST MN(PREFIX(0),PREFIX(1))
#define ENDED (placed[0]==UNITS && placed[1]==UNITS)
#define NO_ROUND (recorded[0]==0 && recorded[1]==0)
#define ON (gone_on[0] && gone_on[1])
#endif
#define MAY_PLACE (MUT==3 || recorded[w]==0)
#define ACTS(k) (decided[w]==k && (MUT==5 || recorded[w]==k))

/* What rank w computes from the records of round k. */
inline decide(k) {
  some = 0; every = UNITS; cut = 0; i = 0;
  do
  :: i < W ->
     cut = MX(cut, record_sent[R(k,i)]);
     if
     :: MUT==2 && i != w
     :: else -> some = some | record_placed[R(k,i)]; every = every & record_placed[R(k,i)]
     fi; i++
  :: else -> break
  od;
  if :: MUT==1 -> some = every :: else fi;
  if :: MUT==4 -> cut = record_sent[R(k,w)] :: else fi
}
inline forget() { some = 0; every = 0; cut = 0; owner = 0; i = 0 }

#define PLACE(u) \
 :: d_step { called[w] && MAY_PLACE && !rail_dead && !(placed[w] & (1<<u)) && vectors[u]==RANKS && kinds[u]==1 -> \
      ARRAY(w,u) = (ARRAY(w,u)==input -> sum : wrong); placed[w] = placed[w] | (1<<u) }
#define REPAIR(k,u) \
 :: d_step { called[w] && RUNS(k) && ACTS(k) && !(given[G(k,u)] & (1<<w)) -> \
      decide(k); \
      if \
      :: some & (1<<u) -> \
         owner = 0; do :: owner < W-1 && !(record_placed[R(k,owner)] & (1<<u)) -> owner++ :: else -> break od; \
         ways[G(k,u)] = ways[G(k,u)] | 1 | (owner==w && ARRAY(w,u)!=sum -> 4 : 0) \
      :: else -> \
         ways[G(k,u)] = ways[G(k,u)] | 2 | (ARRAY(w,u)!=input -> 4 : 0) \
      fi; \
      given[G(k,u)] = given[G(k,u)] | (1<<w); forget() } \
 :: d_step { called[w] && RUNS(k) && ACTS(k) && given[G(k,u)]==RANKS && !(placed[w] & (1<<u)) -> \
      ARRAY(w,u) = (ways[G(k,u)] <= 2 -> sum : wrong); placed[w] = placed[w] | (1<<u) }
#if U==3
#define EACH(X) X(0) X(1) X(2)
#define EACH_OF(X,k) X(k,0) X(k,1) X(k,2)
#else
#define EACH(X) X(0) X(1)
#define EACH_OF(X,k) X(k,0) X(k,1)
#endif
#define ROUND(k) \
 :: d_step { RUNS(k) && recorded[w] < k && (records[(k)-1] || placed[w]!=UNITS) -> \
      recorded[w] = k; record_placed[R(k,w)] = placed[w]; record_sent[R(k,w)] = sent[w]; records[(k)-1] = records[(k)-1] | (1<<w) } \
 :: d_step { RUNS(k) && decided[w] < k && recorded[w]==k && records[(k)-1]==RANKS -> decided[w] = k } \
 EACH_OF(REPAIR, k) \
 :: d_step { ACTS(k) && placed[w]==UNITS && !gone_on[w] -> \
      decide(k); i = sent[w]; \
      do :: i < cut -> vectors[i] = vectors[i] | (1<<w); kinds[i] = kinds[i] | 2; i++ :: else -> break od; \
      vectors[cut] = vectors[cut] | (1<<w); kinds[cut] = kinds[cut] | 4; sent[w] = MX(sent[w], cut); gone_on[w] = true; \
      assert(!(vectors[cut]==RANKS) || kinds[cut]==4); forget() }

proctype Rank(byte w) {
  do
  :: d_step { !called[w] -> called[w] = true }
  :: d_step { called[w] && recorded[w]==0 && sent[w] < U && sent[w] < SLOWEST + D ->
       vectors[sent[w]] = vectors[sent[w]] | (1<<w); kinds[sent[w]] = kinds[sent[w]] | 1; sent[w]++ }
  EACH(PLACE)
  ROUND(1)
#if ROUNDS>1
  ROUND(2)
#endif
  :: d_step { ENDED && (NO_ROUND || ON) -> i = 0; do :: i < W*U -> assert(array[i]==sum); i++ :: else -> break od; i = 0 }; break
  od
}
proctype Failures() {
  do
  :: d_step { !rail_dead -> rail_dead = true }
#if ROUNDS>1
  :: d_step { !round_dead -> round_dead = true }
#endif
  :: break
  od
}
init { atomic { run Failures(); run Rank(0); run Rank(1);
#if W==3
  run Rank(2)
#endif
} }
