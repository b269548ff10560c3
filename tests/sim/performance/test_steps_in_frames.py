"""Steps of training in frame and train mode, beside flow mode and beside what the designs say."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.requests import Mode
from catchment.sim.performance.steps.chakra import write_traces
from catchment.sim.performance.steps.execute import Span
from catchment.sim.performance.steps.generate import GENERATORS, Step
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.steps.requests import StepRequest
from catchment.sim.performance.steps.run import StepOutcome
from catchment.sim.performance.steps.transformer import Transformer

SMALL = Step(Transformer(3, 192, 1, 64), micro_steps=2, group=4)
FABRIC = "fabric: {kind: rack-spine, racks: 2, per_rack: %d, spines: 1, optimizers: 1}\n"


def step(tmp_path: Path, text: str, system: str, mode: Mode, **given: object) -> tuple[StepOutcome, list[Span]]:
    path = tmp_path / "cluster.yaml"
    path.write_text(text, "utf-8")
    request = StepRequest(system, path, SMALL, mode=mode)
    return replace(request, **given).run()  # type: ignore[arg-type]  what it gives is what a request has


def begun(spans: list[Span]) -> dict[tuple[int, int], tuple[float, float]]:
    return {(span.rank, span.task.number): (span.began, span.ended) for span in spans}


@pytest.mark.parametrize("allreduce", ["allreduce", "ring"])
@pytest.mark.parametrize("system", sorted(GENERATORS))
def test_flow_mode_is_close_to_frames(system: str, allreduce: str, tmp_path: Path, rng: random.Random) -> None:
    """The same tasks, no earlier than what they wait for, and in the time that flow mode says."""
    gpus = rng.choice([1, 2])
    text = FABRIC % (4 // gpus) + f"node: {{gpus: {gpus}, scale_up: 16GBps, peak: {rng.randrange(5, 50)}tflops}}\n"
    (flow, _), (frame, spans) = (
        step(tmp_path, text, system, mode, allreduce=allreduce) for mode in (Mode.FLOW, Mode.FRAME)
    )
    assert flow.seconds == pytest.approx(frame.seconds, rel=0.05)
    assert (flow.ranks, flow.sent) == pytest.approx((frame.ranks, frame.sent))
    assert flow.computing == pytest.approx(frame.computing, rel=1e-6)
    times = begun(spans)
    for span in spans:
        assert all(times[span.rank, other][1] <= span.began + 1e-15 for other in span.task.after)


@pytest.mark.parametrize("system", sorted(GENERATORS))
def test_train_mode_gives_the_frame_modes_times(system: str, tmp_path: Path, rng: random.Random) -> None:
    straggle = rng.choice(["", "straggle: 0.05, ", "slow: {r0h0: 1.5}, "])
    text = FABRIC % 2 + f"node: {{{straggle}gpus: 2, peak: 100tflops}}\nswitch: {{slots: 64}}\n"
    (frame, spans), (train, others) = (step(tmp_path, text, system, mode) for mode in (Mode.FRAME, Mode.TRAIN))
    assert frame.record is not None
    assert train.record is not None
    assert train.seconds == frame.seconds
    assert train.exposed == frame.exposed
    assert {key: times for key, times in begun(spans).items() if key in begun(others)} == begun(others)
    assert train.record.events <= frame.record.events


@pytest.mark.parametrize("system", ["ddp", "luwu"])
def test_the_first_and_the_last_hosts_stand_for_all(system: str, tmp_path: Path) -> None:
    text = FABRIC % 6
    (frame, _), (folded, _) = (step(tmp_path, text, system, mode) for mode in (Mode.FRAME, Mode.FOLD))
    assert frame.record is not None
    assert folded.record is not None
    assert (folded.seconds, folded.exposed, folded.ranks) == (frame.seconds, frame.exposed, 12)
    assert folded.record.hosts < frame.record.hosts
    with pytest.raises(PerformanceError, match="whose times are drawn"):
        step(tmp_path, text + "node: {straggle: 0.1}\n", system, Mode.FOLD)
    with pytest.raises(PerformanceError, match="hosts of zero3 by allreduce do not all do the same"):
        step(tmp_path, text, "zero3", Mode.FOLD)


def test_hosts_send_what_the_design_says(tmp_path: Path) -> None:
    """Each layer's gradients once up and once down every host's line."""
    text = "fabric: {kind: one-switch, hosts: 3}\n"
    outcome, _ = step(tmp_path, text, "ddp", Mode.FRAME)
    assert outcome.record is not None
    vectors = SMALL.model.layers * -(-SMALL.model.layer_bytes // 256)
    assert (outcome.record.frames["PA"], outcome.record.frames["FA"]) == (3 * vectors, 3 * vectors)


def test_losses_and_failures_cost_time(tmp_path: Path) -> None:
    text = FABRIC % 2
    plain, _ = step(tmp_path, text, "zero3", Mode.FRAME)
    lossy, _ = step(tmp_path, text + "links: {loss: 0.01}\n", "zero3", Mode.TRAIN)
    assert lossy.record is not None
    assert lossy.record.resent > 0
    assert lossy.seconds > plain.seconds
    failure = "failures: [{what: host, name: r0h1, at: 100us, until: 4ms}]\n"
    failed, _ = step(tmp_path, text + failure, "ddp", Mode.FRAME)
    assert failed.seconds > 4e-3
    with pytest.raises(PerformanceError, match="no faults and no failures"):
        StepRequest("ddp", tmp_path / "cluster.yaml", SMALL).swept([])


def test_traces_have_frames_and_one_stands_for_all(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(FABRIC % 2, "utf-8")
    request = StepRequest("ddp", path, SMALL, mode=Mode.FRAME)
    made = request.run()[0]
    folder = tmp_path / "et"
    write_traces(folder, "ddp", request.traces(request.load()))
    read = replace(request, system="et", et=folder)
    assert read.run()[0].seconds == pytest.approx(made.seconds, rel=0.01)  # whole microseconds
    wide = replace(read, scale=True, settings={"fabric.racks": "3"}).run()[0]
    assert wide.ranks == 6
    assert wide.seconds > made.seconds


def test_a_trace_that_is_alone_is_of_one_rank_unless_it_is_scaled(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(FABRIC % 2, "utf-8")
    folder = tmp_path / "et"
    tasks = (Task(0, "work", Kind.COMPUTE, 50.0), Task(1, "sum", Kind.COLLECTIVE, size=1 << 16, after=(0,)))
    write_traces(folder, "one", [Trace(0, tasks)])
    modes = (Mode.FLOW, Mode.FRAME, Mode.TRAIN)
    request = StepRequest("et", path, SMALL, et=folder)
    alone = [replace(request, mode=mode).run()[0] for mode in modes]
    assert [(each.ranks, each.sent) for each in alone] == [(1, 0.0)] * 3
    assert [each.seconds for each in alone] == pytest.approx([50e-6] * 3)
    scaled = [replace(request, mode=mode, scale=True).run()[0] for mode in modes]
    assert [(each.ranks, each.sent) for each in scaled] == [(4, float(1 << 16))] * 3


def test_what_has_no_frames_or_no_room_is_refused(tmp_path: Path) -> None:
    exchange = Task(0, "exchange", Kind.COLLECTIVE, collective=Collective.ALL_TO_ALL, size=1024)
    folder = tmp_path / "et"
    write_traces(folder, "x", [Trace(rank, (exchange,)) for rank in range(4)])
    with pytest.raises(PerformanceError, match="ALL_TO_ALL has no frames: use --mode flow"):
        step(tmp_path, FABRIC % 2, "et", Mode.FRAME, et=folder)
    # Both ranks of a node have a replication group, and each of these a stream.
    room = "node: {gpus: 2}\nswitch: {slots: 64, sram: 20KiB}\n"
    with pytest.raises(PerformanceError, match=r"64 slots of 64 lanes need 33792 bytes of a switch's SRAM, 13312 more"):
        step(tmp_path, FABRIC % 2 + room, "mics", Mode.FRAME)
