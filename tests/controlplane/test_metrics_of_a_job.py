"""What Prometheus finds while a job runs: a series for every expression of the dashboard."""

from __future__ import annotations

import random
import re
import threading
import urllib.request
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
from live_job import JOB, ROOT_HOST, WORKERS, LiveJob, LiveMember
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from catchment.cli.stats import client_statistics, port_statistics
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.store import read_store
from catchment.controlplane.diagnosis.stats import SwitchStats, switch_stats
from catchment.controlplane.metrics.dashboard import dashboard
from catchment.controlplane.metrics.durations import BOUNDS, Durations
from catchment.controlplane.metrics.endpoints import EndpointCollector
from catchment.controlplane.metrics.exporter import SwitchCollector, serve
from catchment.controlplane.metrics.poller import Poller


def scrape(port: int) -> list[Sample]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
        return [s for family in text_string_to_metric_families(reply.read().decode()) for s in family.samples]


def series(expression: str, samples: list[Sample]) -> list[Sample]:
    """The samples that an expression selects, with every switch chosen."""
    ((name, selected),) = re.findall(r"(catchment_\w+)(?:{([^}]*)})?", expression)
    wanted = re.findall(r'(\w+)=~"([^"]*)"', selected.replace("$switch", ".*"))
    grouped = re.findall(r"sum by \(([^)]*)\)", expression)
    labels = {label.strip() for names in grouped for label in names.split(",")}
    return [
        sample
        for sample in samples
        if sample.name == name
        and labels <= set(sample.labels)
        and all(re.fullmatch(pattern, sample.labels[label]) for label, pattern in wanted)
    ]


def _epoch(member: LiveMember) -> int:
    return member.membership.epoch


def test_every_expression_of_the_dashboard_finds_a_series_while_a_job_runs(seed: int) -> None:
    looked = threading.Semaphore(0)
    with LiveJob(seed) as live:
        endpoints = EndpointCollector()

        def look(name: str) -> tuple[SwitchStats, list[dict[str, Any]]]:
            jobs = read_store(live.topology, live.controller.settings.folder).jobs.values()
            with SwitchClient.connect(live.address, name=name, read_only=True, timeout=60.0) as client:
                told = replace(switch_stats(live.topology, name, client, jobs), clients=client_statistics(live.address))
                found = told, port_statistics(live.address)
            looked.release()
            return found

        live.until_exchanged(5)
        for host, member in live.members.items():
            assert member.endpoint is not None
            endpoints.watch(JOB, host, member.endpoint, epoch=partial(_epoch, member))
        with Poller(look, ["s1"], interval=0.01) as poller:
            for _ in range(2):  # the second begins when the first is noted
                assert looked.acquire(timeout=60)
            samples = scrape(live.prometheus)
            for collector in (SwitchCollector(poller.latest), endpoints):
                served = serve(collector, "127.0.0.1", 0)
                samples += scrape(served.port)
                served.end()
    for panel in dashboard()["panels"]:
        (target,) = panel["targets"]
        if "catchment_rail_" in target["expr"]:
            continue  # of jobs on several rails (tests/e2e/test_rails.py)
        assert series(target["expr"], samples), f"{panel['title']} is empty: {target['expr']}"
    trips = {s.labels["host"]: s.value for s in samples if s.name == "catchment_endpoint_round_trip_seconds"}
    assert set(trips) == {*WORKERS, ROOT_HOST} and all(trips.values())
    assert {s.value for s in samples if s.name == "catchment_endpoint_epoch"} == {1}


def test_durations_are_counted_by_length(rng: random.Random) -> None:
    values = [rng.choice(BOUNDS) * rng.choice([0.5, 1.0, 1.5, 20.0]) for _ in range(200)]
    counted = Durations()
    for value in values:
        counted.add(value)
    assert counted.buckets() == [(bound, sum(value <= bound for value in values)) for bound in BOUNDS]
    assert counted.count == 200 and counted.total == pytest.approx(np.sum(values))
