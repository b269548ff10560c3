"""Keys that follow one another, as the control plane plans, gives out and notes them: no switch, no rank."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from catchment.controlplane.client import SwitchClient, SwitchError, TableEntry
from catchment.controlplane.controller import messages
from catchment.controlplane.controller.job_watch import State
from catchment.controlplane.controller.key_asks import KeyAsks
from catchment.controlplane.deployment.lifecycle import give_job_keys
from catchment.controlplane.deployment.records import JobRecord
from catchment.controlplane.deployment.store import JobStore, open_store
from catchment.controlplane.jobs import Allocator, JobError, JobGroup, JobPlan, JobRequest, plan_job
from catchment.controlplane.jobs.entries import switch_configs
from catchment.controlplane.topology import Topology, racks
from catchment.host.membership import Description
from catchment.sim.golden import tags
from catchment.wire.generated.constants import TERM_BITS

PROGRAM = Path("luwu.p4")
WORKERS = ("w0", "w1", "w2")


def tree() -> Topology:
    bare = racks([["w0", "w1"], ["w2"]], ["opt"], program=PROGRAM, lanes=8)
    return replace(bare, switches={name: replace(one, tags=True) for name, one in bare.switches.items()})


def ranks(name: str = "job", workers: tuple[str, ...] = WORKERS, allocator: Allocator | None = None) -> JobPlan:
    return plan_job(
        "allreduce", tree(), name=name, workers=workers, slots=4, tags=True, streams=("control",), allocator=allocator
    )


def rows(job: JobPlan, gen: int) -> list[TableEntry]:
    found = [entry for config in switch_configs(job, tree()) for entry in config.entries if entry.table == "tags"]
    return [entry for entry in found if entry.match["gen"] == gen]


def test_the_oldest_key_gives_way_to_the_next() -> None:
    """Two are in use at a time, and each switch of the tree has the same; other streams keep theirs."""
    job = ranks()
    stream, control = job.streams
    assert stream.term_bits == TERM_BITS == 30 and control.term_bits == 0
    assert {entry.action for entry in rows(job, stream.gen)} == {"keyed"}
    keys = {0: stream.key, 1: stream.key}
    for term in range(1, 6):
        job = job.come_to({stream.gen: term})
        now = job.streams[0]
        latest, key = now.latest
        assert latest == term + 1 and key not in keys.values()
        keys[latest] = key
        in_order = (keys[latest], keys[term]) if term % 2 else (keys[term], keys[latest])
        even, odd = (tags.halves(bytes.fromhex(text)) for text in in_order)
        for entry in rows(job, stream.gen):
            said = entry.params
            assert entry.action == "termed" and (said["k0"], said["k1"]) == even
            assert (said["odd_k0"], said["odd_k1"], said["term_bit"]) == (*odd, 1 << 30)
        assert job.streams[1] == control
        assert JobPlan.from_json(json.loads(json.dumps(job.to_json()))) == job
    renewed = job.renewed(Allocator(tree())).streams[0]
    assert renewed.term == 0 and not renewed.odd_key and renewed.key not in keys.values()


def test_members_learn_of_the_bits_and_of_later_keys() -> None:
    """A job file says nothing of terms: whoever has no more than that cannot ask."""
    group = JobGroup("job", {"": ranks()})
    stream = group.first.streams[0]
    assert Description.of(messages.description(group, "w0"), 1).streams["sums"].term_bits == 30
    assert "term_bits" not in group.describe("w0")["sums"] and "term_bits" not in json.dumps(group.describe_all())
    state = State(epoch=1, group=group, complete=True, trouble="", removed=False, cause="", lost=())
    assert not messages.notice(state, "w0").keys
    later = replace(state, group=group.come_to({stream.gen: 1}))
    [told] = messages.notice(later, "w0").keys
    assert (told.gen, told.term, told.key) == (stream.gen, 2, later.group.first.streams[0].key)
    assert stream.key not in repr(later.group) and told.key not in repr(later.group)


def test_a_key_is_given_when_all_have_asked() -> None:
    """The stream's own workers ask, for its next term; who has no part in it or claims another term changes nothing."""
    allocator = Allocator(tree())
    whole = ranks(allocator=allocator)
    part = ranks("job/part", ("w0", "w2"), allocator)
    group = JobGroup("job", {"": whole, "part": part})
    gen, other, control = whole.streams[0].gen, part.streams[0].gen, whole.streams[1].gen
    asks = KeyAsks()
    assert asks.note(group, "w0", [(gen, 1), (other, 1)]) == {}
    assert asks.note(group, "w1", [(gen, 2), (gen, 0), (other, 1), (control, 1), (9, 1)]) == {}
    assert asks.note(group, "w2", [(gen, 1), (other, 1)]) == {other: 1}
    assert asks.trouble == ""
    assert asks.note(group, "w0", [(gen, 1)]) == {}
    assert "w1" in asks.trouble and "w2" not in asks.trouble
    assert asks.note(group, "w1", [(gen, 1)]) == {gen: 1}
    asks.forget(gen, 1)
    assert asks.trouble == ""
    group = group.come_to({gen: 1})
    assert asks.note(group, "w1", [(gen, 1)]) == {}, "it has been given"
    for host in ("w1", "w2"):
        assert asks.note(group, host, [(gen, 2)]) == {}
    assert asks.note(group, "w0", [(gen, 2)]) == {gen: 2}


class Client:
    """A switch that takes entries, or refuses them."""

    def __init__(self) -> None:
        self.refuses = False
        self.entries: list[TableEntry] = []

    def modify(self, *entries: TableEntry) -> None:
        if self.refuses:
            raise SwitchError("s1: no answer")
        self.entries = list(entries)


def test_keys_are_noted_before_switches_have_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch that is down or a full disk leaves all as it was; what a switch refused it gets with the next try."""
    topology = tree()
    with open_store(topology, tmp_path) as jobs:
        request = JobRequest("job", "allreduce", WORKERS, slots=4, tags=True)
        jobs.put(JobRecord(request.plan(topology, jobs.allocator)))

    def store() -> AbstractContextManager[JobStore]:
        return open_store(topology, tmp_path)

    def noted() -> Any:
        with store() as jobs:
            return jobs.get("job").first.streams[0]

    clients = {name: Client() for name in topology.switches}
    before = noted()

    def give(some: dict[str, Client]) -> Any:
        return give_job_keys(store, "job", topology, cast("dict[str, SwitchClient]", some), {before.gen: 1})

    with pytest.raises(JobError, match=r"gets no keys while .* does not answer"):
        give(dict(list(clients.items())[:-1]))
    assert noted() == before
    with monkeypatch.context() as full:
        full.setattr(JobStore, "put", lambda *_: (_ for _ in ()).throw(JobError("the disk is full")))
        with pytest.raises(JobError, match="full"):
            give(clients)
    assert noted() == before and not any(client.entries for client in clients.values())
    last = clients[list(topology.switches)[-1]]
    last.refuses = True
    record, failures = give(clients)
    assert len(failures) == 1 and noted() == record.group.first.streams[0] and noted().term == 1
    last.refuses = False
    again, failures = give(clients)
    assert again == record and not failures
    halves = tags.halves(bytes.fromhex(noted().key))
    for client in clients.values():
        assert client.entries and {(e.params["k0"], e.params["k1"]) for e in client.entries} == {halves}
        assert {entry.table for entry in client.entries} == {"tags"}
