"""Steps in flow mode whose groups share the links between switches, beside the same in train mode."""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.cli.simulate_step import warn_of_oversubscribed
from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.flow_lines import FlowModel
from catchment.sim.performance.requests import Mode
from catchment.sim.performance.steps.beside import groups_beside
from catchment.sim.performance.steps.chakra import write_traces
from catchment.sim.performance.steps.generate import Step
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.steps.requests import StepRequest
from catchment.sim.performance.steps.shared_lines import SharedLines
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


@pytest.mark.parametrize("gpus", ["equal", "several"])
@pytest.mark.parametrize("allreduce", ["allreduce", "ring"])
def test_flow_mode_is_close_to_train_mode_where_links_are_shared(
    allreduce: str, gpus: str, tmp_path: Path, rng: random.Random
) -> None:
    """Groups that are ahead send before all are there, and again while they wait, which holds up who shares their
    lines: seldom for long, and where flow mode does not warn of it never."""
    found = []
    for _ in range(6):
        racks, per_rack = rng.randrange(2, 5), rng.randrange(2, 5)
        hosts = [f"r{rack}h{at}" for rack in range(racks) for at in range(per_rack)]
        equal = rng.choice([1, 1, 2, 4])
        counts = [equal if gpus == "equal" else rng.choice([1, 2, 4]) for _ in hosts]
        ranks = sum(counts)
        group = rng.choice([size for size in range(2, ranks + 1) if ranks % size == 0])
        lines = "".join(f"- {{name: {name}, gpus: {count}}}\n" for name, count in zip(hosts, counts, strict=True))
        text = (
            f"fabric: {{kind: rack-spine, racks: {racks}, per_rack: {per_rack}, spines: {rng.choice([1, 2])}, "
            f"oversubscription: {rng.choice([1, 2, 4, 8])}}}\nnode: {{gpus: {equal}, "
            f"peak: {rng.choice([5, 50, 500])}tflops}}\nswitch: {{sram: 480MiB}}\n"
        )
        step = Step(Transformer(2, 256, 1, 64), rng.choice([1, 2]), group)
        request = request_on(tmp_path, text + ("" if gpus == "equal" else f"hosts:\n{lines}"), step, allreduce)
        with contextlib.suppress(PerformanceError):  # that flow mode does not know what is dropped there
            (request,) = request.swept([])
            off, oversubscribed = flow_by_train(request) - 1, request.run()[0].oversubscribed
            found.append((off, oversubscribed, text, counts, step))
    found.sort(key=lambda one: one[0])
    assert all(one[0] < 0.1 for one in found), found[-1]
    assert all(one[0] > -0.2 for one in found[1:]), found[:2]
    assert all(one[0] > -0.25 for one in found if one[1] is None), found[:2]


def test_a_group_whose_collective_is_shorter_leaves_its_rate_to_the_others(tmp_path: Path) -> None:
    """Two of the groups of 5 ranks share the line of r1h2; flow mode was a sixth above train mode."""
    counts = {"r0h1": 2, "r1h1": 2, "r1h2": 4, "r2h2": 2}
    text = "fabric: {kind: rack-spine, racks: 3, per_rack: 3, spines: 2}\nnode: {peak: 5tflops}\nhosts:\n" + "".join(
        f"- {{name: {name}, gpus: {count}}}\n" for name, count in counts.items()
    )
    request = request_on(tmp_path, text, Step(Transformer(2, 256, 1, 64), 1, 5))
    assert flow_by_train(request) == pytest.approx(1, abs=0.05)


def test_what_is_over_leaves_its_rate_to_the_others() -> None:
    """Two ways over one line: with half the size the one is over after 1, and the other after 1.5."""
    model = FlowModel.of(Cluster(rack_spine(racks=[["a", "b"]], spines=0)))
    line = model.down["a"]
    shared = SharedLines.of(model, [(line,), (line,)], [1.0, 2.0])
    assert [shared.left_for(at).byte[line] / model.byte[line] for at in (0, 1)] == pytest.approx([2, 1.5])
    assert shared.left_for(0).byte[model.up["a"]] == pytest.approx(model.byte[model.up["a"]])
    alike = SharedLines.of(model, [(line,), (line,)], [1.0, 1.04])
    assert alike.left_for(1).byte[line] == pytest.approx(2 * model.byte[line])


def test_a_step_says_which_line_is_too_narrow_for_the_groups_that_share_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    request = request_on(tmp_path, NARROW)
    warn_of_oversubscribed([(one, one.run()[0]) for one in request.swept(["links.latency=265ns,266ns"])])
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert re.match(
        r"catchment: links.latency=265ns: \d collectives at a time share trunk r\d-s0, which takes less than they "
        "send: flow mode can be a fifth below train mode there, seldom more; compare with --mode train",
        said,
    )
    (wide,) = request_on(tmp_path, NARROW).swept(["fabric.oversubscription=1"])
    assert wide.run()[0].oversubscribed is None
    assert replace(request, mode=Mode.TRAIN).run()[0].oversubscribed is None


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
