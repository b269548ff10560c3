/* A tree of depth 2: workers 0 and 1 under a leaf switch, worker 2 and the leaf under the spine.
 * The leaf is one worker of the spine (mode LEAF).  The network is the set of all packets ever
 * sent: any of them may be delivered at any later time, any number of times, or never.
 * MODE 0 ALLREDUCE (consumers: the three workers)   MODE 1 REDUCE (consumer: a root at the spine)
 * RL, RS  restarts of the leaf and of the spine (registers zeroed, same generation installed again)
 * MUT 1 a leaf does not send its full sum again for a duplicate
 *     2 a leaf merges heartbeats although one worker's is missing
 *     3 a leaf sends its sum up before every worker is in
 *     4 a leaf answers its workers' heartbeats itself instead of sending their minimum up
 * Every action changes the state; the adversary (stale deliveries) may be switched off for ever at
 * any time, so a deadlock is exactly "not completed".  Run also with -DNP. */
#ifndef T
#define T 2
#endif
#ifndef S
#define S 3
#endif
#ifndef MODE
#define MODE 0
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
#if MODE==1
#define NC 1
#else
#define NC 3
#endif
#define MIN(a,b) (((a)<(b))->(a):(b))

byte next[3], ma[3];                 /* senders */
byte ack[NC], rv[NC];                /* consumers: next expected, received beyond it */
byte lt[T], lb[T], st[T], sb[T];     /* leaf and spine slots: tag (seq + 1, 0 empty), bitmap */
byte ls[T*2], ss[T*2];               /* ghosts: whose contribution (seq + 1) the lanes hold */
byte lh[2], sh[2];                   /* heartbeat tables (ack + 1, 0 empty) */
byte pS[3];                          /* PA(w, s) was sent for s < pS[w] */
bool lp[S], fe[S];                   /* the leaf's PA(s), the spine's FA(s) were sent */
byte hA[NC], eL, eA;                 /* acks sent by consumers, merged by the leaf, by the spine */
byte nrl, nrs, i, e;
bool quiet = false;

#define STALE (!quiet)
#define ASKS(w,s) ((s)>=ma[w] && (s)<next[w])
#if MUT==1
#define LEAFASKS(s) false
#else
#define LEAFASKS(s) (lt[(s)%T]==(s)+1 && lb[(s)%T]==3 && (ASKS(0,s) || ASKS(1,s)))
#endif
#if MUT==3
#define LEAFFULL(e) true
#else
#define LEAFFULL(e) (lb[e]==3)
#endif

#define SEND(w) :: d_step { next[w]<S && next[w]<ma[w]+T -> next[w]++; if :: pS[w]<next[w] -> pS[w]=next[w] :: else fi }

/* a worker's PA at the leaf (w is also its bit) */
#define LPA(w,s) :: d_step { (s)<S && (s)<pS[w] && (STALE || ASKS(w,s)) && \
     (lt[(s)%T]<(s)+1 || (lt[(s)%T]==(s)+1 && !(lb[(s)%T] & (1<<(w))))) -> e=(s)%T; \
   if :: lt[e]<(s)+1 -> lt[e]=(s)+1; lb[e]=0; ls[e*2]=0; ls[e*2+1]=0 :: else fi; \
   lb[e]=lb[e]|(1<<(w)); ls[e*2+(w)]=(s)+1; \
   if :: LEAFFULL(e) -> assert(ls[e*2]==(s)+1 && ls[e*2+1]==(s)+1); lp[s]=true :: else fi; e=0 }

/* at the spine: bit 0 is the leaf, bit 1 is worker 2 */
#define SPINE(bit,s,sent,fresh) :: d_step { (s)<S && (sent) && (STALE || (fresh)) && \
     (st[(s)%T]<(s)+1 || (st[(s)%T]==(s)+1 && !(sb[(s)%T] & (1<<(bit))))) -> e=(s)%T; \
   if :: st[e]<(s)+1 -> st[e]=(s)+1; sb[e]=0; ss[e*2]=0; ss[e*2+1]=0 :: else fi; \
   sb[e]=sb[e]|(1<<(bit)); ss[e*2+(bit)]=(s)+1; \
   if :: sb[e]==3 -> assert(ss[e*2]==(s)+1 && ss[e*2+1]==(s)+1); fe[s]=true :: else fi; e=0 }

#if MODE==1
#define ASKED(c,s) (LEAFASKS(s) || ASKS(2,s))
#else
#define ASKED(c,s) ((c)==2 -> ASKS(2,s) : LEAFASKS(s))
#endif
#define FA(c,s) :: d_step { (s)<S && fe[s] && (s)>=ack[c] && (s)<ack[c]+T && !(rv[c] & (1<<((s)-ack[c]))) && \
     (STALE || (st[(s)%T]==(s)+1 && sb[(s)%T]==3 && ASKED(c,s))) -> \
   rv[c]=rv[c]|(1<<((s)-ack[c])); do :: rv[c]&1 -> rv[c]=rv[c]>>1; ack[c]++ :: else -> break od; hA[c]=ack[c] }

#if MODE==0
#if MUT==2
#define LEAFMIN ((lh[0]==0) -> lh[1] : ((lh[1]==0) -> lh[0] : MIN(lh[0],lh[1])))
#else
#define LEAFMIN ((lh[0]==0 || lh[1]==0) -> 0 : MIN(lh[0],lh[1]))
#endif
#define SPINEMIN ((sh[0]==0 || sh[1]==0) -> 0 : MIN(sh[0],sh[1]))
#define TRUEMIN MIN(hA[0],MIN(hA[1],hA[2]))
#define LHB(w,a) :: d_step { (a)<=hA[w] && (STALE || (a)==ack[w]) && (a)+1>lh[w] -> lh[w]=(a)+1 }
#define LMERGE :: d_step { LEAFMIN>eL+1 -> eL=LEAFMIN-1; assert(eL<=MIN(hA[0],hA[1])) }
#define SHB(bit,a,limit,now) :: d_step { (a)<=(limit) && (STALE || (a)+1==(now)) && (a)+1>sh[bit] -> sh[bit]=(a)+1 }
#define SMERGE :: d_step { SPINEMIN>eA+1 -> eA=SPINEMIN-1; assert(eA<=TRUEMIN) }
#define MERGED eA
#define NOW (SPINEMIN)
#else
#define LHB(w,a)
#define LMERGE
#define SHB(bit,a,limit,now)
#define SMERGE
#define MERGED hA[0]
#define NOW (ack[0]+1)
#endif
#if MUT==4 && MODE==0
#define BOUND(w) ((w)==2 -> MERGED : eL)
#define FRESH(w) ((w)==2 -> NOW : LEAFMIN)
#else
#define BOUND(w) MERGED
#define FRESH(w) NOW
#endif
#define MA(w,a) :: d_step { (a)<=BOUND(w) && (a)>ma[w] && (STALE || (a)+1==FRESH(w)) -> assert((a)<=next[w]); ma[w]=(a) }

#define FOR_S(X,a) X(a,0) X(a,1) X(a,2) X(a,3)
#define FOR_A(X,a) X(a,1) X(a,2) X(a,3) X(a,4)
#define HB2(b,a) SHB(b,a,hA[2],ack[2]+1)
#define HBL(b,a) SHB(b,a,eL,LEAFMIN)
#define PA2(b,s) SPINE(b,s,(s)<pS[2],ASKS(2,s))
#define PAL(b,s) SPINE(b,s,lp[s],LEAFASKS(s))

#define ZERO(t,b,g,h) i=0; do :: i<T -> t[i]=0; b[i]=0; g[i*2]=0; g[i*2+1]=0; i++ :: else -> i=0; break od; h[0]=0; h[1]=0
#if MODE==1
#define DONE (ack[0]==S)
#else
#define DONE (ack[0]==S && ack[1]==S && ack[2]==S)
#endif
#define ALLDONE (DONE && ma[0]==S && ma[1]==S && ma[2]==S)

active proctype Tree() {
  do
  SEND(0) SEND(1) SEND(2)
  FOR_S(LPA,0) FOR_S(LPA,1)
  FOR_S(PAL,0) FOR_S(PA2,1)
  FOR_S(FA,0)
#if MODE==0
  FOR_S(FA,1) FOR_S(FA,2)
  LHB(0,0) LHB(1,0) HBL(0,0) HB2(1,0)
  FOR_A(LHB,0) FOR_A(LHB,1) LMERGE FOR_A(HBL,0) FOR_A(HB2,1) SMERGE
#endif
  FOR_A(MA,0) FOR_A(MA,1) FOR_A(MA,2)
  :: d_step { nrl<RL -> nrl++; ZERO(lt,lb,ls,lh) }
  :: d_step { nrs<RS -> nrs++; ZERO(st,sb,ss,sh) }
  :: d_step { !quiet -> quiet=true }
  :: quiet && ALLDONE -> break
  od
}
