/* An all-reduce that loses a rail and gets it back (docs/explanation/rail-failures.md).
 *
 * U vectors of rail 0's stream, in place: a rank writes a finished sum over its own input.  A rank keeps every vector as it was
 * sent until all ranks have its sum.  The ranks meet in rounds, on streams that some rail always carries; a round ends with a
 * verdict, the same for all, which each hears of when it likes.  After an odd verdict the stream goes over the switch of rail 1, after
 * an even one over that of rail 0.  Rail 0 may fail at any time, and any rank may suspect it at any time, rightly or not; its
 * switch comes back empty.  Meanwhile the ranks split further operations: each by the verdicts that count for its number.
 *
 * What was sent may arrive at any time or never, and every rank may stay behind as long as it likes.
 * MUT 1: a rank sends again what its array holds.          MUT 2: a rank keeps a vector until it has the sum itself.
 * MUT 3: a verdict counts from a rank's own number on.     MUT 4: a rank that suspects nothing stays where it is.
 * MUT 5: a rank that moves does not send again.            MUT 6: a rank splits operations between its record and the verdict. */
#ifndef W
#define W 2
#endif
#ifndef U
#define U 3
#endif
#ifndef D
#define D 2
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef MUT
#define MUT 0
#endif
#define ALL ((1<<W)-1)
#define VERDICTS 2
#define MX(a,b) (((a)>(b))->(a):(b))
#define WAY(w) (known[w] & 1)
#define V(x,u) ((x)*U+(u))
#define BIT(w) (1<<(w))

mtype = { input, sum, wrong };
mtype array[W*U] = input;
byte has[U];              /* ranks that have placed the sum */
byte sent[W];             /* vectors that the rank has sent for the first time */
byte again[W];            /* MUT 5: vectors below it are not sent again */
byte vectors[2*U];        /* per switch and place: ranks whose vector is there */
byte spoilt[2*U];         /* and ranks whose vector was no input */
byte recorded[W];         /* rounds to which the rank has given a record */
byte known[W];            /* verdicts that it has heard */
byte planned[W];          /* operations that it has split */
byte records[VERDICTS];   /* per round: ranks that have given a record */
byte cuts[VERDICTS*W];    /* per verdict and rank: the operation from which on it counts; the same for all without MUT 3 */
byte suspected[VERDICTS]; /* MUT 4: ranks that have begun a round by themselves */
byte splits[W*OPS];       /* per operation: 1 + the verdicts by which it was split */
bool dead;
byte i, j;

#define C(v,w) ((v)*W+(w))
/* Everybody has the sums of all vectors before u. */
#define WINDOW(u) ((u) < D || has[((u) < D -> 0 : (u)-D)]==ALL)
#define KEPT(w,u) (MUT==2 -> !(has[u] & BIT(w)) : has[u]!=ALL)
#define HEARD(x) ((x)==1 || !dead)
#define ENDED (has[0]==ALL && has[1]==ALL && (U<3 || has[U-1]==ALL))

#define VECTOR(u) \
 :: d_step { (u)==sent[w] && WINDOW(u) -> sent[w]++; \
      if :: HEARD(WAY(w)) -> vectors[V(WAY(w),u)] = vectors[V(WAY(w),u)] | BIT(w) :: else fi } \
 :: d_step { (u)<sent[w] && (u)>=again[w] && KEPT(w,u) && HEARD(WAY(w)) && !(vectors[V(WAY(w),u)] & BIT(w)) -> \
      vectors[V(WAY(w),u)] = vectors[V(WAY(w),u)] | BIT(w); \
      if :: MUT==1 && array[w*U+(u)]!=input -> spoilt[V(WAY(w),u)] = spoilt[V(WAY(w),u)] | BIT(w) :: else fi } \
 :: d_step { !(has[u] & BIT(w)) && HEARD(WAY(w)) && vectors[V(WAY(w),u)]==ALL -> \
      array[w*U+(u)] = (spoilt[V(WAY(w),u)] -> wrong : sum); has[u] = has[u] | BIT(w); assert(array[w*U+(u)]==sum) }
#if U==3
#define EACH VECTOR(0) VECTOR(1) VECTOR(2)
#else
#define EACH VECTOR(0) VECTOR(1)
#endif

proctype Rank(byte w) {
  do
  EACH
  /* A record: by itself (a rail that was down returns only while it answers), or since another rank waits for it. */
  :: d_step { recorded[w]==known[w] && known[w] < VERDICTS && (known[w]==0 || !dead) && !ENDED ->
       if :: MUT==4 -> suspected[known[w]] = suspected[known[w]] | BIT(w) :: else fi;
       records[known[w]] = records[known[w]] | BIT(w); cuts[C(known[w],w)] = planned[w]; recorded[w]++ }
  :: d_step { recorded[w]==known[w] && known[w] < VERDICTS && records[known[w]]!=0 ->
       records[known[w]] = records[known[w]] | BIT(w); cuts[C(known[w],w)] = planned[w]; recorded[w]++ }
  :: d_step { recorded[w] > known[w] && records[known[w]]==ALL ->
       /* The largest of all records; the first to hear writes it for everybody, the others write the same. */
       i = 0; j = 0;
       do :: i < W -> j = MX(j, cuts[C(known[w],i)]); i++ :: else -> break od;
       if :: MUT==3 -> skip :: else -> i = 0; do :: i < W -> cuts[C(known[w],i)] = j; i++ :: else -> break od fi;
       if :: MUT==4 && !(suspected[known[w]] & BIT(w)) -> recorded[w] = VERDICTS; known[w] = VERDICTS
          :: else -> known[w]++ fi;
       if :: MUT==5 -> again[w] = sent[w] :: else fi;
       i = 0; j = 0 }
  :: d_step { planned[w] < OPS && (MUT==6 || recorded[w]==known[w]) ->
       i = 0; j = 0;
       do :: i < known[w] -> if :: cuts[C(i,w)] <= planned[w] -> j = i+1 :: else fi; i++ :: else -> break od;
       splits[w*OPS+planned[w]] = j+1;
       i = 0;
       do :: i < W -> assert(splits[i*OPS+planned[w]]==0 || splits[i*OPS+planned[w]]==j+1); i++ :: else -> break od;
       planned[w]++; i = 0; j = 0 }
  :: d_step { ENDED && planned[w]==OPS && recorded[w]==known[w] && (known[w]==VERDICTS || records[known[w]]==0) -> skip }; break
  od
}
/* Rail 0 fails once, and its switch comes back without what it had; a rail that has returned stays. */
proctype Failures() {
  if
  :: d_step { records[1]==0 -> dead = true };
     d_step { i = 0; do :: i < U -> vectors[V(0,i)] = 0; spoilt[V(0,i)] = 0; i++ :: else -> break od; i = 0; dead = false }
  :: d_step { records[1]==0 -> dead = true }
  :: skip
  fi
}
init { atomic { run Failures(); run Rank(0); run Rank(1);
#if W==3
  run Rank(2)
#endif
} }
