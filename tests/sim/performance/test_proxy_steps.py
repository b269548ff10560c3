"""COARSE's step: which layers proxies take, and that its graph takes what the plan says."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from catchment.sim.performance.cluster import Cluster, Node, rack_spine
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.steps.chakra import read_traces, write_traces
from catchment.sim.performance.steps.generate import Step, coarse, coarse_plan
from catchment.sim.performance.steps.graph import Kind, Trace
from catchment.sim.performance.steps.run import run_step
from catchment.sim.performance.steps.transformer import Transformer

STEP = Step(Transformer(layers=48, hidden=1024, batch=1, sequence=128))


def cluster_of(gpus: int, **node: float) -> Cluster:
    return Cluster(rack_spine(racks=[["h"]], spines=0), node=Node(gpus=gpus, **node))  # type: ignore[arg-type]


def test_a_step_takes_what_the_plan_of_the_proxies_says(rng: random.Random) -> None:
    for _ in range(5):
        rates = {key: rng.uniform(2e9, 60e9) for key in ("proxy_link", "proxy_ring", "scale_up")}
        cluster = cluster_of(rng.choice([2, 4, 8]), **rates)
        plan = coarse_plan(cluster, STEP)
        outcome, _ = run_step(cluster, [coarse(cluster, STEP, 0)])
        # The plan knows no fill of its pipeline, a layer through each of three links, and no optimizer of the workers.
        size = STEP.model.layer_bytes
        fill = size * (2 / rates["proxy_link"] + 2 / rates["proxy_ring"])
        assert 0.999 * plan.seconds <= outcome.seconds <= plan.seconds + fill + 0.01


def test_faster_proxies_take_more_layers() -> None:
    slow, fast = (coarse_plan(cluster_of(4, proxy_ring=rate, scale_up=30e9), STEP) for rate in (2e9, 40e9))
    assert slow.first > fast.first and slow.proxied < fast.proxied
    step, size = coarse(cluster_of(4, proxy_ring=40e9, scale_up=30e9), STEP, 0), STEP.model.layer_bytes
    pushed = [task for task in step.tasks if task.name.startswith("push")]
    assert sum(task.size for task in pushed) == fast.proxied == len(pushed) * size
    assert sum(task.kind is Kind.COLLECTIVE for task in step.tasks) == fast.first


def test_transfers_come_back_from_traces(tmp_path: Path) -> None:
    trace = coarse(cluster_of(4), STEP, 0)
    whole = Trace(0, tuple(replace(task, micros=float(round(task.micros))) for task in trace.tasks))
    write_traces(tmp_path, "step", [trace])
    assert read_traces(tmp_path, [1e12]) == [whole]


def test_what_has_no_proxies_to_plan_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PerformanceError, match="needs two ranks"):
        coarse(cluster_of(1), STEP, 0)
    with pytest.raises(PerformanceError, match=r"COARSE of 173\.9 billion parameters needs"):
        coarse(cluster_of(4), Step(Transformer(layers=96, hidden=12288)), 0)
    path = tmp_path / "cluster.yaml"
    path.write_text("fabric: {kind: one-switch, hosts: 2}\nnode: {proxy_link: 9GBps, proxy_ring: 25GBps}\n")
    node = load_cluster(path).node
    assert (node.proxy_link, node.proxy_ring) == (9e9, 25e9)
