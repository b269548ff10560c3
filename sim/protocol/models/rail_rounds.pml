/* The rounds in which the ranks of several rails agree which of them are broken (docs/explanation/rail-failures.md).
 *
 * A round is an all-gather of a record of each rank, on a stream of its own on every rail that is asked; the first rail that brings
 * it counts.  A record says which rails are late with rounds before this one (they are not settled), and which of these the rank
 * suspects: a rank is free to suspect a rail that is only late.  From all records of a round everybody computes which rails are in
 * use and which are asked for the next round.  Rail 0 fails at any time and may return; rail 1 lives, but may be as late as it likes.
 * Every rank must come to the end of all rounds (Spin's invalid end states), and all must come to the same verdicts.
 *
 * MUT 1: only rails that are settled are asked.            MUT 2: those and the rails in use are asked.
 * MUT 3: a rank decides by its own record.                 MUT 4: a rank counts a round that other ranks have not recorded for. */
#ifndef W
#define W 2
#endif
#ifndef K
#define K 3
#endif
#ifndef MUT
#define MUT 0
#endif
#define ALL ((1<<W)-1)
#define RAILS 3
#define BIT(x) (1<<(x))
#define AT(k,w) ((k)*W+(w))

byte given[2*K];          /* per rail and round: ranks whose record is there */
byte come[W*2];           /* per rank and rail: rounds (bits) that have come */
byte settled[K*W];        /* per round and rank: what the record says (rails) */
byte suspected[K*W];
byte begun[W], ended[W];  /* rounds */
byte up[K+1], asked[K+1]; /* per round: by the verdict before it; the same for all */
byte first;               /* verdicts that some rank has come to: bit per round */
bool dead;
byte s, d, u, a, i;

/* The rounds before k that were asked over rail r have come to rank w. */
#define CAME(w,r,i) (!(asked[i] & BIT(r)) || (come[(w)*2+(r)] & BIT(i)))
#define SETTLED(w,r) ((begun[w] < 1 || CAME(w,r,0)) && (begun[w] < 2 || CAME(w,r,1)))
#define DUE(w,r,k) ((asked[k] & BIT(r)) && !(come[(w)*2+(r)] & BIT(k)) && begun[w] > (k) && ((r)==1 || !dead))
#define COME(r,k) \
 :: d_step { DUE(w,r,k) && (given[(r)*K+(k)]==ALL || MUT==4) -> come[w*2+(r)] = come[w*2+(r)] | BIT(k) }

#define BEGIN(suspicion) \
 :: d_step { begun[w]==ended[w] && begun[w] < K -> \
      s = (SETTLED(w,0) -> 1 : 0) | (SETTLED(w,1) -> 2 : 0); \
      settled[AT(begun[w],w)] = s; suspected[AT(begun[w],w)] = (suspicion) & up[begun[w]] & ~s & RAILS; \
      if :: asked[begun[w]] & 1 -> given[begun[w]] = given[begun[w]] | BIT(w) :: else fi; \
      if :: asked[begun[w]] & 2 -> given[K+begun[w]] = given[K+begun[w]] | BIT(w) :: else fi; \
      begun[w]++; s = 0 }

proctype Rank(byte w) {
  do
  BEGIN(0) BEGIN(1) BEGIN(2) BEGIN(3)
  COME(0,0) COME(1,0) COME(0,1) COME(1,1) COME(0,2) COME(1,2)
  :: d_step { begun[w] > ended[w] && ((come[w*2] | come[w*2+1]) & BIT(ended[w])) ->
       s = RAILS; d = 0; i = 0;
       do :: i < W ->
            if :: MUT==3 && i != w
               :: else -> s = s & settled[AT(ended[w],i)]; d = d | suspected[AT(ended[w],i)]
            fi; i++
          :: else -> break od;
       u = up[ended[w]];
       if :: (u & ~d) != 0 -> u = (u & ~d) | (s & ~d & RAILS)
          :: else -> if :: (s & ~d & ~u) != 0 -> u = s & ~d & ~u & RAILS :: else fi
       fi;
       a = (MUT==1 -> (s -> s : RAILS) : (MUT==2 -> s | u : RAILS));
       ended[w]++;
       assert(u != 0 && (!(first & BIT(ended[w])) || (up[ended[w]]==u && asked[ended[w]]==a)));
       up[ended[w]] = u; asked[ended[w]] = a; first = first | BIT(ended[w]);
       s = 0; d = 0; u = 0; a = 0; i = 0 }
  :: ended[w]==K -> break
  od
}
proctype Failures() {
  if
  :: d_step { dead = true }; d_step { dead = false }
  :: d_step { dead = true }
  :: skip
  fi
}
init { atomic { up[0] = RAILS; asked[0] = RAILS; run Failures(); run Rank(0); run Rank(1);
#if W==3
  run Rank(2)
#endif
} }
