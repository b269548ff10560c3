/* p4sgd.p4 on a chain of switches, the deepest tree of a depth: workers 0 and 1 under switch 0, switch x - 1 and worker x + 1
 * under switch x, and so to the top; T slots on each switch, S rounds, windows of T.  The network is the set of all packets
 * ever sent: any of them may be delivered at any later time, any number of times, or never.  What a switch passes down it does
 * not keep, so a packet from above to a switch is one to every worker below it.
 * DEPTH 2 or 3: how many switches
 * RL, RM, RS  restarts of switch 0, of the one in the middle and of the top (registers zeroed, same generation)
 * MUT 1 switch AT sends its sum up before every member is in
 *     2 switch AT does not send its sum up again for a duplicate
 *     3 switch AT confirms what its own members have acknowledged
 *     4 switch AT does not send its acknowledgement up again for a duplicate
 *     5 switch AT's bound leaves no room
 *     6 a slot that a far vector took is kept
 * BOUND 1: workers say which sum they lack, and a switch what any worker below it lacks; what is T or more ahead of the least
 *       of these takes no slot of that switch, and gives back what it took before all below had said so
 * FAR   how many vectors of far rounds somebody sends in worker 0's name; each may say that worker 0 is that far
 * Every action changes the state; stale deliveries may be switched off for ever at any time, so a
 * deadlock is exactly "not completed".  Run also with -DNP. */
#ifndef DEPTH
#define DEPTH 2
#endif
#ifndef T
#define T 1
#endif
#ifndef S
#define S 3
#endif
#ifndef RL
#define RL 0
#endif
#ifndef RM
#define RM 0
#endif
#ifndef RS
#define RS 0
#endif
#ifndef MUT
#define MUT 0
#endif
#ifndef AT
#define AT 0
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
#define TOP (DEPTH-1)
#define W (DEPTH+1)
#define BROKEN(x,m) (MUT==(m) && AT==(x))
/* member m of switch x, and worker w, which is member 1 of switch w - 1 but for worker 0 */
#define MEMBER(x,m) ((x)*2+(m))
#define PLACE(w) ((w)==0 -> 0 : 2*(w)-1)

byte next[W], sums[W], done[W];      /* workers: rounds begun; sums taken, rounds confirmed (a bit each) */
byte up[TOP], ackup[TOP];            /* each switch's to the one above, a bit a round */
byte fa[2];                          /* the top's sums, a bit a round: [0] to the switch below, [1] to worker W - 1 */
byte cnf[DEPTH*2];                   /* confirmations that a switch gave a member, a bit a round */
/* slots of the switches, at x*T+slot: round + 1 (0 empty), who is in it; who has its sum */
byte tag[DEPTH*T], bits[DEPTH*T], atag[DEPTH*T], abits[DEPTH*T];
byte held[DEPTH*T*2];                /* ghosts: whose round (+ 1) the lanes hold */
byte nrl, nrm, nrs, i, e;
bool quiet = false;

#define STALE (!quiet)
#define SLOT(x,s) ((x)*T+(s)%T)
#define MIN(a,b) ((a)<(b) -> (a) : (b))
#if BOUND
byte lacks[DEPTH*2];                 /* heard of a member: 1 + the oldest round whose sum it lacks; 0 nothing */
byte lacked[DEPTH*2*S];              /* that, less 1, when it had the sum (a switch: when all below had acknowledged) */
#define HEARD(x) (lacks[(x)*2]!=0 && lacks[(x)*2+1]!=0)
#define LEAST(x) MIN(lacks[(x)*2],lacks[(x)*2+1])
#define ROOM(x) (BROKEN(x,5) -> T-1 : T)
#define BEYOND(x,s) (HEARD(x) && (s)+1>=LEAST(x)+ROOM(x))
#if MUT==6
#define KEPT(x,t) true
#else
#define KEPT(x,t) ((t)==0 || !BEYOND(x,(t)-1))
#endif
#define LACKS(w) FIRST_ZERO(sums[w])
/* each vector and acknowledgement says at least this; any that was sent may come, at any later time */
#define WITH_PA(x,m,s) (lacks[MEMBER(x,m)]>=((s)+2>T -> (s)+2-T : 1))
#define WITH_ACK(x,m,s) (lacks[MEMBER(x,m)]>lacked[MEMBER(x,m)*S+(s)])
#define TAKEN(w,s) ; lacked[PLACE(w)*S+(s)]=LACKS(w)
#define PASSED(x,s) lacked[MEMBER((x)+1,0)*S+(s)]
#define ALL_HAVE(x,s) ; if :: (x)<TOP && HEARD(x) && (PASSED(x,s)==0 || PASSED(x,s)>LEAST(x)-1) -> PASSED(x,s)=LEAST(x)-1 :: else fi
#define HEAR(w,a) :: d_step { (a)<=LACKS(w) && next[w]>0 && lacks[PLACE(w)]<(a)+1 && \
     (STALE || (OLDEST(w)<next[w] && (a)==LACKS(w))) -> lacks[PLACE(w)]=(a)+1 }
#define HEAR_BELOW(x,a,speaks) :: d_step { (up[x] || ackup[x]) && HEARD(x) && (a)+1<=LEAST(x) && lacks[MEMBER((x)+1,0)]<(a)+1 && \
     (STALE || ((a)+1==LEAST(x) && speaks)) -> lacks[MEMBER((x)+1,0)]=(a)+1 }
#if DEPTH==3
#define HEARS(a) HEAR(0,a) HEAR(1,a) HEAR(2,a) HEAR(3,a) HEAR_BELOW(0,a,SPEAKS(ASKS0,SAYS0)) HEAR_BELOW(1,a,SPEAKS(ASKS1,SAYS1))
#else
#define HEARS(a) HEAR(0,a) HEAR(1,a) HEAR(2,a) HEAR_BELOW(0,a,SPEAKS(ASKS0,SAYS0))
#endif
#define FORGET_LACKS(x) lacks[(x)*2]=0; lacks[(x)*2+1]=0;
#else
#define BEYOND(x,s) false
#define HEARD(x) true
#define KEPT(x,t) true
#define WITH_PA(x,m,s) true
#define WITH_ACK(x,m,s) true
#define TAKEN(w,s)
#define ALL_HAVE(x,s)
#define HEARS(a)
#define FORGET_LACKS(x)
#endif
#if FAR
byte nfar;
#define FARTAG 40
#define FARPA :: d_step { STALE && nfar<FAR && !BEYOND(0,FARTAG-1) && tag[0]<FARTAG -> nfar++; tag[0]=FARTAG; bits[0]=1; held[0]=99; held[1]=0 }
#define FARSAYS :: d_step { STALE && nfar<FAR && lacks[0]<FARTAG -> nfar++; lacks[0]=FARTAG }
#else
#define FARPA
#define FARSAYS
#endif
#define SAME(t,s) ((t)==(s)+1)
#define FRESH(x,t,s) (!SAME(t,s) && !BEYOND(x,s) && ((t)<(s)+1 || !KEPT(x,t)))
#define OLD(x,s) (!BEYOND(x,s) && tag[SLOT(x,s)]>(s)+1 && KEPT(x,tag[SLOT(x,s)]))
#define CONFIRMED(x,s) (OLD(x,s) && HEARD(x))
/* the vectors' slot lets an acknowledgement through */
#define ASKED(x,s) (!OLD(x,s) && (SAME(tag[SLOT(x,s)],s) || !BEYOND(x,s)))
#define FULL(x,s) (SAME(tag[SLOT(x,s)],s) && bits[SLOT(x,s)]==ALL)
#define AFULL(x,s) (SAME(atag[SLOT(x,s)],s) && abits[SLOT(x,s)]==ALL)

#define OLDEST(w) FIRST_ZERO(done[w])
#define HAS(w,s) (sums[w] & BIT(s))
/* what a worker, and a switch for those below it, repeats for as long as it takes */
#define ASKS(w,s) (OLDEST(w)==(s) && (s)<next[w])
#define SAYS(w,s) (OLDEST(w)<next[w] && OLDEST(w)>=(s) && HAS(w,s))
#define ASKS0(s) (!BROKEN(0,2) && FULL(0,s) && (ASKS(0,s) || ASKS(1,s)))
#define SAYS0(s) (!BROKEN(0,4) && !OLD(0,s) && AFULL(0,s) && (SAYS(0,s) || SAYS(1,s)))
#if DEPTH==3
#define ASKS1(s) (!BROKEN(1,2) && FULL(1,s) && (ASKS0(s) || ASKS(2,s)))
#define SAYS1(s) (!BROKEN(1,4) && !OLD(1,s) && AFULL(1,s) && (SAYS0(s) || SAYS(2,s)))
#define ASKSBELOW ASKS1
#define SAYSBELOW SAYS1
#else
#define ASKSBELOW ASKS0
#define SAYSBELOW SAYS0
#endif
#if S>2
#define SPEAKS(asks,says) (asks(0) || says(0) || asks(1) || says(1) || asks(2) || says(2))
#else
#define SPEAKS(asks,says) (asks(0) || says(0) || asks(1) || says(1))
#endif

#define BEGIN(w) :: d_step { next[w]<S && next[w]<OLDEST(w)+T -> next[w]++ }

/* switch x adds the vector of its member m; with the last one the sum leaves */
#define NEW(x,m,s) (FRESH(x,tag[SLOT(x,s)],s) || (SAME(tag[SLOT(x,s)],s) && !(bits[SLOT(x,s)] & BIT(m))))
#define PA(x,m,s,sent) :: d_step { (sent) && WITH_PA(x,m,s) && NEW(x,m,s) -> e=SLOT(x,s); \
   if :: FRESH(x,tag[e],s) -> tag[e]=(s)+1; bits[e]=0; held[e*2]=0; held[e*2+1]=0 :: else fi; \
   held[e*2+(m)]=(s)+1; bits[e]=bits[e]|BIT(m); \
   if :: bits[e]==ALL || BROKEN(x,1) -> assert(held[e*2]==(s)+1 && held[e*2+1]==(s)+1); LEAVES(x,s) :: else fi; e=0 }
#define LEAVES(x,s) if :: (x)<TOP -> up[(x)%TOP]=up[(x)%TOP]|BIT(s) :: else -> fa[0]=fa[0]|BIT(s); fa[1]=fa[1]|BIT(s) fi

/* acknowledgements: of a round before the slot's they are confirmed at once */
#define NEWACK(x,m,s) (FRESH(x,atag[SLOT(x,s)],s) || (SAME(atag[SLOT(x,s)],s) && !(abits[SLOT(x,s)] & BIT(m))))
#define CONFIRM(x,s) cnf[(x)*2]=cnf[(x)*2]|BIT(s); cnf[(x)*2+1]=cnf[(x)*2+1]|BIT(s)
#define ACK(x,m,s,sent) :: d_step { (sent) && WITH_ACK(x,m,s) && ASKED(x,s) && NEWACK(x,m,s) -> e=SLOT(x,s); \
   if :: FRESH(x,atag[e],s) -> atag[e]=(s)+1; abits[e]=0 :: else fi; abits[e]=abits[e]|BIT(m); \
   if :: abits[e]==ALL && ((x)==TOP || BROKEN(x,3)) -> CONFIRM(x,s) \
      :: abits[e]==ALL && (x)<TOP && !BROKEN(x,3) -> ackup[(x)%TOP]=ackup[(x)%TOP]|BIT(s) ALL_HAVE(x,s) :: else fi; e=0 } \
 :: d_step { (sent) && WITH_ACK(x,m,s) && CONFIRMED(x,s) && !(cnf[MEMBER(x,m)] & BIT(s)) -> cnf[MEMBER(x,m)]=cnf[MEMBER(x,m)]|BIT(s) }

/* a sum and a confirmation at a worker: one ever sent, or what the switches answer now */
#define SUM(w,s,c,now) :: d_step { (s)<next[w] && !HAS(w,s) && (fa[c] & BIT(s)) && (STALE || (now)) -> sums[w]=sums[w]|BIT(s) TAKEN(w,s) }
#define END(w,s,said,now) :: d_step { HAS(w,s) && !(done[w] & BIT(s)) && ((said) & BIT(s)) && (STALE || (SAYS(w,s) && (now))) -> \
   done[w]=done[w]|BIT(s) }
#define ENDS(x,s) (CONFIRMED(x,s) || (BROKEN(x,3) && AFULL(x,s)))
#define TOP_ENDS(s) (CONFIRMED(TOP,s) || (!OLD(TOP,s) && AFULL(TOP,s)))

#if DEPTH==3
/* confirmations for those below switch 1 come from it or from the top */
#define ENDS1(s) (ENDS(1,s) || (SAYS1(s) && TOP_ENDS(s)))
#define SAID1(m) (cnf[MEMBER(1,m)]|cnf[MEMBER(2,0)])
#define MIDDLE(s) PA(1,1,s,(s)<next[2] && (STALE || ASKS(2,s))) ACK(1,1,s,HAS(2,s) && (STALE || SAYS(2,s))) \
  SUM(2,s,0,ASKS(2,s) && ASKS1(s) && FULL(TOP,s)) END(2,s,SAID1(1),ENDS1(s)) \
  PA(1,0,s,(up[0] & BIT(s)) && (STALE || ASKS0(s))) ACK(1,0,s,(ackup[0] & BIT(s)) && (STALE || SAYS0(s)))
#else
#define ENDS1(s) TOP_ENDS(s)
#define SAID1(m) cnf[MEMBER(1,m)]
#define MIDDLE(s)
#endif
#define LOW(w,s) PA(0,w,s,(s)<next[w] && (STALE || ASKS(w,s))) ACK(0,w,s,HAS(w,s) && (STALE || SAYS(w,s))) \
  SUM(w,s,0,ASKS(w,s) && ASKS0(s) && ASKSBELOW(s) && FULL(TOP,s)) \
  END(w,s,cnf[MEMBER(0,w)]|SAID1(0),ENDS(0,s) || (SAYS0(s) && ENDS1(s)))
#define ROUND(s) LOW(0,s) LOW(1,s) MIDDLE(s) \
  PA(TOP,0,s,(up[TOP-1] & BIT(s)) && (STALE || ASKSBELOW(s))) ACK(TOP,0,s,(ackup[TOP-1] & BIT(s)) && (STALE || SAYSBELOW(s))) \
  PA(TOP,1,s,(s)<next[W-1] && (STALE || ASKS(W-1,s))) ACK(TOP,1,s,HAS(W-1,s) && (STALE || SAYS(W-1,s))) \
  SUM(W-1,s,1,ASKS(W-1,s) && FULL(TOP,s)) END(W-1,s,cnf[MEMBER(TOP,1)],TOP_ENDS(s))

#define EVERY(x) (x[0]==BIT(S)-1 && x[1]==BIT(S)-1 && x[2]==BIT(S)-1 && x[W-1]==BIT(S)-1)
/* After a restart the last confirmations may be missed by whom nobody hears any more: all have their sums. */
#if RL || RM || RS
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
#if DEPTH==3
  BEGIN(3)
  :: d_step { nrm<RM -> nrm++; FORGET(1) }
#endif
  :: d_step { nrl<RL -> nrl++; FORGET(0) }
  :: d_step { nrs<RS -> nrs++; FORGET(TOP) }
  :: d_step { !quiet -> quiet=true }
  :: quiet && COMPLETE -> break
  od
}
