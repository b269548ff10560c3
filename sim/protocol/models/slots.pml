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
 *     8 the bound leaves no room
 *     9 a slot that a far vector took is kept
 *     10 an acknowledgement of a round before the slot's is confirmed before every worker has said what it lacks
 * BOUND 1: workers say which sum they lack; what is T or more ahead of the least of these takes no slot, and gives back
 *       what it took before all had said so
 * FAR   how many vectors and acknowledgements of far rounds somebody sends in worker 0's name; each may say that
 *       worker 0 is that far
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
#ifndef BOUND
#define BOUND 0
#endif
#ifndef FAR
#define FAR 0
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

#if BOUND
byte lacks[W];                       /* what the switch has heard: 1 + the oldest round whose sum the worker lacks */
#if W==3
#define HEARD (lacks[0]!=0 && lacks[1]!=0 && lacks[2]!=0)
#define LEAST MIN(lacks[0],MIN(lacks[1],lacks[2]))
#else
#define HEARD (lacks[0]!=0 && lacks[1]!=0)
#define LEAST MIN(lacks[0],lacks[1])
#endif
#define MIN(a,b) ((a)<(b) -> (a) : (b))
#if MUT==8
#define ROOM (T-1)
#else
#define ROOM T
#endif
#define BEYOND(s) (HEARD && (s)+1>=LEAST+ROOM)
/* any that the worker has sent may come, at any later time; each of its frames says where it was then: a vector of round
 * s that the window was open for s, an acknowledgement what the worker lacked when it took that sum */
byte lacked[W*S];
#define LACKS(w) FIRST_ZERO(sums[w])
#define HEAR(w,a) :: d_step { (a)<=LACKS(w) && next[w]>0 && lacks[w]<(a)+1 && \
     (STALE || (OLDEST(w)<next[w] && (a)==LACKS(w))) -> lacks[w]=(a)+1 }
#define SAID_WITH_PA(w,s) (lacks[w]>=((s)+2>WINDOW(w) -> (s)+2-WINDOW(w) : 1))
#define SAID_WITH_ACK(w,s) (lacks[w]>lacked[(w)*S+(s)])
#define TAKEN(w,s) ; lacked[(w)*S+(s)]=LACKS(w)
#define FORGET_LACKS i=0; do :: i<W -> lacks[i]=0; i++ :: else -> break od; i=0;
#else
#define BEYOND(s) false
#define HEARD true
#define SAID_WITH_PA(w,s) true
#define SAID_WITH_ACK(w,s) true
#define TAKEN(w,s)
#define FORGET_LACKS
#endif
#if MUT==9
#define KEPT(t) true
#else
#define KEPT(t) ((t)==0 || !BEYOND((t)-1))
#endif

#if MUT==1
#define SAME(t,s) ((t)!=0 && (((t)-1)/T)%2==((s)/T)%2)
#define FRESH(t,s) (!SAME(t,s))
#define OLDER(t,s) false
#else
#define SAME(t,s) ((t)==(s)+1)
#define FRESH(t,s) (!SAME(t,s) && !BEYOND(s) && ((t)<(s)+1 || !KEPT(t)))
#define OLDER(t,s) (!BEYOND(s) && (t)>(s)+1 && KEPT(t))
#endif
#define FULL(t,b,s) (SAME(t,s) && (b)==ALL)

/* a vector at the switch; one that is there already changes nothing */
#define PA(w,s) :: d_step { (s)<next[w] && (STALE || ASKS(w,s)) && SAID_WITH_PA(w,s) && \
     (FRESH(tag[(s)%T],s) || (SAME(tag[(s)%T],s) && (MUT==5 || !(bits[(s)%T] & BIT(w))))) && \
     !(MUT==5 && held[((s)%T)*W+(w)]==99) -> e=(s)%T; \
   if :: FRESH(tag[e],s) -> tag[e]=(s)+1; bits[e]=0; i=0; do :: i<W -> held[e*W+i]=0; i++ :: else -> break od \
      :: else fi; \
   held[e*W+(w)]=(bits[e] & BIT(w) -> 99 : (s)+1); bits[e]=bits[e]|BIT(w); \
   if :: bits[e]==ALL -> i=0; do :: i<W -> assert(held[e*W+i]==(s)+1); fa[i]=fa[i]|BIT(s); i++ :: else -> break od \
      :: else fi; e=0; i=0 }

/* an acknowledgement: of a round before the slot's it is confirmed at once, to the sender alone */
#define OLD(s) OLDER(tag[(s)%T],s)
#if MUT==7
#define CONFIRMED(s) false
#elif MUT==10
#define CONFIRMED(s) OLD(s)
#else
#define CONFIRMED(s) (OLD(s) && HEARD)
#endif
/* the vectors' slot lets an acknowledgement through */
#define ASKED(s) (!OLD(s) && (SAME(tag[(s)%T],s) || !BEYOND(s)))
#define ACK(w,s) :: d_step { HAS(w,s) && (STALE || SAYS(w,s)) && SAID_WITH_ACK(w,s) && ASKED(s) && \
     (FRESH(atag[(s)%T],s) || (SAME(atag[(s)%T],s) && !(abits[(s)%T] & BIT(w)))) -> e=(s)%T; \
   if :: FRESH(atag[e],s) -> atag[e]=(s)+1; abits[e]=0 :: else fi; \
   abits[e]=abits[e]|BIT(w); \
   if :: abits[e]==ALL -> i=0; do :: i<W -> cnf[i]=cnf[i]|BIT(s); i++ :: else -> break od :: else fi; e=0; i=0 } \
 :: d_step { HAS(w,s) && (STALE || SAYS(w,s)) && SAID_WITH_ACK(w,s) && CONFIRMED(s) && !(cnf[w] & BIT(s)) -> cnf[w]=cnf[w]|BIT(s) }

/* a sum and a confirmation at a worker: one ever sent, or what the switch answers now */
#define FA(w,s) :: d_step { (s)<next[w] && !HAS(w,s) && (fa[w] & BIT(s)) && \
     (STALE || (ASKS(w,s) && FULL(tag[(s)%T],bits[(s)%T],s))) -> sums[w]=sums[w]|BIT(s) TAKEN(w,s) }
#if MUT==2
#define CONFIRMS(w,s) ((cnf[w] & BIT(s)) || ((s)>=T && (cnf[w] & (BIT(s)>>T))))
#else
#define CONFIRMS(w,s) (cnf[w] & BIT(s))
#endif
#define CNF(w,s) :: d_step { HAS(w,s) && !(done[w] & BIT(s)) && CONFIRMS(w,s) && \
     (STALE || (SAYS(w,s) && SAID_WITH_ACK(w,s) && (OLD(s) -> CONFIRMED(s) : FULL(atag[(s)%T],abits[(s)%T],s)))) -> done[w]=done[w]|BIT(s) }

/* frames of far rounds in the name of worker 0 */
#if FAR
byte nfar;
#define FARTAG 40
#define TAKES(t) (!BEYOND(FARTAG-1) && (t)<FARTAG)
#define FARPA(k) :: d_step { STALE && nfar<FAR && TAKES(tag[k]) -> nfar++; tag[k]=FARTAG; bits[k]=1; i=0; \
     do :: i<W -> held[(k)*W+i]=0; i++ :: else -> break od; i=0; held[(k)*W]=99 }
#define FARACK(k) :: d_step { STALE && nfar<FAR && TAKES(atag[k]) && !BEYOND(FARTAG-1) -> nfar++; atag[k]=FARTAG; abits[k]=1 }
#define FARSAYS :: d_step { STALE && nfar<FAR && lacks[0]<FARTAG -> nfar++; lacks[0]=FARTAG }
#else
#define FARPA(k)
#define FARACK(k)
#define FARSAYS
#endif

#define ROUNDS(X,w) X(w,0) X(w,1) X(w,2) X(w,3)
#if BOUND
#define HEARS(w) ROUNDS(HEAR,w) HEAR(w,4)
#else
#define HEARS(w)
#endif
#define WORKER(w) HEARS(w) BEGIN(w) ROUNDS(PA,w) ROUNDS(ACK,w) ROUNDS(FA,w) ROUNDS(CNF,w)
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
       i=0; do :: i<T*W -> held[i]=0; i++ :: else -> break od; FORGET_LACKS i=0 }
  FARPA(0) FARACK(0) FARSAYS
#if T>1
  FARPA(1)
#endif
  :: d_step { !quiet -> quiet=true }
  :: quiet && COMPLETE -> break
  od
}
