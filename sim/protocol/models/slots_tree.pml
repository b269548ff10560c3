/* p4sgd.p4 on a tree: workers 0 and 1 under a leaf, the leaf and worker 2 under the top; T slots on
 * each switch, S rounds, windows of T.  The network is the set of all packets ever sent: any of
 * them may be delivered at any later time, any number of times, or never.  What a leaf passes down
 * it does not keep, so a packet from the top to the leaf is one to both its workers.
 * RL, RS  restarts of the leaf and of the top (registers zeroed, same generation)
 * MUT 1 the leaf sends its sum up before every worker is in
 *     2 the leaf does not send its sum up again for a duplicate
 *     3 the leaf confirms what its own workers have acknowledged
 *     4 the leaf does not send its acknowledgement up again for a duplicate
 *     5 the leaf's bound leaves no room
 *     6 a slot that a far vector took is kept
 * BOUND 1: workers say which sum they lack, and the leaf what any of its workers lacks; what is T or more ahead of the least
 *       of these takes no slot of that switch, and gives back what it took before all below had said so
 * FAR   how many vectors of far rounds somebody sends in worker 0's name; each may say that worker 0 is that far
 * Every action changes the state; stale deliveries may be switched off for ever at any time, so a
 * deadlock is exactly "not completed".  Run also with -DNP. */
#ifndef T
#define T 1
#endif
#ifndef S
#define S 3
#endif
#ifndef RL
#define RL 0
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
#define ALL 3
#define FIRST_ZERO(b) (!((b)&1) -> 0 : (!((b)&2) -> 1 : (!((b)&4) -> 2 : (!((b)&8) -> 3 : 4))))
#define LEAF 0
#define TOP 1

byte next[3], sums[3], done[3];      /* workers: rounds begun; sums taken, rounds confirmed (a bit each) */
byte lpa, lack;                      /* the leaf's to the top, a bit a round */
byte fa[2], cnf[2];                  /* the top's, a bit a round: [0] to the leaf, [1] to worker 2 */
byte own[2];                         /* the leaf's own confirmations to workers 0 and 1 */
/* slots of both switches, at X*T+slot: round + 1 (0 empty), who is in it; who has its sum */
byte tag[2*T], bits[2*T], atag[2*T], abits[2*T];
byte held[2*T*2];                    /* ghosts: whose round (+ 1) the lanes hold */
byte nrl, nrs, i, e;
bool quiet = false;

#define STALE (!quiet)
#define AT(x,s) ((x)*T+(s)%T)
#if BOUND
byte lacks[4];                       /* heard at X*2+member: 1 + the oldest round whose sum it lacks; 0 nothing */
byte lacked[4*S];                    /* that, less 1, when it had the sum (the leaf: when all its workers had acknowledged) */
#define MIN(a,b) ((a)<(b) -> (a) : (b))
#define HEARD(x) (lacks[(x)*2]!=0 && lacks[(x)*2+1]!=0)
#define LEAST(x) MIN(lacks[(x)*2],lacks[(x)*2+1])
#if MUT==5
#define ROOM(x) (T-1+(x))
#else
#define ROOM(x) T
#endif
#define BEYOND(x,s) (HEARD(x) && (s)+1>=LEAST(x)+ROOM(x))
#if MUT==6
#define KEPT(x,t) true
#else
#define KEPT(x,t) ((t)==0 || !BEYOND(x,(t)-1))
#endif
#define LACKS(w) FIRST_ZERO(sums[w])
/* each vector and acknowledgement says at least this; any that was sent may come, at any later time */
#define WITH_PA(m,s) (lacks[m]>=((s)+2>T -> (s)+2-T : 1))
#define WITH_ACK(m,s) (lacks[m]>lacked[(m)*S+(s)])
#define TAKEN(w,s) ; lacked[((w)==2 -> 3 : (w))*S+(s)]=LACKS(w)
#define RACK_HAS(s) ; if :: HEARD(LEAF) && (lacked[2*S+(s)]==0 || lacked[2*S+(s)]>LEAST(LEAF)-1) -> lacked[2*S+(s)]=LEAST(LEAF)-1 :: else fi
#define HEAR(w,m,a) :: d_step { (a)<=LACKS(w) && next[w]>0 && lacks[m]<(a)+1 && \
     (STALE || (OLDEST(w)<next[w] && (a)==LACKS(w))) -> lacks[m]=(a)+1 }
#define HEAR_RACK(a) :: d_step { (a)<=MIN(LACKS(0),LACKS(1)) && (lpa || lack) && HEARD(LEAF) && (a)+1<=LEAST(LEAF) && lacks[2]<(a)+1 && \
     (STALE || ((a)+1==LEAST(LEAF) && RACK_SPEAKS)) -> lacks[2]=(a)+1 }
#define HEARS(a) HEAR(0,0,a) HEAR(1,1,a) HEAR(2,3,a) HEAR_RACK(a)
#define FORGET_LACKS(x) lacks[(x)*2]=0; lacks[(x)*2+1]=0;
#else
#define BEYOND(x,s) false
#define HEARD(x) true
#define KEPT(x,t) true
#define WITH_PA(m,s) true
#define WITH_ACK(m,s) true
#define TAKEN(w,s)
#define RACK_HAS(s)
#define HEARS(a)
#define FORGET_LACKS(x)
#endif
#if FAR
byte nfar;
#define FARTAG 40
#define FARPA :: d_step { STALE && nfar<FAR && !BEYOND(LEAF,FARTAG-1) && tag[0]<FARTAG -> nfar++; tag[0]=FARTAG; bits[0]=1; held[0]=99; held[1]=0 }
#define FARSAYS :: d_step { STALE && nfar<FAR && lacks[0]<FARTAG -> nfar++; lacks[0]=FARTAG }
#else
#define FARPA
#define FARSAYS
#endif
#define SAME(t,s) ((t)==(s)+1)
#define FRESH(x,t,s) (!SAME(t,s) && !BEYOND(x,s) && ((t)<(s)+1 || !KEPT(x,t)))
#define OLD(x,s) (!BEYOND(x,s) && tag[AT(x,s)]>(s)+1 && KEPT(x,tag[AT(x,s)]))
#define CONFIRMED(x,s) (OLD(x,s) && HEARD(x))
/* the vectors' slot lets an acknowledgement through */
#define ASKED(x,s) (!OLD(x,s) && (SAME(tag[AT(x,s)],s) || !BEYOND(x,s)))
#define FULL(x,s) (SAME(tag[AT(x,s)],s) && bits[AT(x,s)]==ALL)
#define AFULL(x,s) (SAME(atag[AT(x,s)],s) && abits[AT(x,s)]==ALL)

#define OLDEST(w) FIRST_ZERO(done[w])
#define HAS(w,s) (sums[w] & BIT(s))
/* what a worker, and the leaf for its workers, repeats for as long as it takes */
#define ASKS(w,s) (OLDEST(w)==(s) && (s)<next[w])
#define SAYS(w,s) (OLDEST(w)<next[w] && OLDEST(w)>=(s) && HAS(w,s))
#define LEAF_ASKS(s) (MUT!=2 && FULL(LEAF,s) && (ASKS(0,s) || ASKS(1,s)))
#define LEAF_SAYS(s) (MUT!=4 && !OLD(LEAF,s) && AFULL(LEAF,s) && (SAYS(0,s) || SAYS(1,s)))
#if S>2
#define RACK_SPEAKS (LEAF_ASKS(0) || LEAF_SAYS(0) || LEAF_ASKS(1) || LEAF_SAYS(1) || LEAF_ASKS(2) || LEAF_SAYS(2))
#else
#define RACK_SPEAKS (LEAF_ASKS(0) || LEAF_SAYS(0) || LEAF_ASKS(1) || LEAF_SAYS(1))
#endif

#define BEGIN(w) :: d_step { next[w]<S && next[w]<OLDEST(w)+T -> next[w]++ }

/* member m of switch x adds its vector */
#define ADD(x,m,s) e=AT(x,s); \
   if :: FRESH(x,tag[e],s) -> tag[e]=(s)+1; bits[e]=0; held[e*2]=0; held[e*2+1]=0 :: else fi; \
   held[e*2+(m)]=(s)+1; bits[e]=bits[e]|BIT(m)
#define NEW(x,m,s) (FRESH(x,tag[AT(x,s)],s) || (SAME(tag[AT(x,s)],s) && !(bits[AT(x,s)] & BIT(m))))
#define WHOLE(s) assert(held[e*2]==(s)+1 && held[e*2+1]==(s)+1)

#define TO_LEAF(w,s) :: d_step { (s)<next[w] && (STALE || ASKS(w,s)) && WITH_PA(w,s) && NEW(LEAF,w,s) -> ADD(LEAF,w,s); \
   if :: bits[e]==ALL || MUT==1 -> WHOLE(s); lpa=lpa|BIT(s) :: else fi; e=0 }
#define TO_TOP(m,s,sent) :: d_step { (sent) && WITH_PA(2+(m),s) && NEW(TOP,m,s) -> ADD(TOP,m,s); \
   if :: bits[e]==ALL -> WHOLE(s); fa[0]=fa[0]|BIT(s); fa[1]=fa[1]|BIT(s) :: else fi; e=0 }

/* acknowledgements: of a round before the slot's they are confirmed at once */
#define NEWACK(x,m,s) (FRESH(x,atag[AT(x,s)],s) || (SAME(atag[AT(x,s)],s) && !(abits[AT(x,s)] & BIT(m))))
#define NOTE(x,m,s) e=AT(x,s); if :: FRESH(x,atag[e],s) -> atag[e]=(s)+1; abits[e]=0 :: else fi; abits[e]=abits[e]|BIT(m)
#define ACK_LEAF(w,s) :: d_step { HAS(w,s) && (STALE || SAYS(w,s)) && WITH_ACK(w,s) && ASKED(LEAF,s) && NEWACK(LEAF,w,s) -> NOTE(LEAF,w,s); \
   if :: abits[e]==ALL && MUT==3 -> own[0]=own[0]|BIT(s); own[1]=own[1]|BIT(s) \
      :: abits[e]==ALL && MUT!=3 -> lack=lack|BIT(s) RACK_HAS(s) :: else fi; e=0 } \
 :: d_step { HAS(w,s) && (STALE || SAYS(w,s)) && WITH_ACK(w,s) && CONFIRMED(LEAF,s) && !(own[w] & BIT(s)) -> own[w]=own[w]|BIT(s) }
#define ACK_TOP(m,s,sent) :: d_step { (sent) && WITH_ACK(2+(m),s) && ASKED(TOP,s) && NEWACK(TOP,m,s) -> NOTE(TOP,m,s); \
   if :: abits[e]==ALL -> cnf[0]=cnf[0]|BIT(s); cnf[1]=cnf[1]|BIT(s) :: else fi; e=0 } \
 :: d_step { (sent) && WITH_ACK(2+(m),s) && CONFIRMED(TOP,s) && !(cnf[m] & BIT(s)) -> cnf[m]=cnf[m]|BIT(s) }

/* a sum and a confirmation at a worker: one ever sent, or what the switches answer now */
#define SUM(w,s,c,now) :: d_step { (s)<next[w] && !HAS(w,s) && (fa[c] & BIT(s)) && (STALE || (now)) -> sums[w]=sums[w]|BIT(s) TAKEN(w,s) }
#define END(w,s,said,now) :: d_step { HAS(w,s) && !(done[w] & BIT(s)) && (said) && (STALE || (SAYS(w,s) && (now))) -> \
   done[w]=done[w]|BIT(s) }
#define TOP_ENDS(s) (CONFIRMED(TOP,s) || (!OLD(TOP,s) && AFULL(TOP,s)))

#define BELOW(w,s) TO_LEAF(w,s) ACK_LEAF(w,s) \
  SUM(w,s,0,ASKS(w,s) && LEAF_ASKS(s) && FULL(TOP,s)) \
  END(w,s,(cnf[0] & BIT(s)) || (own[w] & BIT(s)), CONFIRMED(LEAF,s) || (MUT==3 && AFULL(LEAF,s)) || (LEAF_SAYS(s) && TOP_ENDS(s)))
#define ROUND(s) BELOW(0,s) BELOW(1,s) \
  TO_TOP(0,s,(lpa & BIT(s)) && (STALE || LEAF_ASKS(s))) ACK_TOP(0,s,(lack & BIT(s)) && (STALE || LEAF_SAYS(s))) \
  TO_TOP(1,s,(s)<next[2] && (STALE || ASKS(2,s))) ACK_TOP(1,s,HAS(2,s) && (STALE || SAYS(2,s))) \
  SUM(2,s,1,ASKS(2,s) && FULL(TOP,s)) END(2,s,cnf[1] & BIT(s),TOP_ENDS(s))

#define EVERY(x) (x[0]==BIT(S)-1 && x[1]==BIT(S)-1 && x[2]==BIT(S)-1)
/* After a restart the last confirmations may be missed by whom nobody hears any more: all have their sums. */
#if RL || RS
#define COMPLETE EVERY(sums)
#else
#define COMPLETE (EVERY(sums) && EVERY(done))
#endif
#define FORGET(x) i=0; do :: i<T -> tag[(x)*T+i]=0; bits[(x)*T+i]=0; atag[(x)*T+i]=0; abits[(x)*T+i]=0; \
   held[((x)*T+i)*2]=0; held[((x)*T+i)*2+1]=0; i++ :: else -> break od; FORGET_LACKS(x) i=0

active proctype Tree() {
  do
  BEGIN(0) BEGIN(1) BEGIN(2) HEARS(0) HEARS(1) HEARS(2) HEARS(3) FARPA FARSAYS ROUND(0) ROUND(1)
#if S>2
  ROUND(2)
#endif
  :: d_step { nrl<RL -> nrl++; FORGET(LEAF) }
  :: d_step { nrs<RS -> nrs++; FORGET(TOP) }
  :: d_step { !quiet -> quiet=true }
  :: quiet && COMPLETE -> break
  od
}
