"""Steps of real trainings as traces, and traces of few ranks as steps of many."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from catchment.sim.performance.cluster import Cluster, rack_spine
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.steps.chakra import read_traces
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.steps.recording import StepRecorder
from catchment.sim.performance.steps.run import run_step
from catchment.sim.performance.steps.scaling import one_for_all


@pytest.fixture
def alone() -> Iterator[None]:
    """A process group of this process, without ports."""
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def training() -> tuple[DistributedDataParallel, torch.optim.Optimizer]:
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.Linear(256, 8)), bucket_cap_mb=0.1
    )
    return model, torch.optim.SGD(model.parameters(), lr=0.1)


def step(model: DistributedDataParallel, optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    model(torch.ones(4, 64)).square().sum().backward()
    optimizer.step()


@pytest.mark.usefixtures("alone")
def test_a_recorded_step_has_every_layer_and_every_byte_of_gradients(tmp_path: Path) -> None:
    model, optimizer = training()
    recorder = StepRecorder(model, optimizer)
    step(model, optimizer)
    with recorder:
        step(model, optimizer)
    trace = recorder.trace()
    names = [task.name for task in trace.tasks if task.kind is Kind.COMPUTE]
    assert names[:4] == ["forward 0", "forward 1", "forward 2", "forward 3"] and names[-1] == "optimizer"
    sums = [task for task in trace.tasks if task.kind is Kind.COLLECTIVE]
    assert {task.collective for task in sums} == {Collective.ALL_REDUCE} and len(sums) > 1
    assert sum(task.size for task in sums) == 4 * sum(parameter.numel() for parameter in model.parameters())
    assert all(task.micros > 0 for task in trace.tasks if task.kind is Kind.COMPUTE)
    recorder.write(tmp_path)
    (read,) = read_traces(tmp_path, [1e12])
    assert [(task.name, task.size, task.after) for task in read.tasks] == [
        (task.name, task.size, task.after) for task in trace.tasks
    ]


@pytest.mark.usefixtures("alone")
def test_recording_changes_no_weight() -> None:
    weights = []
    for recorded in (False, True):
        torch.manual_seed(3)
        model, optimizer = training()
        if recorded:
            with StepRecorder(model, optimizer):
                step(model, optimizer)
        else:
            step(model, optimizer)
        weights.append(torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()]))
    assert torch.equal(*weights)


@pytest.mark.usefixtures("alone")
def test_a_recorder_that_saw_no_whole_step_says_so() -> None:
    model, optimizer = training()
    recorder = StepRecorder(model, optimizer)
    step(model, optimizer)
    with pytest.raises(PerformanceError, match="nothing was recorded of the forward pass"):
        recorder.trace()
    with recorder:
        model(torch.ones(4, 64)).sum().backward()
    with pytest.raises(PerformanceError, match="nothing was recorded of the optimizer's step"):
        recorder.trace()


def trace_of(rank: int, micros: float, size: int = 1 << 20) -> Trace:
    sums = Task(1, "sum", Kind.COLLECTIVE, size=size, after=(0,))
    return Trace(rank, (Task(0, "work", Kind.COMPUTE, micros), sums))


def test_traces_of_few_ranks_stand_for_many_as_slow_as_the_slowest() -> None:
    one = one_for_all([trace_of(0, 10.0), trace_of(1, 30.0), trace_of(2, 20.0)])
    assert [task.micros for task in one.tasks] == [30.0, 0.0]
    few, many = (
        Cluster(rack_spine(racks=[[f"r{k}h{at}" for at in range(4)] for k in range(racks)], spines=1))
        for racks in (1, 16)
    )
    times = [run_step(cluster, [one])[0] for cluster in (few, many)]
    assert [outcome.ranks for outcome in times] == [4, 64]
    assert times[0].computing == times[1].computing and times[0].seconds < times[1].seconds


@pytest.mark.parametrize(
    ("second", "says"),
    [
        (trace_of(1, 10.0, 1 << 10), r"rank 1: node 1 \(sum\) is not as on rank 0"),
        (Trace(1, trace_of(1, 10.0).tasks[:1]), "rank 1 has 1 nodes, rank 0 has 2"),
        (Trace(1, tuple(replace(t, group="g") for t in trace_of(1, 1.0).tasks), {"g": (0, 1)}), "rank 1: .* groups"),
    ],
)
def test_traces_that_differ_do_not_stand_for_others(second: Trace, says: str) -> None:
    with pytest.raises(PerformanceError, match=says):
        one_for_all([trace_of(0, 10.0), second])
