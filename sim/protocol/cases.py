"""What is checked: configurations that must hold, and mutants and printed rules that must fail."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Case:
    """One run of Spin over one model.

    `search` is "dfs" (every reachable state: assertions and deadlocks) or "np" (non-progress
    cycles).  `holds` says what must come out.
    """

    name: str
    model: str
    holds: bool
    defines: dict[str, int] = field(default_factory=dict)
    search: str = "dfs"


def _unified(name: str, holds: bool, search: str = "dfs", **defines: int) -> Case:
    return Case(name, "unified.pml", holds, {"W": 2, "T": 2, "S": 4, **defines}, search)


def _slots(name: str, holds: bool, search: str = "dfs", **defines: int) -> Case:
    return Case(name, "slots.pml", holds, {"W": 2, "T": 2, "S": 4, **defines}, search)


def _rails(name: str, holds: bool, search: str = "dfs", **defines: int) -> Case:
    return Case(name, "rails.pml", holds, {"W": 2, "U": 2, "OPS": 1, **defines}, search)


def _ring(name: str, holds: bool, **defines: int) -> Case:
    return Case(name, "ring_rail.pml", holds, {"VERDICTS": 2, **defines})


def _three(name: str, holds: bool, search: str = "dfs", **defines: int) -> Case:
    return Case(name, "tree.pml", holds, {"DEPTH": 3, **defines}, search)


def _slots_three(name: str, holds: bool, search: str = "dfs", **defines: int) -> Case:
    return Case(name, "slots_tree.pml", holds, {"DEPTH": 3, **defines}, search)


REDUCE, CLOCKED = 1, 2

CASES: tuple[Case, ...] = (
    _unified("all-reduce", True, S=6),
    _unified("all-reduce, three workers", True, W=3),
    _unified("all-reduce, no endless loop", True, search="np"),
    _unified("all-reduce, receivers that drain late", True, CONSUME=1),
    _unified("all-reduce, switch restart", True, RS=1),
    _unified("all-reduce, a worker crashes", True, S=3, NGEN=2),
    _unified("all-reduce without acks", True, MODE=CLOCKED),
    _unified("reduce", True, MODE=REDUCE),
    _unified("reduce, no endless loop", True, search="np", MODE=REDUCE),
    _unified("reduce, crash and switch restart", True, MODE=REDUCE, S=3, NGEN=2, RS=1),
    _unified("all-reduce, sequence numbers bounded", True, S=6, BOUND=1),
    _unified("all-reduce, bounded, switch restart", True, RS=1, BOUND=1),
    _unified("all-reduce, bounded, a worker crashes", True, S=3, NGEN=2, BOUND=1),
    _unified("all-reduce, bounded, no endless loop", True, search="np", BOUND=1),
    _unified("all-reduce, far vectors", True, BOUND=1, FAR=2, RS=1),
    _unified("all-reduce, far vectors, no endless loop", True, search="np", BOUND=1, FAR=2),
    _unified("reduce, sequence numbers bounded", True, MODE=REDUCE, BOUND=1),
    _unified("reduce, bounded, switch restart", True, MODE=REDUCE, S=3, RS=1, BOUND=1),
    _unified("reduce, far vectors", True, MODE=REDUCE, S=3, BOUND=1, FAR=2, RS=1),
    Case("broadcast, crash and switch restart", "bcast_gen.pml", True),
    Case("P4SGD with state-checked acceptance", "p4sgd_fifo.pml", True, {"FIXW": 1}),
    Case("tree, all-reduce", "tree.pml", True),
    Case("tree, all-reduce, no endless loop", "tree.pml", True, search="np"),
    Case("tree, all-reduce, leaf restart", "tree.pml", True, {"RL": 1}),
    Case("tree, reduce", "tree.pml", True, {"MODE": REDUCE, "S": 4}),
    Case("tree, reduce, leaf and spine restart", "tree.pml", True, {"MODE": REDUCE, "RL": 1, "RS": 1}),
    _three("tree of three levels, all-reduce", True),
    _three("tree of three levels, all-reduce, no endless loop", True, search="np", T=1, S=2),
    _three("tree of three levels, all-reduce, restart below", True, T=1, S=2, RL=1),
    _three("tree of three levels, all-reduce, restart in the middle", True, T=1, RM=1),
    _three("tree of three levels, all-reduce, restart of the top", True, T=1, S=2, RS=1),
    _three("tree of three levels, reduce", True, MODE=REDUCE, S=4),
    _three("tree of three levels, reduce, restart in the middle", True, MODE=REDUCE, RM=1),
    _slots("slots", True),
    _slots("slots, no endless loop", True, search="np"),
    _slots("slots, three workers", True, W=3, S=3),
    _slots("slots, windows that differ, switch restart", True, WIN0=1, RS=1),
    _slots("slots, switch restart", True, RS=1),
    _slots("slots, rounds bounded", True, BOUND=1),
    _slots("slots, bounded, windows that differ, switch restart", True, S=3, WIN0=1, RS=1, BOUND=1),
    _slots("slots, far rounds", True, BOUND=1, FAR=2),
    _slots("slots, far rounds, no endless loop", True, search="np", T=1, S=3, BOUND=1, FAR=2),
    _slots("slots, far rounds, switch restart", True, T=1, S=3, BOUND=1, FAR=2, RS=1),
    Case("slots on a tree", "slots_tree.pml", True),
    Case("slots on a tree, no endless loop", "slots_tree.pml", True, search="np"),
    Case("slots on a tree, leaf restart", "slots_tree.pml", True, {"RL": 1}),
    Case("slots on a tree, top restart", "slots_tree.pml", True, {"RS": 1}),
    Case("slots on a tree, rounds bounded, far rounds", "slots_tree.pml", True, {"BOUND": 1, "FAR": 1}),
    Case("slots on a tree, bounded, leaf restart", "slots_tree.pml", True, {"S": 2, "BOUND": 1, "RL": 1, "FAR": 1}),
    Case("slots on a tree, bounded, top restart", "slots_tree.pml", True, {"S": 2, "BOUND": 1, "RS": 1}),
    _slots_three("slots on three levels", True),
    _slots_three("slots on three levels, no endless loop", True, search="np"),
    _slots_three("slots on three levels, restart below", True, S=2, RL=1),
    _slots_three("slots on three levels, restart in the middle", True, S=2, RM=1),
    _slots_three("slots on three levels, restart of the top", True, S=2, RS=1),
    _slots_three("slots on three levels, rounds bounded, far rounds", True, S=2, BOUND=1, FAR=1),
    _rails("rails, a rail fails and returns", True, OPS=2),
    _rails("rails, three vectors", True, U=3),
    Case("rails, rounds while a rail fails and the other is late", "rail_rounds.pml", True),
    _ring("ring rail, a connection breaks, ranks go over another rail and come back", True),
    _ring("ring rail, three vectors, two slots, two breaks", True, U=3, T=2, BREAKS=2, VERDICTS=0),
    Case("group of jobs, hosts and the controller crash", "job_group.pml", True),
    Case("group of jobs, hosts ask for other keys", "job_group.pml", True, {"ASKS": 2, "CRASHES": 0}),
    Case("keys that follow one another, the controller crashes", "term_keys.pml", True),
    Case("proxies that keep parts by tensor", "coarse.pml", True),
    Case("proxies with the paper's queues, pushes in one order", "coarse.pml", True, {"QUEUES": 1, "SAME": 1}),
    Case("record of a group of stores, nodes are lost and begin again", "group_record.pml", True),
    Case("program in its callers, a rank dies inside", "in_place.pml", True),
    Case("program in its callers, a rank dies before it wakes others", "in_place_wake.pml", True),
    Case("program in its callers, a port gets another peer", "in_place_wake.pml", True, {"DEATHS": 0, "OTHERS": 1}),
    Case("program in its callers, waiters look at a word", "in_place_hint.pml", True),
    # A checker that never fails proves nothing.
    _unified("mutant: slot tag without generation", False, S=3, NGEN=2, MUT=1),
    _unified("mutant: no slot tag", False, MUT=2),
    _unified("mutant: credit one too large", False, MUT=4),
    _unified("mutant: resend from own ack", False, RS=1, MUT=5),
    _unified("mutant: missing heartbeats ignored", False, RS=1, MUT=6),
    _unified("mutant: one parity bit for the tag", False, MUT=8),
    _unified("mutant: the switch's bound leaves no room", False, BOUND=1, MUT=9),
    _unified("mutant: the switch's bound leaves no room, reduce", False, MODE=REDUCE, BOUND=1, MUT=9),
    _unified("mutant: a far vector without a bound", False, FAR=1),
    _unified("mutant: a slot that a far vector took is kept", False, BOUND=1, FAR=1, MUT=10),
    _unified("mutant: a slot that a far vector took is kept, reduce", False, MODE=REDUCE, BOUND=1, FAR=1, MUT=10),
    Case("mutant: leaf keeps its sum on a duplicate", "tree.pml", False, {"MUT": 1}),
    Case("mutant: leaf ignores missing heartbeats", "tree.pml", False, {"MUT": 2, "RL": 1}),
    Case("mutant: leaf sends an unfinished sum", "tree.pml", False, {"MUT": 3}),
    Case("mutant: leaf acknowledges by itself", "tree.pml", False, {"MUT": 4}),
    _three("mutant: middle keeps its sum on a duplicate", False, T=1, S=2, MUT=1, AT=1),
    _three("mutant: middle ignores missing heartbeats", False, T=1, S=2, MUT=2, AT=1, RL=1, RM=1),
    _three("mutant: middle sends an unfinished sum", False, MUT=3, AT=1),
    _three("mutant: middle acknowledges by itself", False, T=1, S=2, MUT=4, AT=1),
    _slots("mutant: slot with one parity bit", False, T=1, MUT=1),
    _slots("mutant: any confirmation of the slot is taken", False, MUT=2),
    _slots("mutant: a slot is used again before the confirmation", False, MUT=3),
    _slots("mutant: confirmed rounds are not acknowledged again", False, MUT=4, RS=1),
    _slots("mutant: a duplicate is added once more", False, MUT=5),
    _slots("mutant: no vector again while a confirmation is awaited", False, MUT=6, RS=1),
    _slots("mutant: late acknowledgements are dropped", False, MUT=7),
    _slots("mutant: the slots' bound leaves no room", False, T=1, S=3, BOUND=1, MUT=8),
    _slots("mutant: a slot that a far round took is kept", False, T=1, S=3, BOUND=1, FAR=1, MUT=9),
    _slots("mutant: confirmed before all are heard", False, T=1, S=3, BOUND=1, FAR=1, RS=1, MUT=10),
    Case("mutant: leaf sends an unfinished sum of slots", "slots_tree.pml", False, {"MUT": 1}),
    Case("mutant: leaf keeps its sum of slots on a duplicate", "slots_tree.pml", False, {"MUT": 2}),
    Case("mutant: leaf confirms by itself", "slots_tree.pml", False, {"MUT": 3}),
    Case("mutant: leaf keeps its acknowledgement on a duplicate", "slots_tree.pml", False, {"MUT": 4}),
    Case("mutant: a leaf's bound leaves no room", "slots_tree.pml", False, {"BOUND": 1, "MUT": 5}),
    Case(
        "mutant: a leaf keeps a slot that a far round took", "slots_tree.pml", False, {"BOUND": 1, "FAR": 1, "MUT": 6}
    ),
    _slots_three("mutant: middle sends an unfinished sum of slots", False, MUT=1, AT=1),
    _slots_three("mutant: middle keeps its sum of slots on a duplicate", False, MUT=2, AT=1),
    _slots_three("mutant: middle confirms by itself", False, MUT=3, AT=1),
    _slots_three("mutant: middle keeps its acknowledgement on a duplicate", False, MUT=4, AT=1),
    _slots_three("mutant: the bound in the middle leaves no room", False, BOUND=1, MUT=5, AT=1),
    _rails("mutant: a rank sends again what its array holds", False, MUT=1),
    _rails("mutant: a rank forgets a vector when it has the sum itself", False, MUT=2),
    _rails("mutant: a verdict counts from a rank's own number on", False, MUT=3),
    _rails("mutant: a rank that suspects nothing stays on the rail", False, MUT=4),
    _rails("mutant: a rank that moves does not send again", False, MUT=5),
    _rails("mutant: a rank splits operations before the verdict", False, MUT=6),
    Case("mutant: a round is asked over settled rails alone", "rail_rounds.pml", False, {"MUT": 1}),
    Case("mutant: a rail that is down and late is not asked", "rail_rounds.pml", False, {"MUT": 2}),
    Case("mutant: a rank comes to a verdict by its own record", "rail_rounds.pml", False, {"MUT": 3}),
    Case("mutant: a round counts before all have recorded", "rail_rounds.pml", False, {"MUT": 4}),
    _ring("mutant: a partial sum that comes again is added to what is there", False, MUT=1),
    _ring("mutant: a slot of a ring takes an older vector back", False, MUT=2),
    _ring("mutant: who cannot answer in a ring does not pass on what is asked", False, MUT=3),
    _ring("mutant: a chain that is begun again ends at who has the sum", False, MUT=4),
    _ring("mutant: a rank of a ring sends before all have the sum of its slot", False, MUT=5),
    _ring("mutant: a chain of a ring is not begun again where it begins", False, MUT=6),
    _ring("mutant: a rank that comes back to a ring does not send again", False, MUT=7),
    Case("mutant: only the lost host's jobs are renewed", "job_group.pml", False, {"MUT": 1}),
    Case("mutant: a host is told of its jobs one by one", "job_group.pml", False, {"MUT": 2}),
    Case("mutant: hosts are told before it is stored", "job_group.pml", False, {"MUT": 3}),
    Case("mutant: a lost host comes back with old generations", "job_group.pml", False, {"MUT": 4}),
    Case(
        "mutant: only the asking host's jobs are renewed", "job_group.pml", False, {"MUT": 5, "ASKS": 1, "CRASHES": 0}
    ),
    Case("mutant: a host that asks goes on where it is", "job_group.pml", False, {"MUT": 6, "ASKS": 1, "CRASHES": 0}),
    Case("mutant: one key for all terms", "term_keys.pml", False, {"MUT": 1}),
    Case("mutant: a key is given to the first rank that asks by its own sums", "term_keys.pml", False, {"MUT": 2}),
    Case("mutant: ranks get a key before it is stored", "term_keys.pml", False, {"MUT": 3}),
    Case("mutant: a switch takes the keys that it had before", "term_keys.pml", False, {"MUT": 4}),
    Case("mutant: a rank goes on when its keys are spent", "term_keys.pml", False, {"MUT": 5}),
    Case("mutant: a rank asks for a key once only", "term_keys.pml", False, {"MUT": 6}),
    Case("mutant: ranks get a key and the switches do not", "term_keys.pml", False, {"MUT": 7}),
    Case("mutant: GO before all proxies are ready", "coarse.pml", False, {"MUT": 1}),
    Case("mutant: GOs run in the order in which they come", "coarse.pml", False, {"MUT": 2}),
    Case("mutant: room for one part of a client", "coarse.pml", False, {"ROOM": 1}),
    Case("mutant: votes of an epoch that is over stand", "group_record.pml", False, {"MUT": 1}),
    Case("mutant: a node ignores its group's record", "group_record.pml", False, {"MUT": 2}),
    Case("mutant: a vote counts when its store was closed", "group_record.pml", False, {"MUT": 3}),
    Case("mutant: a vote for a store that is made anew stands", "group_record.pml", False, {"MUT": 4}),
    Case("mutant: the record is read before the lock is taken", "group_record.pml", False, {"MUT": 5}),
    Case("mutant: a snapshot is dropped before the record has a later one", "group_record.pml", False, {"MUT": 6}),
    Case("mutant: what a dead rank left in the data plane is worked on", "in_place.pml", False, {"MUT": 1}),
    Case("mutant: a frame is shown before it is written", "in_place.pml", False, {"MUT": 2}),
    Case("mutant: the data plane's lock is not robust", "in_place.pml", False, {"MUT": 3}),
    Case("mutant: entries are written while a caller is inside", "in_place.pml", False, {"MUT": 4}),
    Case("mutant: callers go on before all registers are new", "in_place.pml", False, {"MUT": 5}),
    Case("mutant: the switch wakes nobody after a death", "in_place_wake.pml", False, {"MUT": 1}),
    Case("mutant: a receiver sleeps without a last look", "in_place_wake.pml", False, {"MUT": 2}),
    Case("mutant: a caller looks who waits before it shows its frames", "in_place_wake.pml", False, {"MUT": 3}),
    Case("mutant: the switch wakes only who says that he waits", "in_place_wake.pml", False, {"MUT": 4}),
    Case("mutant: a word does not say whose it is", "in_place_wake.pml", False, {"DEATHS": 0, "OTHERS": 1, "MUT": 5}),
    Case("mutant: a waiter believes the word for ever", "in_place_hint.pml", False, {"MUT": 1}),
    Case("mutant: who finds nobody inside does not ask for the lock", "in_place_hint.pml", False, {"MUT": 2}),
    Case("mutant: who runs nothing leaves the word as it is", "in_place_hint.pml", False, {"MUT": 3}),
    Case("COARSE as printed", "coarse.pml", False, {"QUEUES": 1}),
    Case("P4SGD as printed", "p4sgd_fifo.pml", False),
    Case("LuWu as printed", "luwu_fifo.pml", False),
)
