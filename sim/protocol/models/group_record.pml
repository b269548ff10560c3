/* The commit record of two optimizer nodes that share a model, and how they begin again when one of them is lost.
 *
 * A node trains a step when both have sent the parameters for it in the same epoch; what was sent still counts when its
 * sender has left the epoch. Then it takes a snapshot, and votes under a lock; the vote that completes a step writes
 * the record. A loss ends the epoch: each node, the lost one and the one that lives, notices it at any time later. It
 * closes its store, withdraws its votes for steps that the record does not have, goes back to the record's snapshot and
 * begins in the next epoch; without a record it begins with a new store. A thread of a node that lives may still want
 * to vote for what it committed before.
 *
 * What must hold: every store has the record's step, and is the one that voted for it; nodes that begin in one epoch
 * begin at one step; the training ends.
 *
 * MUT 1: votes are not withdrawn. MUT 2: a node goes on from its own last step, whatever the record says.
 * MUT 3: a vote counts although its store was closed. MUT 4: without a record a vote for step 0 stands.
 * MUT 5: the record is read, and then, with the lock taken anew, the votes are withdrawn. MUT 6: a snapshot is dropped
 * as soon as the node has a later one.
 */
#ifndef MUT
#define MUT 0
#endif
#ifndef LOSSES
#define LOSSES 2
#endif
#ifndef STEPS
#define STEPS 2
#endif

#define NODES 2
#define EPOCHS (LOSSES + 1)
#define BIT(s) (1 << (s))
#define VOTE(n, s) vote[(n) * (STEPS + 1) + (s)]
#define SENT(e, n) sent[(e) * NODES + (n)]
#define START(e, n) start[(e) * NODES + (n)]

byte epoch;                        /* that the controller tells */
byte losses = LOSSES;
byte record;                       /* step + 1; 0: none */
byte recorded[NODES];              /* stores that the record names */
byte store[NODES];                 /* number of each node's store: a new one has another */
byte kept[NODES];                  /* snapshots in it, a bit for each step */
byte vote[NODES * (STEPS + 1)];    /* by node and step: number of the store that voted; 0: none */
byte sent[NODES * EPOCHS];         /* by epoch and node: steps + 1 that the parameters had which it has sent */
byte start[NODES * EPOCHS];        /* by epoch and node: step + 1 that it began with */

inline cast(n, s) {
	VOTE(n, s) = store[n];
	if
	:: VOTE(0, s) > 0 && VOTE(1, s) > 0 && record < s + 1 ->
		record = s + 1; recorded[0] = VOTE(0, s); recorded[1] = VOTE(1, s)
	:: else
	fi;
	assert(record == 0 || (recorded[0] == store[0] && recorded[1] == store[1]));
	assert(record == 0 || ((kept[0] & BIT(record - 1)) && (kept[1] & BIT(record - 1))))
}

inline withdraw(n, agreed) {
	s = 0;
	do
	:: s <= STEPS ->
		if
		:: s + 1 > agreed && MUT != 1 && !(MUT == 4 && agreed == 0 && s == 0) -> VOTE(n, s) = 0
		:: else
		fi;
		s++
	:: else -> break
	od;
	s = 0
}

proctype node(byte me) {
	byte mine, at, agreed, s;
	byte late;                     /* step + 1 of a vote that a thread of an earlier epoch is about to cast */
	bool votes;                    /* the snapshot of `at` is not voted for yet */

again:
	/* Begin: the store is closed, or its process was killed. */
	atomic {
		mine = epoch;
		agreed = record;
		if
		:: MUT != 5 -> withdraw(me, agreed)
		:: else
		fi
	}
	atomic {
		if
		:: MUT == 5 -> withdraw(me, agreed)
		:: else
		fi;
		if
		:: agreed == 0 -> store[me]++; kept[me] = BIT(0); at = 0; votes = true
		:: else ->
			assert(kept[me] & BIT(agreed - 1));
			if
			:: MUT == 2 && at > agreed - 1
			:: else -> at = agreed - 1; kept[me] = kept[me] & (BIT(agreed) - 1)
			fi;
			votes = false
		fi;
		assert(record == 0 || recorded[me] == store[me])
	}
	atomic {
		START(mine, me) = at + 1;
		assert(START(mine, 1 - me) == 0 || START(mine, 1 - me) == at + 1);
		SENT(mine, me) = at + 1
	}
	do
	:: atomic { votes -> cast(me, at); votes = false }
	:: atomic { !votes && at < STEPS && SENT(mine, 1 - me) > at ->
		at++;
		kept[me] = kept[me] | BIT(at);
		votes = true;
		SENT(mine, me) = at + 1
	   }
	:: atomic { !votes && record > 0 ->  /* snapshots before the record's are dropped */
		if
		:: MUT == 6 -> kept[me] = kept[me] & ~(BIT(at) - 1)
		:: else -> kept[me] = kept[me] & ~(BIT(record - 1) - 1)
		fi;
		assert(kept[0] & BIT(record - 1) && kept[1] & BIT(record - 1));
		if
		:: record == STEPS + 1 && epoch == mine -> goto over
		:: else
		fi
	   }
	:: atomic { late > 0 && MUT == 3 -> cast(me, late - 1); late = 0 }
	:: atomic { epoch > mine ->  /* lost, or told of a loss */
		late = (votes -> at + 1 : late);
		votes = false;
		goto again
	   }
	od;
over:
	skip
}

init {
	atomic { run node(0); run node(1) }
	do
	:: atomic { losses > 0 && record < STEPS + 1 -> losses--; epoch++ }
	:: break
	od
}
