/* p4sgd.p4 and the workers' slot ring: W workers, T slots, S rounds; worker 0 has a window of its
 * own (WIN0), the others T.  The network is the set of all packets ever sent: any of them may be
 * delivered at any later time, any number of times, or never.
 * RS  restarts of the switch (registers zeroed, same generation)
 * MUT 1 one parity bit instead of the round's number in the slot's tags
 *     2 a worker takes any confirmation of its slot for its round (Algorithm 3 as printed)
 *     3 a slot's next round begins when the sum is there, not when it is confirmed
 *     4 confirmed rounds are not acknowledged again
 *     5 a duplicate is added once more
 *     6 who awaits a confirmation does not send its vector again
 *     7 an acknowledgement of a round before the slot's is dropped
 * Every action changes the state; stale deliveries may be switched off for ever at any time, so a
 * deadlock is exactly "not completed".  Run also with -DNP. */
#ifndef W
#define W 2
#endif
#ifndef T
#define T 2
#endif
#ifndef S
#define S 4
#endif
#ifndef WIN0
#define WIN0 T
#endif
#ifndef RS
#define RS 0
#endif
#ifndef MUT
#define MUT 0
#endif
#define BIT(k) (1<<(k))
#define ALL (BIT(W)-1)
#define WINDOW(w) ((w)==0 -> WIN0 : T)
#define FIRST_ZERO(b) (!((b)&1) -> 0 : (!((b)&2) -> 1 : (!((b)&4) -> 2 : (!((b)&8) -> 3 : 4))))

byte next[W], sums[W], done[W];      /* workers: rounds begun; sums taken, rounds confirmed (a bit each) */
byte fa[W], cnf[W];                  /* sent to each worker, a bit a round; PA and ACK are known from next and sums */
byte tag[T], bits[T], atag[T], abits[T];  /* slots: round + 1 (0 empty), who is in it; who has its sum */
byte held[T*W];                      /* ghosts: whose round (+ 1) the lanes hold */
byte nrs, i, e;
bool quiet = false;

#define STALE (!quiet)
#define OLDEST(w) FIRST_ZERO(done[w])
#define HAS(w,s) (sums[w] & BIT(s))
#define WAITS(w,s) (OLDEST(w)==(s) && (s)<next[w])
/* what a worker repeats for as long as it takes */
#if MUT==6
#define ASKS(w,s) (WAITS(w,s) && !HAS(w,s))
#else
#define ASKS(w,s) WAITS(w,s)
#endif
#if MUT==4
#define SAYS(w,s) (WAITS(w,s) && HAS(w,s))
#else
#define SAYS(w,s) (OLDEST(w)<next[w] && OLDEST(w)>=(s) && HAS(w,s))
#endif

#if MUT==3
#define BASE(w) FIRST_ZERO(sums[w])
#else
#define BASE(w) OLDEST(w)
#endif
#define BEGIN(w) :: d_step { next[w]<S && next[w]<BASE(w)+WINDOW(w) -> next[w]++ }

#if MUT==1
#define SAME(t,s) ((t)!=0 && (((t)-1)/T)%2==((s)/T)%2)
#define FRESH(t,s) (!SAME(t,s))
#define OLDER(t,s) false
#else
#define SAME(t,s) ((t)==(s)+1)
#define FRESH(t,s) ((t)<(s)+1)
#define OLDER(t,s) ((t)>(s)+1)
#endif
#define FULL(t,b,s) (SAME(t,s) && (b)==ALL)

/* a vector at the switch; one that is there already changes nothing */
#define PA(w,s) :: d_step { (s)<next[w] && (STALE || ASKS(w,s)) && \
     (FRESH(tag[(s)%T],s) || (SAME(tag[(s)%T],s) && (MUT==5 || !(bits[(s)%T] & BIT(w))))) && \
     !(MUT==5 && held[((s)%T)*W+(w)]==99) -> e=(s)%T; \
   if :: FRESH(tag[e],s) -> tag[e]=(s)+1; bits[e]=0; i=0; do :: i<W -> held[e*W+i]=0; i++ :: else -> break od \
      :: else fi; \
   held[e*W+(w)]=(bits[e] & BIT(w) -> 99 : (s)+1); bits[e]=bits[e]|BIT(w); \
   if :: bits[e]==ALL -> i=0; do :: i<W -> assert(held[e*W+i]==(s)+1); fa[i]=fa[i]|BIT(s); i++ :: else -> break od \
      :: else fi; e=0; i=0 }

/* an acknowledgement: of a round before the slot's it is confirmed at once, to the sender alone */
#define OLD(s) OLDER(tag[(s)%T],s)
#define ACK(w,s) :: d_step { HAS(w,s) && (STALE || SAYS(w,s)) && !OLD(s) && \
     (FRESH(atag[(s)%T],s) || (SAME(atag[(s)%T],s) && !(abits[(s)%T] & BIT(w)))) -> e=(s)%T; \
   if :: FRESH(atag[e],s) -> atag[e]=(s)+1; abits[e]=0 :: else fi; \
   abits[e]=abits[e]|BIT(w); \
   if :: abits[e]==ALL -> i=0; do :: i<W -> cnf[i]=cnf[i]|BIT(s); i++ :: else -> break od :: else fi; e=0; i=0 } \
 :: d_step { HAS(w,s) && (STALE || SAYS(w,s)) && OLD(s) && MUT!=7 && !(cnf[w] & BIT(s)) -> cnf[w]=cnf[w]|BIT(s) }

/* a sum and a confirmation at a worker: one ever sent, or what the switch answers now */
#define FA(w,s) :: d_step { (s)<next[w] && !HAS(w,s) && (fa[w] & BIT(s)) && \
     (STALE || (ASKS(w,s) && FULL(tag[(s)%T],bits[(s)%T],s))) -> sums[w]=sums[w]|BIT(s) }
#if MUT==2
#define CONFIRMS(w,s) ((cnf[w] & BIT(s)) || ((s)>=T && (cnf[w] & (BIT(s)>>T))))
#else
#define CONFIRMS(w,s) (cnf[w] & BIT(s))
#endif
#define CNF(w,s) :: d_step { HAS(w,s) && !(done[w] & BIT(s)) && CONFIRMS(w,s) && \
     (STALE || (SAYS(w,s) && (OLD(s) -> MUT!=7 : FULL(atag[(s)%T],abits[(s)%T],s)))) -> done[w]=done[w]|BIT(s) }

#define ROUNDS(X,w) X(w,0) X(w,1) X(w,2) X(w,3)
#define WORKER(w) BEGIN(w) ROUNDS(PA,w) ROUNDS(ACK,w) ROUNDS(FA,w) ROUNDS(CNF,w)
#if W==3
#define EVERY(x) (x[0]==BIT(S)-1 && x[1]==BIT(S)-1 && x[2]==BIT(S)-1)
#else
#define EVERY(x) (x[0]==BIT(S)-1 && x[1]==BIT(S)-1)
#endif
/* After a restart the last confirmations may be missed by whom nobody hears any more: all have their sums. */
#if RS
#define COMPLETE EVERY(sums)
#else
#define COMPLETE (EVERY(sums) && EVERY(done))
#endif

active proctype Slots() {
  do
  WORKER(0) WORKER(1)
#if W==3
  WORKER(2)
#endif
  :: d_step { nrs<RS -> nrs++; i=0; do :: i<T -> tag[i]=0; bits[i]=0; atag[i]=0; abits[i]=0; i++ :: else -> break od;
       i=0; do :: i<T*W -> held[i]=0; i++ :: else -> break od; i=0 }
  :: d_step { !quiet -> quiet=true }
  :: quiet && COMPLETE -> break
  od
}
