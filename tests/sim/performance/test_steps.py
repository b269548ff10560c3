"""Training steps: graphs of tasks, Chakra traces in and out, and what systems' steps take."""

from __future__ import annotations

import json
import random
import struct
from itertools import pairwise
from pathlib import Path

import pytest

from catchment.sim.performance.cluster import Cluster, Node, Straggle, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.steps.chakra import read_trace, read_traces, write_traces
from catchment.sim.performance.steps.execute import execute
from catchment.sim.performance.steps.generate import GENERATORS, Step
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.steps.run import run_step
from catchment.sim.performance.steps.times import CollectiveTimes
from catchment.sim.performance.steps.transformer import Transformer
from catchment.sim.performance.timeline import write_timeline

SMALL = Step(Transformer(layers=5, hidden=512, batch=2, sequence=128), micro_steps=2, group=2)


def cluster_of(hosts: int, **node: object) -> Cluster:
    topology = rack_spine(racks=[[f"h{at}" for at in range(hosts)]], spines=0, above=["opt"])
    return Cluster(topology, node=Node(**node))  # type: ignore[arg-type]


def random_trace(rng: random.Random, rank: int = 0) -> Trace:
    tasks = []
    for number in range(rng.randrange(1, 40)):
        after = tuple(rng.sample(range(number), rng.randrange(0, min(number, 4) + 1)))
        if rng.random() < 0.3:
            what = rng.choice(list(Collective))
            tasks.append(Task(number, f"c{number}", Kind.COLLECTIVE, collective=what, size=rng.randrange(1 << 30),
                              group=rng.choice(["", "g"]), stream=rng.choice(["", "pull"]), after=after))  # fmt: skip
        else:
            tasks.append(Task(number, f"t{number}", Kind.COMPUTE, micros=float(rng.randrange(1, 1000)), after=after))
    return Trace(rank, tuple(tasks), {"g": (rank,)})


def test_a_graph_with_free_streams_takes_its_critical_path(rng: random.Random) -> None:
    for _ in range(50):
        trace = random_trace(rng)
        own = tuple(
            Task(t.number, t.name, Kind.COMPUTE, t.micros, stream=str(t.number), after=t.after) for t in trace.tasks
        )
        ends: dict[int, float] = {}
        for task in own:
            ends[task.number] = max((ends[other] for other in task.after), default=0.0) + task.micros
        spans = execute([Trace(0, own)], lambda *_: 0.0)
        assert max(span.ended for span in spans) == pytest.approx(1e-6 * max(ends.values()))


def test_one_stream_does_one_thing_at_a_time(rng: random.Random) -> None:
    trace = random_trace(rng)
    spans = execute([trace], lambda _what, _ranks, size: 1e-9 * size)
    for stream in {span.task.stream or span.task.kind for span in spans}:
        mine = sorted((s.began, s.ended) for s in spans if (s.task.stream or s.task.kind) == stream)
        assert all(before[1] <= after[0] + 1e-12 for before, after in pairwise(mine))


def test_a_collective_waits_for_the_last_of_its_group() -> None:
    def rank(number: int, micros: float) -> Trace:
        tasks = (Task(0, "work", Kind.COMPUTE, micros), Task(1, "sum", Kind.COLLECTIVE, size=8, after=(0,)))
        return Trace(number, tasks)

    spans = execute([rank(0, 10), rank(1, 500)], lambda *_: 1e-3)
    assert {round(span.ended, 9) for span in spans if span.task.number == 1} == {0.0015}
    alone = Trace(1, (Task(0, "work", Kind.COMPUTE, 1.0),))
    with pytest.raises(PerformanceError, match=r"rank 0: node 1 \(sum\) waits for rank 1"):
        execute([rank(0, 10), alone], lambda *_: 1e-3)


def test_streams_of_a_group_do_not_wait_for_each_other() -> None:
    """Rank 1 is late with what it pushes, and pulls before it; rank 0 pushes first."""

    def rank(number: int, micros: float) -> Trace:
        push = Task(1, "push", Kind.COLLECTIVE, collective=Collective.REDUCE, size=8, stream="push", after=(0,))
        pull = Task(3, "pull", Kind.COLLECTIVE, collective=Collective.BROADCAST, size=8, stream="pull", after=(2,))
        early, late = (
            Task(0, "push it", Kind.COMPUTE, micros, stream="a"),
            Task(2, "wait", Kind.COMPUTE, 50, stream="b"),
        )
        return Trace(number, (early, push, late, pull))

    spans = execute([rank(0, 10), rank(1, 500)], lambda what, *_: 1e-3 if what is Collective.REDUCE else 2e-3)
    ends = {(span.rank, span.task.name): round(1e6 * span.ended) for span in spans}
    assert [ends[0, "push"], ends[1, "push"], ends[0, "pull"], ends[1, "pull"]] == [1500, 1500, 2050, 2050]


def test_ranks_that_meet_in_different_collectives() -> None:
    kinds = (Collective.ALL_REDUCE, Collective.ALL_GATHER)
    traces = [Trace(at, (Task(0, "g", Kind.COLLECTIVE, collective=what, size=8),)) for at, what in enumerate(kinds)]
    says = r"rank 1: node 0 \(g\) is ALL_GATHER, and meets rank 0: node 0 \(g\), which is ALL_REDUCE"
    with pytest.raises(PerformanceError, match=says):
        execute(traces, lambda *_: 1e-3)


@pytest.mark.parametrize("system", GENERATORS)
def test_one_trace_for_all_ranks_is_as_good_as_one_each(system: str) -> None:
    cluster = cluster_of(4, gpus=2)
    all_of_them = [GENERATORS[system](cluster, SMALL, rank) for rank in range(8)]
    together, _ = run_step(cluster, all_of_them)
    alone, _ = run_step(cluster, all_of_them[:1])
    assert (alone.seconds, alone.exposed) == pytest.approx((together.seconds, together.exposed))
    assert together.ranks == alone.ranks == 8


def test_computing_on_two_streams_at_a_time_counts_once() -> None:
    streams = [("a", 100.0), ("b", 60.0), ("b", 20.0), ("a", 30.0)]
    tasks = tuple(Task(at, "work", Kind.COMPUTE, micros, stream=name) for at, (name, micros) in enumerate(streams))
    pause = Task(4, "write", Kind.TRANSFER, 70.0, after=(3,))
    late = Task(5, "late", Kind.COMPUTE, 50.0, after=(4,))
    outcome, _ = run_step(cluster_of(2), [Trace(0, (*tasks, pause, late))])
    assert outcome.seconds == pytest.approx(250e-6)
    assert outcome.computing == pytest.approx(180e-6)
    assert outcome.exposed == pytest.approx(70 / 250)
    assert outcome.utilisation == pytest.approx(180 / 250)


@pytest.mark.parametrize("system", GENERATORS)
def test_a_step_lies_between_its_parts_and_their_sum(system: str) -> None:
    outcome, _ = run_step(cluster_of(4), [GENERATORS[system](cluster_of(4), SMALL, 0)])
    assert max(outcome.computing, 0.5 * outcome.communicating) < outcome.seconds
    assert outcome.seconds < 1.01 * (outcome.computing + outcome.communicating)
    slow, _ = run_step(
        cluster_of(4, straggle=Straggle(slow={"h2": 2.0})), [GENERATORS[system](cluster_of(4), SMALL, 0)]
    )
    assert slow.computing == pytest.approx(2 * outcome.computing)


def test_data_parallel_gradients_take_what_the_all_reduces_take() -> None:
    cluster = cluster_of(8, flops=1e30)
    trace = GENERATORS["ddp"](cluster, SMALL, 0)
    times = CollectiveTimes(cluster)
    one = times.seconds(Collective.ALL_REDUCE, tuple(range(8)), SMALL.model.layer_bytes)
    outcome, _ = run_step(cluster, [trace])
    assert outcome.communicating == pytest.approx(5 * one)
    ring, _ = run_step(cluster, [trace], allreduce="ring")
    assert ring.communicating > 1.4 * outcome.communicating


def test_what_does_not_fit_is_refused_and_by_how_much() -> None:
    large = Step(Transformer(layers=96, hidden=12288))
    with pytest.raises(
        PerformanceError, match=r"data parallelism of 173.9 billion parameters needs 2\d+\.\d GiB a GPU"
    ):
        GENERATORS["ddp"](cluster_of(4), large, 0)
    GENERATORS["luwu"](cluster_of(4), large, 0)
    with pytest.raises(PerformanceError, match="no whole number of partition groups"):
        GENERATORS["mics"](cluster_of(3), SMALL, 0)


def test_traces_come_back_as_they_were_written(rng: random.Random, tmp_path: Path) -> None:
    traces = [random_trace(rng, rank) for rank in range(3)]
    write_traces(tmp_path, "run", traces)
    assert read_traces(tmp_path, [1e12]) == traces


# An encoder that shares nothing with the reader: tags, varints, lengths.
def varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def text(field: int, value: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(value)) + value


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def attribute(name: str, field: int, value: int | bytes) -> bytes:
    return text(10, text(1, name.encode()) + (text(field, value) if isinstance(value, bytes) else number(field, value)))


def messages() -> list[bytes]:
    nodes = [
        text(1, b"0.0.4"),
        number(1, 7) + text(2, b"matmul") + number(3, 4) + number(7, 250) + text(8, text(1, b"[1, 2]")),
        number(1, 8) + text(2, b"old") + number(3, 4) + attribute("runtime", 13, 40) + text(5, varint(7)),
        number(1, 9) + text(2, b"flops") + number(3, 4) + attribute("num_ops", 9, 5_000_000) + number(4, 8),
        number(1, 10) + text(2, b"sum") + number(3, 7) + attribute("comm_type", 9, 7) + attribute("comm_size", 13, 4096)
        + attribute("pg_name", 29, b"2") + text(5, varint(9) + varint(7)),
        number(1, 11) + text(2, b"load") + number(3, 2) + attribute("tensor_size", 13, 99)
        + text(10, text(1, b"ratio") + varint(3 << 3 | 1) + struct.pack("<d", 0.5)),
    ]  # fmt: skip
    return [varint(len(node)) + node for node in nodes]


def test_a_trace_of_another_encoder_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.0.et").write_bytes(b"".join(messages()))
    (tmp_path / "comm_group.json").write_text(json.dumps({"2": [0]}))
    (trace,) = read_traces(tmp_path, [1e9])
    assert trace.tasks == (
        Task(7, "matmul", Kind.COMPUTE, 250.0),
        Task(8, "old", Kind.COMPUTE, 40.0, after=(7,)),
        Task(9, "flops", Kind.COMPUTE, 5000.0, after=(8,)),
        Task(10, "sum", Kind.COLLECTIVE, collective=Collective.REDUCE_SCATTER, size=4096, group="2", after=(9, 7)),
        Task(11, "load", Kind.NOTHING),
    )
    assert trace.groups == {"2": (0,)}


def test_a_trace_that_is_cut_anywhere_is_refused_or_a_shorter_one(tmp_path: Path) -> None:
    whole = b"".join(messages())
    path = tmp_path / "x.0.et"
    path.write_bytes(whole)
    names = [task.name for task in read_trace(path, 0, 1e9, {"2": (0,)}).tasks]
    ends = {len(whole) - len(b"".join(messages()[at:])) for at in range(2, len(messages()))}
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        if length in ends:  # the format cannot tell this from a trace that ends here
            trace = read_trace(path, 0, 1e9, {"2": (0,)})
            assert [task.name for task in trace.tasks] == names[: len(trace.tasks)]
            continue
        with pytest.raises(PerformanceError, match="rank 0"):
            read_trace(path, 0, 1e9, {"2": (0,)})


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        (
            (Task(1, "a", Kind.COMPUTE, after=(2,)), Task(2, "b", Kind.COMPUTE, after=(1,))),
            r"node 1 \(a\) is in a cycle",
        ),
        ((Task(1, "a", Kind.COMPUTE, after=(5,)),), r"node 1 \(a\) waits for node 5"),
        ((Task(1, "a", Kind.COMPUTE), Task(1, "b", Kind.COMPUTE)), r"node 1 \(b\) has the number"),
        ((Task(1, "a", Kind.COLLECTIVE, group="x"),), r"node 1 \(a\) is of group 'x'"),
    ],
)
def test_a_graph_that_cannot_be_carried_out_is_refused(tasks: tuple[Task, ...], says: str, tmp_path: Path) -> None:
    write_traces(tmp_path, "bad", [Trace(0, tasks)])
    with pytest.raises(PerformanceError, match=f"rank 0: {says}"):
        read_traces(tmp_path, [1e9])


def test_ranks_that_are_missing_are_named(tmp_path: Path, rng: random.Random) -> None:
    with pytest.raises(PerformanceError, match="no execution traces"):
        read_traces(tmp_path, [1e9])
    write_traces(tmp_path, "x", [random_trace(rng, 0), random_trace(rng, 2)])
    with pytest.raises(PerformanceError, match="none of rank 1"):
        read_traces(tmp_path, [1e9])


def test_the_timeline_has_every_task_on_its_stream(tmp_path: Path) -> None:
    cluster = cluster_of(2)
    outcome, spans = run_step(cluster, [GENERATORS["luwu"](cluster, SMALL, 0)])
    write_timeline(tmp_path / "t.json", (span.bar for span in spans))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    threads = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert sorted(threads.values()) == ["compute", "pull", "push"]
    tasks = [event for event in events if event["ph"] == "X"]
    assert len(tasks) == len(spans)
    assert max(event["ts"] + event["dur"] for event in tasks) == pytest.approx(1e6 * outcome.seconds)
