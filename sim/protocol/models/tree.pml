/* luwu.p4 on a chain of switches, the deepest tree of a depth: workers 0 and 1 under switch 0, switch x - 1 and worker x + 1
 * under switch x, and so to the top; T slots on each switch, S vectors, windows of T.  The network is the set of all packets
 * ever sent: any of them may be delivered at any later time, any number of times, or never.  What a switch passes down it does
 * not keep, so a packet from the top to a switch is one to every worker below it.
 * DEPTH 2 or 3: how many switches
 * MODE 0 ALLREDUCE (consumers: the workers)   MODE 1 REDUCE (consumer: a root at the top)
 * RL, RM, RS  restarts of switch 0, of the one in the middle and of the top (registers zeroed, same generation installed again)
 * MUT 1 switch AT does not send its full sum again for a duplicate
 *     2 switch AT merges heartbeats although one below is missing
 *     3 switch AT sends its sum up before every one below is in
 *     4 switch AT answers the heartbeats from below itself instead of sending their minimum up
 * Every action changes the state; the adversary (stale deliveries) may be switched off for ever at
 * any time, so a deadlock is exactly "not completed".  Run also with -DNP. */
#ifndef DEPTH
#define DEPTH 2
#endif
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
#define TOP (DEPTH-1)
#define W (DEPTH+1)
#if MODE==1
#define NC 1
#else
#define NC W
#endif
#define MIN(a,b) (((a)<(b))->(a):(b))

byte next[W], ma[W];                 /* senders */
byte ack[NC], rv[NC];                /* consumers: next expected, received beyond it */
byte tag[DEPTH*T], bits[DEPTH*T];    /* slots of switch x, at x*T+slot: tag (seq + 1, 0 empty), bitmap */
byte held[DEPTH*T*2];                /* ghosts: whose contribution (seq + 1) the lanes hold */
byte pS[W];                          /* PA(w, s) was sent for s < pS[w] */
bool sum[DEPTH*S];                   /* the sum of s was sent up by switch x; by the top, FA(s) down */
byte hA[NC];                         /* acks sent by consumers */
#if MODE==0
byte hb[DEPTH*2], em[DEPTH];         /* heartbeat tables (ack + 1, 0 empty), and what each switch sent of their minimum */
#endif
byte nrl, nrm, nrs, i, e;
bool quiet = false;

#define STALE (!quiet)
#define SLOT(x,s) ((x)*T+(s)%T)
#define BROKEN(x,m) (MUT==(m) && AT==(x))
#define ASKS(w,s) ((s)>=ma[w] && (s)<next[w])
#define HOLDS(x,s) (tag[SLOT(x,s)]==(s)+1 && bits[SLOT(x,s)]==3)
/* a switch below the top sends its sum up again for a duplicate of what it holds */
#define ASKS0(s) (!BROKEN(0,1) && HOLDS(0,s) && (ASKS(0,s) || ASKS(1,s)))
#if DEPTH==3
#define ASKS1(s) (!BROKEN(1,1) && HOLDS(1,s) && (ASKS0(s) || ASKS(2,s)))
#define ASKSBELOW(s) ASKS1(s)
#else
#define ASKSBELOW(s) ASKS0(s)
#endif

#define SEND(w) :: d_step { next[w]<S && next[w]<ma[w]+T -> next[w]++; if :: pS[w]<next[w] -> pS[w]=next[w] :: else fi }

/* a vector at switch x, from its member `bit`: one that was sent, or that comes now */
#define IN(x,bit,s,sent,fresh) :: d_step { (s)<S && (sent) && (STALE || (fresh)) && \
     (tag[SLOT(x,s)]<(s)+1 || (tag[SLOT(x,s)]==(s)+1 && !(bits[SLOT(x,s)] & (1<<(bit))))) -> e=SLOT(x,s); \
   if :: tag[e]<(s)+1 -> tag[e]=(s)+1; bits[e]=0; held[e*2]=0; held[e*2+1]=0 :: else fi; \
   bits[e]=bits[e]|(1<<(bit)); held[e*2+(bit)]=(s)+1; \
   if :: bits[e]==3 || BROKEN(x,3) -> assert(held[e*2]==(s)+1 && held[e*2+1]==(s)+1); sum[(x)*S+(s)]=true :: else fi; e=0 }

#if MODE==1
#define ASKED(c,s) (ASKSBELOW(s) || ASKS(W-1,s))
#else
#define ASKED(c,s) ((c)==W-1 -> ASKS(W-1,s) : ASKSBELOW(s))
#endif
#define FA(c,s) :: d_step { (s)<S && sum[TOP*S+(s)] && (s)>=ack[c] && (s)<ack[c]+T && !(rv[c] & (1<<((s)-ack[c]))) && \
     (STALE || (HOLDS(TOP,s) && ASKED(c,s))) -> \
   rv[c]=rv[c]|(1<<((s)-ack[c])); do :: rv[c]&1 -> rv[c]=rv[c]>>1; ack[c]++ :: else -> break od; hA[c]=ack[c] }

#if MODE==0
#define MISSING(x) (hb[(x)*2]==0 || hb[(x)*2+1]==0)
#define LEAST(x) (!MISSING(x) -> MIN(hb[(x)*2],hb[(x)*2+1]) : \
  (!BROKEN(x,2) -> 0 : (hb[(x)*2]==0 -> hb[(x)*2+1] : hb[(x)*2])))
#define TRUE0 MIN(hA[0],hA[1])
#define TRUE1 MIN(TRUE0,hA[2])
#if DEPTH==3
#define TRUE2 MIN(TRUE1,hA[3])
#endif
#define BEAT(x,bit,a,limit,now) :: d_step { (a)<=(limit) && (STALE || (a)+1==(now)) && (a)+1>hb[(x)*2+(bit)] -> hb[(x)*2+(bit)]=(a)+1 }
#define MERGE(x,least) :: d_step { LEAST(x)>em[x]+1 -> em[x]=LEAST(x)-1; assert(em[x]<=(least)) }
#define MERGED em[TOP]
#define NOW LEAST(TOP)
#else
#define MERGED hA[0]
#define NOW (ack[0]+1)
#endif
/* the workers below switch AT */
#if MUT==4 && MODE==0
#define BOUND(w) ((w)<=AT+1 -> em[AT] : MERGED)
#define FRESH(w) ((w)<=AT+1 -> LEAST(AT) : NOW)
#else
#define BOUND(w) MERGED
#define FRESH(w) NOW
#endif
#define MA(w,a) :: d_step { (a)<=BOUND(w) && (a)>ma[w] && (STALE || (a)+1==FRESH(w)) -> assert((a)<=next[w]); ma[w]=(a) }

#define FOR_S(X,a) X(a,0) X(a,1) X(a,2) X(a,3)
#define FOR_A(X,a) X(a,1) X(a,2) X(a,3) X(a,4)
#define LOW(w,s) IN(0,w,s,(s)<pS[w],ASKS(w,s))
#define BESIDE(x,s) IN(x,1,s,(s)<pS[(x)+1],ASKS((x)+1,s))
#define UP1(x,s) IN(1,0,s,sum[s],ASKS0(s))
#define UP2(x,s) IN(2,0,s,sum[S+(s)],ASKS1(s))
#define BEATLOW(w,a) BEAT(0,w,a,hA[w],ack[w]+1)
#define BEATBESIDE(x,a) BEAT(x,1,a,hA[(x)+1],ack[(x)+1]+1)
#define BEATUP(x,a) BEAT(x,0,a,em[(x)-1],LEAST((x)-1))

#if MODE==0
#define FORGETBEATS(x) hb[(x)*2]=0; hb[(x)*2+1]=0
#else
#define FORGETBEATS(x) skip
#endif
#define ZERO(x) i=0; do :: i<T -> tag[(x)*T+i]=0; bits[(x)*T+i]=0; held[((x)*T+i)*2]=0; held[((x)*T+i)*2+1]=0; i++ :: else -> i=0; break od; \
  FORGETBEATS(x)
#define HAS(w) (ack[w]==S && ma[w]==S)
#if MODE==1
#define TOLD(w) (ma[w]==S)
#define ALLDONE (ack[0]==S && TOLD(0) && TOLD(1) && TOLD(2) && TOLD(W-1))
#else
#define ALLDONE (HAS(0) && HAS(1) && HAS(2) && HAS(W-1))
#endif

active proctype Tree() {
  do
  SEND(0) SEND(1) SEND(2)
  FOR_S(LOW,0) FOR_S(LOW,1)
  FOR_S(UP1,1) FOR_S(BESIDE,1)
  FOR_S(FA,0)
#if MODE==0
  FOR_S(FA,1) FOR_S(FA,2)
  BEATLOW(0,0) BEATLOW(1,0) BEATUP(1,0) BEATBESIDE(1,0)
  FOR_A(BEATLOW,0) FOR_A(BEATLOW,1) MERGE(0,TRUE0) FOR_A(BEATUP,1) FOR_A(BEATBESIDE,1) MERGE(1,TRUE1)
#endif
  FOR_A(MA,0) FOR_A(MA,1) FOR_A(MA,2)
#if DEPTH==3
  SEND(3) FOR_S(UP2,2) FOR_S(BESIDE,2) FOR_A(MA,3)
#if MODE==0
  FOR_S(FA,3) BEATUP(2,0) BEATBESIDE(2,0) FOR_A(BEATUP,2) FOR_A(BEATBESIDE,2) MERGE(2,TRUE2)
#endif
  :: d_step { nrm<RM -> nrm++; ZERO(1) }
#endif
  :: d_step { nrl<RL -> nrl++; ZERO(0) }
  :: d_step { nrs<RS -> nrs++; ZERO(TOP) }
  :: d_step { !quiet -> quiet=true }
  :: quiet && ALLDONE -> break
  od
}
