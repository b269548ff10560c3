/* Keys that follow one another while a stream goes on (docs/explanation/tags.md): each serves for a term of L numbers, two at a time.
 *
 * Two ranks sum S vectors in one slot, each once all have the sum before; numbers compare modulo M, and terms by one bit. A rank
 * asks for the key behind the two that it has once it knows that all ranks have the sums of the older term. When all have asked,
 * the controller stores the key, then the row of each rank's port gets it, in any order (they may be on different switches), then
 * each rank. The controller may crash once between any two steps: what was asked is forgotten, what was stored is not.
 *
 * Whoever is on the way may deliver every frame that was ever made, vector or sum, at any later time, any number of times, or never.
 * What must hold: a sum combines contributions of one number, a rank takes it for the number that it waits for, and all come to the end.
 *
 * MUT 1: one key for all terms.                        MUT 2: the controller gives the key to the first that asks by its own sums.
 * MUT 3: ranks get the key before it is stored.        MUT 4: a switch goes on to take the keys that it had before.
 * MUT 5: a rank goes on when its keys are spent.       MUT 6: a rank asks once only.
 * MUT 7: ranks get the key and the switches do not. */
#ifndef MUT
#define MUT 0
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#define W 2
#define L 2
#define M (4*L)
#define S 11
#define ALL 3
#define BIT(w) (1<<(w))
#define TERM(n) ((n)/L)
#define NONE 255
/* The key of a number for whoever has those of the terms e and e + 1: the one that its bit says. */
#define KEY(e,n) (MUT==1 -> 0 : (e) + ((TERM(n) + (e)) & 1))
#define NEWER(a,b) ((((a) - (b) + 2*M) % M) != 0 && (((a) - (b) + 2*M) % M) < M/2)
#define F(w,n) ((w)*S+(n))
#define LEAST (got[0] < got[1] -> got[0] : got[1])
#define ENDED (got[0]==S && got[1]==S)

byte sent[W], got[W];      /* numbers of which the rank has sent its vector, and has the sum */
byte term[W];              /* older term of a rank's keys */
byte row[W];               /* of the row of its port */
byte made[W*S];            /* 1 + key of the vector of a rank that was made; 0: none */
byte sums[W*S];            /* the same of the sums for a rank */
byte tag = NONE, bits;     /* the slot: number, whose vectors are in */
byte added[W];             /* number of the vector that was added */
byte stored, known;        /* term in the store, and in the controller's memory */
byte asks, asked[W];       /* who has asked; MUT 6: for which term */
byte crashes = CRASHES;

#define VECTOR(w,n) \
 :: d_step { made[F(w,n)]!=0 && (made[F(w,n)]-1 == KEY(row[w],n) || (MUT==4 && made[F(w,n)]-1 < KEY(row[w],n))) && \
      (tag==NONE || NEWER((n)%M,tag%M) || ((n)%M==tag%M && !(bits & BIT(w)))) -> \
      if :: tag!=NONE && (n)%M==tag%M -> bits = bits | BIT(w) :: else -> tag = (n); bits = BIT(w) fi; \
      added[w] = (n); \
      assert(bits!=ALL || added[0]==added[1]) }
/* What the slot holds whole goes to a rank, under the key that its row has now. */
#define SUM(w,n) \
 :: d_step { bits==ALL && tag==(n) && sums[F(w,n)] != KEY(row[w],n)+1 -> sums[F(w,n)] = KEY(row[w],n)+1 } \
 :: d_step { sums[F(w,n)]!=0 && sums[F(w,n)]-1==KEY(term[w],n) && sent[w]>got[w] && (n)%M==got[w]%M -> \
      assert((n)==got[w]); got[w]++ }
#define EACH(w) VECTOR(w,0) VECTOR(w,1) VECTOR(w,2) VECTOR(w,3) VECTOR(w,4) VECTOR(w,5) VECTOR(w,6) VECTOR(w,7) VECTOR(w,8) \
  VECTOR(w,9) VECTOR(w,10) SUM(w,0) SUM(w,1) SUM(w,2) SUM(w,3) SUM(w,4) SUM(w,5) SUM(w,6) SUM(w,7) SUM(w,8) SUM(w,9) SUM(w,10)

#define RANK(w) \
 :: d_step { got[w]<S && sent[w]==got[w] && LEAST==got[w] && (MUT==1 || MUT==5 || got[w] < (term[w]+2)*L) -> \
      made[F(w,got[w])] = KEY(term[w],got[w])+1; sent[w]++ } \
 :: d_step { sent[w]>got[w] && made[F(w,got[w])] != KEY(term[w],got[w])+1 -> made[F(w,got[w])] = KEY(term[w],got[w])+1 } \
 :: d_step { MUT!=1 && term[w]==known && !(asks & BIT(w)) && asked[w]<=term[w] && !ENDED && \
      (MUT==2 -> got[w] : LEAST) >= (term[w]+1)*L -> \
      asks = asks | BIT(w); if :: MUT==6 -> asked[w] = term[w]+1 :: else fi } \
 :: d_step { row[w]<stored && MUT!=7 -> row[w] = stored } \
 :: d_step { term[w]<known && (MUT==3 || MUT==7 || (row[0]==known && row[1]==known)) -> term[w] = known }

active proctype World() {
  do
  EACH(0)
  EACH(1)
  RANK(0)
  RANK(1)
  :: d_step { asks==ALL || (MUT==2 && asks!=0) ->
       known++; asks = 0;
       if :: MUT==3 -> skip :: else -> stored = known fi }
  :: d_step { MUT==3 && stored<known -> stored = known }
  :: d_step { crashes!=0 -> crashes--; asks = 0; known = stored }
  :: ENDED -> break
  od
}
