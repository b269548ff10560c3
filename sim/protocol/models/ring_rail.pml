/* A rail that is a ring of connections, loses one of them, and gets its stream back (docs/explanation/rail-failures.md).
 *
 * Vector u begins at rank u modulo N: each rank adds its own to what came from the one before, and the last one sends the
 * whole sum round.  A rank keeps T slots: its own vector, what came, and the sum.  A connection may break at any time: what
 * is in it is lost, and it is made again.  A rank that lacks a sum gives its vector again: where the chain begins it is begun
 * again, elsewhere the sum is asked for.  The ranks may go on over another rail, whose switch adds up the same vectors, each
 * at its own time, and come back to a ring in which the old messages and slots still are.
 *
 * MUT 1: a partial sum that comes again is added to what is there.  MUT 2: a slot takes an older vector back.
 * MUT 3: who cannot answer does not pass on what is asked.          MUT 4: a chain that is begun again ends at who has the sum.
 * MUT 5: a rank sends before all have the sum of its slot.          MUT 6: a chain is not begun again where it begins.
 * MUT 7: a rank that comes back to the ring does not send again. */
#ifndef N
#define N 3
#endif
#ifndef U
#define U 2
#endif
#ifndef T
#define T 1
#endif
#ifndef BREAKS
#define BREAKS 1
#endif
#ifndef VERDICTS
#define VERDICTS 0
#endif
#ifndef MUT
#define MUT 0
#endif
#define ALL ((1<<N)-1)
#define BIT(w) (1<<(w))
#define WAY(w) (known[w] & 1)
#define S(w,u) ((w)*T+((u) % T))
#define BEGINS(w,u) ((u) % N == (w))
#define ENDS(w,u) (((u)+N-1) % N == (w))
#define BEFORE(w) (((w)+N-1) % N)
#define CAPACITY 3
#define TRIES (BREAKS+VERDICTS+1)

mtype = { partial, sum, ask };
chan link[N] = [CAPACITY] of { mtype, byte, byte, byte }; /* from rank w on: hops left, the vector, ranks in it */
byte slot[N*T];     /* 1 + the vector that has the slot */
bool own[N*T];      /* the rank's own vector is there */
bool held[N*T];     /* what came waits for it */
bool done[N*T];
byte inside[N*T];       /* ranks whose vectors are in what is there */
byte has[U];        /* ranks that have the sum */
byte sent[N];       /* vectors that the rank has sent for the first time */
byte tries[N*U];    /* how often it has given one again */
byte known[N];      /* verdicts that it has heard: after an odd one it goes over the other rail */
byte there[U];     /* there: ranks whose vector has come */
byte breaks;
byte k;

/* Everybody has the sum of the vector that had the slot before. */
#define WINDOW(u) (MUT==5 || (u) < T || has[((u) < T -> 0 : (u)-T)]==ALL)
#define ENDED (has[0]==ALL && has[U-1]==ALL && (U<3 || has[1]==ALL))
/* A rank waits for so long that nothing is on its way any more, and all others have given theirs. */
#define GIVEN(u) (sent[0] > (u) && sent[1] > (u) && sent[N-1] > (u) && WAY(0)==0 && WAY(1)==0 && WAY(N-1)==0)
#define QUIET (len(link[0])==0 && len(link[1])==0 && (N<3 || len(link[N-1])==0))

inline pass_on(kind, hops, u, m) {
  if :: len(link[w]) < CAPACITY -> link[w]!kind,hops,u,m :: else fi /* a repetition, which is made again */
}
inline deliver(u, m) { assert((m)==ALL); has[u] = has[u] | BIT(w) }
/* Whether the vector has its slot now: `taken`. */
inline claim(u) {
  taken = slot[S(w,u)]==(u)+1;
  if :: !taken && (MUT==2 || slot[S(w,u)] < (u)+1) ->
       taken = true; slot[S(w,u)] = (u)+1; own[S(w,u)] = false; held[S(w,u)] = false; done[S(w,u)] = false; inside[S(w,u)] = 0
     :: else fi
}
inline add(u) {
  held[S(w,u)] = false;
  assert(!(inside[S(w,u)] & BIT(w)));
  inside[S(w,u)] = inside[S(w,u)] | BIT(w);
  if :: ENDS(w,u) -> done[S(w,u)] = true; deliver(u, inside[S(w,u)]); pass_on(sum, N-1, u, ALL)
     :: else -> pass_on(partial, 0, u, inside[S(w,u)]) fi
}
inline give(u) {
  again = own[S(w,u)] && slot[S(w,u)]==(u)+1;
  claim(u);
  if :: taken ->
       own[S(w,u)] = true;
       if :: done[S(w,u)] -> deliver(u, inside[S(w,u)])
          :: else ->
            if :: BEGINS(w,u) -> if :: MUT==6 && again :: else -> pass_on(partial, 0, u, BIT(w)) fi
               :: else ->
                 if :: held[S(w,u)] -> add(u)
                    :: else -> if :: again -> pass_on(ask, N-1, u, 0) :: else fi fi fi fi
     :: else fi
}
inline hear_ask(u, h) {
  if :: slot[S(w,u)]==(u)+1 && done[S(w,u)] -> pass_on(sum, N-1, u, ALL)
     :: else ->
       if :: BEGINS(w,u) -> if :: slot[S(w,u)]==(u)+1 && own[S(w,u)] -> pass_on(partial, 0, u, BIT(w)) :: else fi
          :: else -> if :: h > 1 && MUT!=3 -> pass_on(ask, h-1, u, 0) :: else fi fi fi
}
inline hear(kind, u, h, m) {
  claim(u);
  if :: taken && kind==sum ->
       done[S(w,u)] = true; held[S(w,u)] = false; inside[S(w,u)] = m;
       if :: own[S(w,u)] -> deliver(u, m) :: else fi;
       if :: h > 1 -> pass_on(sum, h-1, u, m) :: else fi
     :: taken && kind==partial && done[S(w,u)] -> if :: MUT!=4 -> pass_on(sum, N-1, u, ALL) :: else fi
     :: taken && kind==partial && !done[S(w,u)] ->
       if :: MUT==1 -> inside[S(w,u)] = inside[S(w,u)] | m :: else -> inside[S(w,u)] = m fi;
       held[S(w,u)] = true;
       if :: own[S(w,u)] -> add(u) :: else fi
     :: else fi
}

/* All who wait give theirs again as often. */
#define NEXT(x,u) ((has[u] & BIT(x)) || tries[w*U+(u)] <= tries[(x)*U+(u)])
#define AGAIN(u) \
 :: d_step { GIVEN(u) && QUIET && !(has[u] & BIT(w)) && tries[w*U+(u)] < TRIES && \
      NEXT(0,u) && NEXT(1,u) && NEXT(N-1,u) -> \
      tries[w*U+(u)]++; give(u); taken = false; again = false }
#define OVER(u) \
 :: d_step { WAY(w)==1 && (u) < sent[w] && has[u]!=ALL && !(there[u] & BIT(w)) -> there[u] = there[u] | BIT(w) } \
 :: d_step { WAY(w)==1 && !(has[u] & BIT(w)) && there[u]==ALL -> has[u] = has[u] | BIT(w) }

proctype Rank(byte w) {
  bool taken, again;
  mtype kind;
  byte h, u, m;
  do
  :: d_step { sent[w] < U && WINDOW(sent[w]) ->
       sent[w]++; if :: WAY(w)==0 -> k = sent[w]-1; give(k) :: else fi; taken = false; again = false; k = 0 }
  AGAIN(0) AGAIN(1)
#if U==3
  AGAIN(2)
#endif
#if VERDICTS
  OVER(0) OVER(1)
#if U==3
  OVER(2)
#endif
  /* Who moves sends again what some rank lacks. */
  :: d_step { known[w] < VERDICTS && !ENDED -> known[w]++;
       if :: WAY(w)==0 && MUT!=7 -> k = 0;
            do :: k < sent[w] -> if :: has[k]!=ALL -> give(k) :: else fi; k++ :: else -> break od; k = 0
          :: else fi; taken = false; again = false }
#endif
  :: d_step { WAY(w)==0 && link[BEFORE(w)]?[kind,h,u,m] -> link[BEFORE(w)]?kind,h,u,m;
       if :: kind==ask -> hear_ask(u, h) :: else -> hear(kind, u, h, m) fi;
       kind = 0; h = 0; u = 0; m = 0; taken = false; again = false }
  :: d_step { ENDED -> skip }; break
  od
}
proctype Failures() {
  do
  :: d_step { breaks < BREAKS && !ENDED && nempty(link[0]) -> breaks++; do :: len(link[0]) > 0 -> link[0]?_,_,_,_ :: else -> break od }
  :: d_step { breaks < BREAKS && !ENDED && nempty(link[1]) -> breaks++; do :: len(link[1]) > 0 -> link[1]?_,_,_,_ :: else -> break od }
  :: d_step { breaks < BREAKS && !ENDED && nempty(link[N-1]) -> breaks++; do :: len(link[N-1]) > 0 -> link[N-1]?_,_,_,_ :: else -> break od }
  :: d_step { breaks==BREAKS || ENDED -> skip }; break
  od
}
init { atomic { run Failures(); run Rank(0); run Rank(1);
#if N==3
  run Rank(2)
#endif
} }
