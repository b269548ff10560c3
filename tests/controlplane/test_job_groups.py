"""Groups of jobs: how they divide their workers, what they hold, and that switches and store have all or none."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from fake_switch import FakeSwitch, RunningFake, entity_key
from google.rpc import code_pb2

from catchment.checkout import ROOT
from catchment.controlplane.client import P4Info, SwitchClient, SwitchError
from catchment.controlplane.client.entries import to_message
from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.deployment.store import open_store
from catchment.controlplane.jobs import (
    Allocator,
    Choice,
    JobError,
    JobGroup,
    JobRequest,
    SplitCall,
    deploy,
    remove,
    renew,
)
from catchment.controlplane.jobs.division import grid, split
from catchment.controlplane.jobs.request import extended
from catchment.controlplane.topology import Topology, racks, star
from catchment.wire.generated import p4runtime_pb2

GOLDEN = ROOT / "p4src" / "p4info" / "luwu_64.p4info.txtpb"
WORKERS = tuple(f"w{i}" for i in range(8))
STAR = star([*WORKERS, "o1", "o2"], program=Path("luwu.p4"), name="lab", slots=4096)
RACKS = racks([["w0", "w1"], ["w2", "w3"]], ["opt"], program=Path("luwu.p4"), name="lab", slots=1024)


def planned(topology: Topology = STAR, workers: tuple[str, ...] = WORKERS, **asked: object) -> JobGroup:
    request = JobRequest("train", str(asked.pop("kind", "allreduce")), workers, slots=8, **asked)  # type: ignore[arg-type]
    return request.plan(topology, Allocator(topology))


# Division


def test_a_split_is_that_of_mpi(rng: random.Random) -> None:
    for _ in range(200):
        workers = [f"h{i}" for i in rng.sample(range(100), rng.randint(1, 12))]
        choices = {w: Choice(rng.choice([None, -3, 0, 7]), rng.randint(-2, 2)) for w in workers}
        found = split(workers, choices)
        # As the standard says it: rank by rank, each finds those of its color and counts who comes before it.
        for rank, worker in enumerate(workers):
            color, key = choices[worker].color, choices[worker].key
            if color is None:
                assert all(worker not in members for members in found.values())
                continue
            mine = [(choices[w].key, r) for r, w in enumerate(workers) if choices[w].color == color]
            assert found[color].index(worker) == sum(other < (key, rank) for other in mine)
            assert len(found[color]) == len(mine)
        assert list(found) == sorted(found)


def test_a_split_needs_every_worker_and_no_other() -> None:
    with pytest.raises(JobError, match="not chosen: b, c"):
        split(["a", "b", "c"], {"a": Choice(0)})
    with pytest.raises(JobError, match="no workers: z"):
        split(["a"], {"a": Choice(0), "z": Choice(0)})


def test_a_grid_has_blocks_and_those_at_equal_places() -> None:
    assert grid(WORKERS, [("partition", 4), ("node", 2)], "j") == {
        "partition.0": ("w0", "w1", "w2", "w3"), "partition.1": ("w4", "w5", "w6", "w7"),
        "across-partition.0": ("w0", "w4"), "across-partition.1": ("w1", "w5"),
        "across-partition.2": ("w2", "w6"), "across-partition.3": ("w3", "w7"),
        "node.0": ("w0", "w1"), "node.1": ("w2", "w3"), "node.2": ("w4", "w5"), "node.3": ("w6", "w7"),
        "across-node.0": ("w0", "w2"), "across-node.1": ("w1", "w3"),
        "across-node.2": ("w4", "w6"), "across-node.3": ("w5", "w7"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ([("a", 3)], "blocks of 3 do not fill 8 workers evenly"),
        ([("a", 0)], "blocks of 0 do not fill"),
        ([("a", 4), ("b", 8)], "blocks of 8 do not fill 4 workers evenly"),
        ([("a", 4), ("a", 2)], "the name is taken"),
        ([("across-a", 4)], "the name is taken"),
        ([("split1", 4)], "'split1' cannot name blocks"),
        ([("a b", 4)], "'a b' cannot name blocks"),
    ],
)
def test_a_grid_that_cannot_be_is_explained(sizes: list[tuple[str, int]], complaint: str) -> None:
    with pytest.raises(JobError, match=complaint):
        planned(grid=tuple(sizes))


# Plans


def test_the_jobs_of_a_group_share_nothing_and_know_their_place() -> None:
    group = planned(grid=(("partition", 4), ("node", 2)))
    shares = [s for plan in group.plans for stream in plan.streams for s in stream.shares]
    cells = [cell for share in shares for cell in range(share.base, share.base + share.slots)]
    assert len(set(cells)) == len(cells) == 15 * 8
    generations = [stream.gen for plan in group.plans for stream in plan.streams]
    assert len(set(generations)) == 15
    told = group.describe("w5")
    assert (told["role"], told["wid"], told["sums"]["workers"]) == ("peer", 5, 8)
    assert {label: (part["wid"], part["sums"]["workers"]) for label, part in told["parts"].items()} == {
        "partition.1": (1, 4), "across-partition.1": (1, 2), "node.2": (1, 2), "across-node.3": (0, 2)
    }  # fmt: skip
    ports = [told["local"][1], *(part["local"][1] for part in told["parts"].values())]
    assert len(set(ports)) == 5
    assert JobGroup.from_json(json.loads(json.dumps(group.to_json()))) == group
    assert group.describe_all()["parts"]["across-node.3"]["workers"] == ["w5", "w7"]
    with pytest.raises(JobError, match="host o1 is not in job train"):
        group.describe("o1")


def test_several_roots_and_a_job_by_itself() -> None:
    group = planned(kind="luwu", roots=("o1", "o2"))
    assert {label: plan.root for label, plan in group.parts.items()} == {"o1": "o1", "o2": "o2"}
    assert group.hosts == (*WORKERS, "o1", "o2")
    told = group.describe("w3")
    assert "role" not in told and list(told["parts"]) == ["o1", "o2"]
    assert list(group.describe("o2")["parts"]) == ["o2"]
    alone = planned(kind="luwu", root="o1")
    assert alone.describe("w3") == alone.first.describe("w3")
    assert alone.describe_all() == alone.first.describe_all()


def test_what_contradicts_itself_is_refused() -> None:
    with pytest.raises(JobError, match="give --root for one job or --roots for a group, not both"):
        planned(kind="luwu", root="o1", roots=("o1", "o2"))
    with pytest.raises(JobError, match="a root can be given once only; given: o1, o1"):
        planned(kind="luwu", roots=("o1", "o1"))
    with pytest.raises(JobError, match="topology lab has no rails"):
        planned(rails=("a", "b"))


def test_a_group_that_does_not_fit_takes_nothing(tmp_path: Path) -> None:
    store = partial(open_store, STAR, tmp_path)
    large = JobRequest("large", "allreduce", WORKERS, None, 1024, grid=(("node", 4),))
    with pytest.raises(JobError, match="switch s1 has no 1024 slots in a row"):
        lifecycle.reserve_job(store, large, STAR)
    with store() as stored:
        assert stored.jobs == {}
        assert stored.allocator.load("s1") == (0, 0)
        assert stored.allocator.next_generation == 1


def test_a_split_of_a_group_comes_again_with_the_same_workers_only() -> None:
    allocator = Allocator(STAR)
    group = JobRequest("train", "allreduce", WORKERS, None, 8).plan(STAR, allocator)
    halves = {w: Choice(rank // 4, -rank) for rank, w in enumerate(WORKERS)}
    once = extended(group, SplitCall(0), halves, STAR, allocator)
    assert {label: plan.workers for label, plan in once.parts.items()} == {
        "": WORKERS, "split0.0": ("w3", "w2", "w1", "w0"), "split0.1": ("w7", "w6", "w5", "w4")
    }  # fmt: skip
    assert extended(once, SplitCall(0), halves, STAR, allocator) == once
    more = extended(
        once, SplitCall(1), {w: Choice(0 if rank < 2 else None) for rank, w in enumerate(WORKERS)}, STAR, allocator
    )
    assert set(more.parts) == {*once.parts, "split1.0"}
    other = extended(more, SplitCall(0), {w: Choice(9) for w in WORKERS}, STAR, allocator)
    assert set(other.parts) == {"", "split0.9", "split1.0"}
    assert other.parts["split1.0"] == more.parts["split1.0"]
    again = other.renewed(allocator)
    assert not {s.gen for p in again.plans for s in p.streams} & {s.gen for p in other.plans for s in p.streams}
    assert again.splits == other.splits


def test_splits_among_some_workers_stand_beside_each_other() -> None:
    allocator = Allocator(STAR)
    group = JobRequest("train", "allreduce", WORKERS, None, 8).plan(STAR, allocator)
    low, mixed = SplitCall(0, (1, 2)), SplitCall(0, (2, 5, 7))
    once = extended(group, low, {"w1": Choice(0), "w2": Choice(0, -1)}, STAR, allocator)
    both = extended(once, mixed, {w: Choice(int(w != "w5")) for w in ("w2", "w5", "w7")}, STAR, allocator)
    assert {label: plan.workers for label, plan in both.parts.items() if label} == {
        "split0-of-1-2.0": ("w2", "w1"), "split0-of-2-5-7.0": ("w5",), "split0-of-2-5-7.1": ("w2", "w7")
    }  # fmt: skip
    assert (both.made_by(low), len(both.made_by(mixed))) == (["split0-of-1-2.0"], 2)
    assert JobGroup.from_json(json.loads(json.dumps(both.to_json()))) == both
    with pytest.raises(JobError, match="only workers choose a color; no workers: w3"):
        extended(both, low, {w: Choice(0) for w in ("w1", "w2", "w3")}, STAR, allocator)
    for wrong in ((2, 1), (1, 1), (0, len(WORKERS))):
        with pytest.raises(JobError, match="in ascending order, each once"):
            extended(both, SplitCall(0, wrong), {}, STAR, allocator)


# Switches


@pytest.fixture
def fabric() -> Iterator[tuple[dict[str, FakeSwitch], dict[str, SwitchClient]]]:
    with ExitStack() as exits:
        fakes, clients = {}, {}
        info = P4Info.load(GOLDEN)
        for name, switch in RACKS.switches.items():
            fakes[name] = FakeSwitch(device_id=switch.device_id)
            fakes[name].p4info = info.message
            address = exits.enter_context(RunningFake(fakes[name])).address
            clients[name] = exits.enter_context(
                SwitchClient.connect(address, switch.device_id, name=name, timeout=60.0)
            )
        yield fakes, clients


Fabric = tuple[dict[str, FakeSwitch], dict[str, SwitchClient]]


def in_racks(**asked: object) -> JobGroup:
    return planned(RACKS, ("w0", "w1", "w2", "w3"), **asked)


def test_a_switch_that_refuses_the_third_job_leaves_nothing_of_the_first_two(fabric: Fabric, seed: int) -> None:
    fakes, clients = fabric
    group = in_racks(grid=(("half", 2),))
    third = list(group.parts.values())[2]
    assert third.tree[0].switch == "r2", "the other jobs are on other switches, too"
    config = next(c for c in JobGroup.alone(third).configs(RACKS) if c.switch == "r2")
    entry = random.Random(seed).choice(config.entries)
    key = entity_key(p4runtime_pb2.Entity(table_entry=to_message(entry, P4Info.load(GOLDEN))))
    fakes["r2"].refuse[key] = (code_pb2.RESOURCE_EXHAUSTED, "table full")
    with pytest.raises(SwitchError, match="table full"):
        deploy(group, RACKS, clients)
    assert {name: fake.entities for name, fake in fakes.items()} == {name: {} for name in fakes}
    fakes["r2"].refuse.clear()
    deploy(group, RACKS, clients)
    assert all(fake.entities for fake in fakes.values())


def test_a_group_is_written_renewed_and_removed_as_one(fabric: Fabric) -> None:
    fakes, clients = fabric
    allocator = Allocator(RACKS)
    group = JobRequest("train", "allreduce", ("w0", "w1", "w2", "w3"), None, 8, grid=(("half", 2),)).plan(
        RACKS, allocator
    )

    def generations() -> set[int]:
        return {int(e.match["gen"]) for client in clients.values() for e in client.read("jobs")}

    deploy(group, RACKS, clients)
    assert generations() == {stream.gen for plan in group.plans for stream in plan.streams}
    assert fakes["r1"].log.count("write") <= 2, "one write of groups and one of entries, however many jobs"
    after = group.renewed(allocator)
    assert renew(group, after, RACKS, clients) == []
    assert generations() == {stream.gen for plan in after.plans for stream in plan.streams}
    remove(after, clients)
    assert {name: fake.entities for name, fake in fakes.items()} == {name: {} for name in fakes}


# The store


def test_a_file_of_before_groups_is_read(tmp_path: Path) -> None:
    store = partial(open_store, STAR, tmp_path)
    record = lifecycle.reserve_job(store, JobRequest("old", "luwu", ("w0", "w1"), "o1", 16), STAR)
    path = tmp_path / "lab.jobs.sqlite"
    with sqlite3.connect(path) as database:  # as version 4 wrote it
        job = record.group.first.to_json()
        for stream in job["streams"]:
            del stream["slots"]
        database.execute("UPDATE jobs SET plan = ?", (json.dumps(job),))
        (key,) = database.execute("SELECT value FROM settings WHERE name = 'generation_key'").fetchone()
        database.execute("PRAGMA user_version = 4")
    with store() as stored:
        assert stored.record("old").group == record.group
        assert stored.allocator.order.key == key, "the order of the generations goes on"


def test_splits_of_before_they_said_among_whom_are_read(tmp_path: Path) -> None:
    store = partial(open_store, STAR, tmp_path)
    lifecycle.reserve_job(store, JobRequest("old", "allreduce", WORKERS, None, 8), STAR)
    with store() as stored:
        record = stored.record("old")
        choices = {w: Choice(0) for w in WORKERS}
        record = replace(record, group=extended(record.group, SplitCall(1), choices, STAR, stored.allocator))
        stored.put(record)
    with sqlite3.connect(tmp_path / "lab.jobs.sqlite") as database:  # as version 5 wrote it
        group = {**record.group.to_json(), "splits": {"split1.0": 1}}
        database.execute("UPDATE jobs SET plan = ?", (json.dumps(group),))
        database.execute("PRAGMA user_version = 5")
    with store() as stored:
        assert stored.record("old").group == record.group


@pytest.mark.parametrize(
    "stored",
    [{}, {"name": "x", "parts": {}, "splits": {}}, {"name": "x", "parts": [], "splits": {}},
     {"name": "x", "parts": {"": {}}, "splits": {}}],
)  # fmt: skip
def test_what_is_no_group_is_refused(stored: dict[str, object]) -> None:
    with pytest.raises(JobError, match="not a stored job"):
        JobGroup.from_json(stored)
