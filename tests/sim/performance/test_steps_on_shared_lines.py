"""Steps in flow mode whose groups share the links between switches, beside the same in train mode."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.requests import Mode
from catchment.sim.performance.steps.beside import groups_beside
from catchment.sim.performance.steps.chakra import write_traces
from catchment.sim.performance.steps.generate import Step
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.steps.requests import StepRequest
from catchment.sim.performance.steps.transformer import Transformer

NARROW = "fabric: {kind: rack-spine, racks: 4, per_rack: 3, spines: 1, oversubscription: 4}\n"
STEP = Step(Transformer(2, 1024, 1, 128), group=4)


def request_on(tmp_path: Path, text: str, step: Step = STEP, allreduce: str = "allreduce") -> StepRequest:
    path = tmp_path / "cluster.yaml"
    path.write_text(text, "utf-8")
    return StepRequest("mics", path, step, allreduce=allreduce)


def flow_by_train(request: StepRequest) -> float:
    """What flow mode says, as a share of what train mode does."""
    return request.run()[0].seconds / replace(request, mode=Mode.TRAIN).run()[0].seconds


def test_groups_whose_members_are_in_several_racks_share_the_links_between_them(tmp_path: Path) -> None:
    request = request_on(tmp_path, NARROW)
    assert flow_by_train(request) == pytest.approx(1, abs=0.02)
    # Where hosts differ, every rank has a trace of its own.
    differing = request_on(tmp_path, NARROW + "hosts: [{name: r3h2, peak: 124tflops}]\n")
    assert flow_by_train(differing) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("allreduce", ["allreduce", "ring"])
def test_flow_mode_is_close_to_train_mode_where_links_are_shared(
    allreduce: str, tmp_path: Path, rng: random.Random
) -> None:
    """Workers that wait for others send again meanwhile, which holds up who shares their lines: seldom for long."""
    found = []
    for _ in range(8):
        racks, per_rack, gpus = rng.randrange(2, 5), rng.randrange(2, 5), rng.choice([1, 1, 2, 4])
        ranks = racks * per_rack * gpus
        group = rng.choice([size for size in range(2, ranks) if ranks % size == 0])
        text = (
            f"fabric: {{kind: rack-spine, racks: {racks}, per_rack: {per_rack}, spines: {rng.choice([1, 2])}, "
            f"oversubscription: {rng.choice([1, 2, 4, 8])}}}\n"
            f"node: {{gpus: {gpus}, peak: {rng.choice([5, 50, 500])}tflops}}\nswitch: {{sram: 480MiB}}\n"
        )
        step = Step(Transformer(2, 512, 1, 64), rng.choice([1, 2]), group)
        request = request_on(tmp_path, text, step, allreduce)
        with contextlib.suppress(PerformanceError):  # that flow mode does not know what is dropped there
            request.swept([])
            found.append((flow_by_train(request) - 1, text, step))
    found.sort(key=lambda one: one[0])
    assert all(off < 0.1 for off, *_ in found), found[-1]
    assert all(off > -0.2 for off, *_ in found[1:]), found[:2]


def test_the_slowest_group_bounds_a_step(tmp_path: Path) -> None:
    """The first group is in one rack, the second in two; one rank stands for all."""
    text = "fabric: {kind: rack-spine, racks: 2, per_rack: 3, spines: 1, oversubscription: 8}\n"
    step = Step(Transformer(2, 1024, 1, 128), group=2)
    assert flow_by_train(request_on(tmp_path, text, step)) == pytest.approx(1, abs=0.05)


def test_traces_that_were_written_share_links_as_the_step_does(tmp_path: Path) -> None:
    request = request_on(tmp_path, NARROW)
    write_traces(tmp_path / "et", "mics", replace(request, mode=Mode.FRAME).traces(request.load()))
    read = replace(request, system="et", et=tmp_path / "et").run()[0]
    assert read.seconds == pytest.approx(request.run()[0].seconds, rel=0.02)  # groups at the ends are faster


def test_more_windows_than_a_queue_takes_are_refused_before_anything_runs(tmp_path: Path) -> None:
    request = StepRequest("mics", ROOT / "sim" / "clusters" / "four-racks.yaml", STEP)
    says = r"8 collectives at a time have 2\.5 MiB under way in front of trunk r0-s0, .* 1\.0 MiB: .*train"
    with pytest.raises(PerformanceError, match=says):
        request.swept(["group=32,8"])
    with pytest.raises(PerformanceError, match=says):
        replace(request, step=replace(STEP, group=8)).run()
    request.swept(["group=32,8", "links.up=800gbps"])
    wide = request_on(tmp_path, "fabric: {kind: rack-spine, racks: 4, per_rack: 8, spines: 1}\n", Step(group=8))
    wide.swept([])  # no more comes to a link than it takes


def test_groups_with_one_collective_at_one_place_are_beside_one_another() -> None:
    def traces() -> Iterator[Trace]:
        for rank in range(4):
            pair, other = (rank // 2 * 2, rank // 2 * 2 + 1), (rank % 2, rank % 2 + 2)
            sums = Task(0, "in", Kind.COLLECTIVE, size=8, group="in")
            gather = Task(1, "across", Kind.COLLECTIVE, collective=Collective.ALL_GATHER, size=8, group="across")
            alone = Task(2, "alone", Kind.COLLECTIVE, size=8 + rank // 2, group="alone", stream="own")
            last = Task(3, "all", Kind.COLLECTIVE, size=8)
            groups = {"in": pair, "across": other, "alone": (*pair, 4 + rank // 2)}
            yield Trace(rank, (sums, gather, alone, last), groups)

    pairs, others = ((0, 1), (2, 3)), ((0, 2), (1, 3))
    assert groups_beside(list(traces())) == {**dict.fromkeys(pairs, pairs), **dict.fromkeys(others, others)}
