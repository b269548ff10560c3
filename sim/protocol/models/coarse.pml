/* Two clients push the parts of three tensors to two proxies, each by a routing table of its own and in its own order
 * (SAME 1: both in the same one). A tensor is synchronized by one group, of which each proxy has a core, when every
 * client's part of it is there. What must hold: all tensors are synchronized at last, and no proxy waits for data while
 * it holds the group.
 *
 * QUEUES 0: a proxy keeps parts by tensor. It says READY to the tensor's leader, a proxy, when all parts for it have
 *           come; the leader says GO to both when both are ready, with the group's next number; a proxy runs GOs in
 *           the order of these numbers. Messages of different leaders overtake each other.
 * QUEUES 1: a queue for each client, of which only the head can be taken: what the paper prints.
 * ROOM:     parts of one client that a proxy has room for.
 *
 * MUT 1: the leader says GO when it is ready itself. MUT 2: a proxy runs GOs in the order in which they come.
 */
#ifndef QUEUES
#define QUEUES 0
#endif
#ifndef SAME
#define SAME 0
#endif
#ifndef ROOM
#define ROOM 3
#endif
#ifndef MUT
#define MUT 0
#endif

#define TENSORS 3
#define HOME(c, t) home[(c) * TENSORS + (t)]
#define HELD(p, c) held[(p) * 2 + (c)]
#define PART(c, t) part[(c) * TENSORS + (t)]
/* Everything that clients send to proxy p for tensor t is there. */
#define COMPLETE(p, t) ((HOME(0, t) != (p) || PART(0, t)) && (HOME(1, t) != (p) || PART(1, t)))

bit home[6];              /* proxy of each client's part of each tensor */
bool part[6];             /* the part is at its proxy */
byte held[4];             /* parts of each client that each proxy has */
byte numbered;            /* GOs of the group so far */
byte go[6];               /* by proxy and number: tensor + 1, when the GO is there */
byte came[6];             /* by proxy: its GOs in the order in which they came, number + 1 */
byte heard[2];            /* GOs that came to each proxy */
bool joined[6];           /* by proxy and tensor: its core runs it */
byte left[TENSORS] = 2;   /* proxies that have yet to synchronize the tensor */
chan queue[4] = [TENSORS] of { byte };

inline arrive(c, t)
{
	atomic {
		HELD(HOME(c, t), c) < ROOM;
		HELD(HOME(c, t), c)++;
		if
		:: QUEUES -> queue[HOME(c, t) * 2 + c] ! t
		:: else
		fi;
		PART(c, t) = true
	}
}

proctype client(byte c)
{
	byte t;

	if
	:: SAME ->
		for (t : 0 .. TENSORS - 1) { arrive(c, t) }
	:: else ->
		do
		:: atomic { !PART(c, 0) -> arrive(c, 0) }
		:: atomic { !PART(c, 1) -> arrive(c, 1) }
		:: atomic { !PART(c, 2) -> arrive(c, 2) }
		:: PART(c, 0) && PART(c, 1) && PART(c, 2) -> break
		od
	fi
}

/* The leader of tensor t, which is proxy t mod 2: it hears READY, and says GO. */
proctype leader(byte t)
{
	byte k, p;

	if
	:: MUT == 1 -> COMPLETE(t % 2, t)
	:: else -> COMPLETE(0, t) && COMPLETE(1, t)
	fi;
	atomic { k = numbered; numbered++; p = 0 }
	for (p : 0 .. 1) {
		atomic {
			go[p * TENSORS + k] = t + 1;
#if MUT == 2
			came[p * TENSORS + heard[p]] = k + 1;
			heard[p]++
#endif
		}
	}
}

proctype proxy(byte p)
{
	byte ran, k, t;

	do
	:: ran < TENSORS ->
#if MUT == 2
		heard[p] > ran;
		k = came[p * TENSORS + ran] - 1;
#else
		k = ran;
		go[p * TENSORS + k] > 0;
#endif
		t = go[p * TENSORS + k] - 1;
		assert(COMPLETE(p, t));
		joined[p * TENSORS + t] = true;
		atomic {
			joined[(1 - p) * TENSORS + t];
			left[t]--;
			if
			:: HOME(0, t) == p -> HELD(p, 0)--
			:: else
			fi;
			if
			:: HOME(1, t) == p -> HELD(p, 1)--
			:: else
			fi;
			ran++
		}
	:: else -> break
	od
}

#define HEADS(t) (queue[HOME(0, t) * 2] ? [eval(t)] && queue[HOME(1, t) * 2 + 1] ? [eval(t)])
#define TAKE(t) queue[HOME(0, t) * 2] ? eval(t); queue[HOME(1, t) * 2 + 1] ? eval(t); HELD(HOME(0, t), 0)--; \
	HELD(HOME(1, t), 1)--; left[t] = 0

proctype queues()
{
	do
	:: atomic { HEADS(0) -> TAKE(0) }
	:: atomic { HEADS(1) -> TAKE(1) }
	:: atomic { HEADS(2) -> TAKE(2) }
	:: left[0] + left[1] + left[2] == 0 -> break
	od
}

init {
	byte at;

	atomic {
		for (at : 1 .. 5) { /* the part at 0 is at proxy 0: which proxy is which makes no difference */
			if
			:: home[at] = 0
			:: home[at] = 1
			fi
		}
		run client(0);
		run client(1);
		if
		:: QUEUES -> run queues()
		:: else ->
			for (at : 0 .. TENSORS - 1) { run leader(at) }
			run proxy(0);
			run proxy(1)
		fi
	}
}
