"""Metrics of switches: the endpoint, and that dashboard, endpoint and their one list agree."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families
from running_controller import Place, request

from catchment import cli
from catchment.cli.stats import client_statistics, port_statistics
from catchment.cli.target import find_place
from catchment.controlplane.client import SwitchError, TableEntry
from catchment.controlplane.diagnosis.stats import CONSUMED, JobTraffic, Lag, RailUse, SwitchStats, switch_stats
from catchment.controlplane.metrics.dashboard import FILE, dashboard, text
from catchment.controlplane.metrics.definitions import (
    CONTROLLER_METRICS,
    ENDPOINT_METRICS,
    METRICS,
    RAIL_METRICS,
    Metric,
    MetricKind,
)
from catchment.controlplane.metrics.exporter import SwitchCollector, serve
from catchment.controlplane.metrics.poller import Poll, Poller
from catchment.controlplane.topology import Topology
from catchment.sim.lab.held_address import HeldAddress
from catchment.sim.lab.switch_process import embedded_command, start_switch
from catchment.wire.generated.constants import DropReason
from catchment.wire.rail_report import RailReport

PORT = {
    "port": 1, "up": True, "rx_packets": 5, "rx_bytes": 500, "tx_packets": 7, "tx_bytes": 700,
    "drops": {"parser error": 2, CONSUMED: 711},
}  # fmt: skip
STATS = SwitchStats(
    "s1",
    {"UNKNOWN_JOB": 3},
    (JobTraffic("train", "gradients", 7, 1, "w0", 11, 1100),),
    {1: "w0"},
    (Lag("train", "parameters", "w0", 4, 6),),
    (RailUse("sums", 1, RailReport("b", 9, "down", True, "a", 1e-4, 3_000_000, 0, 12, 4096, 2, 0.07), 0.25),),
    clients={"open": 2, "failed_handshakes": 3, "cut_off": 1},
)


BY_NAME = {metric.wire_name: metric for metric in (*METRICS, *RAIL_METRICS, *CONTROLLER_METRICS, *ENDPOINT_METRICS)}
_WHOLE = re.compile(r"(_count|_sum)$")


def scrape(port: int) -> dict[str, dict[tuple[str, ...], float]]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as reply:
        families = text_string_to_metric_families(reply.read().decode())
        samples = [sample for family in families for sample in family.samples]
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for sample in samples:
        if sample.name not in BY_NAME and _WHOLE.sub("_bucket", sample.name) in BY_NAME:
            continue  # what a histogram's cells add up to
        labels = tuple(sample.labels[name] for name in BY_NAME[sample.name].labels)
        found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_every_metric_is_served() -> None:
    now = time.monotonic()
    polls: dict[str, Poll[Any]] = {"s1": Poll((STATS, [PORT]), now, 0.25), "s2": Poll(None, now - 50.0, 5.0)}
    port = serve(SwitchCollector(lambda: polls), "127.0.0.1", 0).port
    found = scrape(port)
    assert set(found) == {metric.wire_name for metric in (*METRICS, *RAIL_METRICS)}
    assert found["catchment_switch_up"] == {("s1",): 1, ("s2",): 0}
    assert found["catchment_job_frames_total"] == {("s1", "train", "gradients", "7", "w0", "1"): 11}
    dropped = found["catchment_drops_total"]
    assert len(dropped) == len(DropReason) - 1 and {at: n for at, n in dropped.items() if n} == {
        ("s1", "UNKNOWN_JOB"): 3
    }
    assert found["catchment_ack_lag_frames"] == {("s1", "train", "parameters", "w0"): 4}
    assert found["catchment_port_frames_total"] == {("s1", "1", "w0", "in"): 5, ("s1", "1", "w0", "out"): 7}
    assert found["catchment_port_drops_total"] == {("s1", "1", "w0", "parser error"): 2}, "a sum is no drop"
    assert found["catchment_port_consumed_frames_total"] == {("s1", "1", "w0"): 711}
    rail = {name: value["s1", "sums", "b"] for name, value in found.items() if name.startswith("catchment_rail_")}
    assert list(rail.values()) == [0, 4096, 3_000_000, 1e-4, 2, 0.07]
    assert found["catchment_switch_failed_handshakes_total"] == {("s1",): 3}
    assert found["catchment_switch_clients_cut_off_total"] == {("s1",): 1}
    assert found["catchment_switch_poll_seconds"] == {("s1",): 0.25, ("s2",): 5.0}
    assert found["catchment_switch_poll_age_seconds"]["s2",] >= 50.0


def test_a_controller_tells_of_switches_jobs_and_members(place: Place) -> None:
    found = HeldAddress()
    host, _, port = found.address.rpartition(":")
    place.controller.stop()
    place.controller.settings = replace(place.controller.settings, prometheus=(host, int(port)))
    place.controller.start()
    place.until_up()
    with (
        place.controller.operator() as operator,
        place.controller.join("train", "w0", operator.create(request()).token),
    ):
        told = scrape(int(port))
    assert set(told) == {metric.wire_name for metric in CONTROLLER_METRICS}
    assert told["catchment_controller_switch_up"] == {("sp",): 1, ("r1",): 1, ("r2",): 1}
    assert set(told["catchment_controller_compare_times_seconds_bucket"]) == {("sp",), ("r1",), ("r2",)}
    assert all(told["catchment_controller_compare_times_seconds_bucket"].values()), "each was compared once at least"
    assert told["catchment_controller_restores_total"] == {("sp",): 0, ("r1",): 0, ("r2",): 0}, "they were there"
    assert told["catchment_controller_job_epoch"] == {("train",): 1}
    assert told["catchment_controller_members"]["train", "joined"] == 1
    assert told["catchment_controller_members"]["train", "absent"] == 3
    assert told["catchment_controller_job_file_behind"] == {(): 0}
    place.controller.stop()
    with pytest.raises(urllib.error.URLError):
        scrape(int(port))
    place.controller.start()
    found.close()


def test_a_dead_switch_keeps_no_answer_waiting() -> None:
    woken, looks = threading.Event(), {name: threading.Semaphore(0) for name in ("s1", "s2", "s3")}

    def look(name: str) -> tuple[SwitchStats, list[dict[str, Any]]]:
        if name == "s2":
            woken.wait(60)  # hangs
        looks[name].release()
        if name == "s3":
            raise SwitchError("s3 is gone")
        return STATS, [PORT]

    with Poller(look, looks, interval=0.01) as poller:
        for _ in range(2):  # the second begins when the first is noted
            assert looks["s1"].acquire(timeout=60) and looks["s3"].acquire(timeout=60)
        found = scrape(serve(SwitchCollector(poller.latest), "127.0.0.1", 0).port)
        assert found["catchment_switch_up"] == {("s1",): 1, ("s3",): 0}, "s2 still hangs"
        woken.set()
        assert looks["s2"].acquire(timeout=60) and looks["s2"].acquire(timeout=60)
        assert poller.latest()["s2"].seen is not None


def is_rate(metric: Metric) -> bool:
    """Whether a query must ask how fast it grows."""
    return metric.kind is not MetricKind.GAUGE


ALERTS = yaml.safe_load((FILE.parent / "alerts.yaml").read_text("utf-8"))["groups"][0]["rules"]


def test_alert_rules_ask_for_metrics_that_there_are() -> None:
    for rule in ALERTS:
        (name,) = re.findall(r"catchment_\w+", rule["expr"])
        metric = BY_NAME[name]
        assert ("rate(" in rule["expr"]) == is_rate(metric)
        words = " ".join(rule["annotations"].values())
        assert set(re.findall(r"\$labels\.(\w+)", words)) <= set(metric.labels)
        selected = re.findall(r'(\w+)=~"([^"]*)"', rule["expr"])
        assert all(label in metric.labels for label, _ in selected)
        assert all(reason in DropReason.__members__ for _, text in selected for reason in text.split("|"))


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool (Debian's package prometheus) is not installed")
def test_each_alert_fires_when_it_should_and_only_then(tmp_path: Path) -> None:
    series = {
        "SwitchDown": ('catchment_switch_up{switch="s1"}', "1x4 0x20", "1x30"),
        "ExporterStale": ('catchment_switch_poll_age_seconds{switch="s1"}', "0+10x30", "3x30"),
        "RailDown": ('catchment_rail_up{switch="s1",job="j",rail="a"}', "1x4 0x20", "1x4 0x1 1x30"),
        "PortDown": ('catchment_port_up{switch="s1",port="1",peer="w0"}', "1x4 0x20", "1x30"),
        "ForgedFrames": ('catchment_drops_total{switch="s1",reason="FORGED_SOURCE"}', "0+5x30", "7x30"),
        "PortDrops": ('catchment_port_drops_total{switch="s1",port="1",peer="w0",cause="full"}', "0+500x30", "0+5x30"),
        "MemberBehind": (
            'catchment_ack_lag_frames{switch="s1",job="j",stream="sums",member="w0"}', "5000x30", "64x30",
        ),
    }  # fmt: skip
    assert set(series) == {rule["alert"] for rule in ALERTS}
    tests = []
    for name, (labels, bad, good) in series.items():
        for values, fires in ((bad, 1), (good, 0)):
            query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
            tests.append(
                {
                    "interval": "10s",
                    "input_series": [{"series": labels, "values": values}],
                    "promql_expr_test": [
                        {"expr": query, "eval_time": "4m", "exp_samples": [{"labels": "{}", "value": fires}]}
                    ],
                }
            )
    file = tmp_path / "tests.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(FILE.parent / "alerts.yaml")], "tests": tests}))
    run = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_dashboard_shows_every_metric_and_no_other() -> None:
    assert FILE.read_text("utf-8") == text(), "run `python -m catchment.controlplane.metrics.dashboard`"
    shown = set()
    for panel in dashboard()["panels"]:
        (target,) = panel["targets"]
        (name,) = re.findall(r"catchment_\w+", target["expr"])
        shown.add(name)
        assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= set(BY_NAME[name].labels)
        assert ("rate(" in target["expr"]) == is_rate(BY_NAME[name])
    assert shown == set(BY_NAME)


class HeartbeatSwitch:
    """A client of a switch on which two members of generation 7, and one of an older generation, have spoken."""

    def __init__(self, *, registers: bool = True) -> None:
        self.p4info = self
        self._registers = registers
        end = (1 << 32) - 1
        # Sequence numbers wrap: w1 is 3 ahead in ack, w0 is 10 ahead in credit.
        self.cells = {
            "I.heartbeats.worker0.heartbeat": {4: 7 << 64 | end << 32 | 20},
            "I.heartbeats.worker1.heartbeat": {4: 7 << 64 | 2 << 32 | 10},
            "I.heartbeats.worker2.heartbeat": {4: 6 << 64 | 1000 << 32 | 1000},
        }

    def names(self, _kind: str) -> list[str]:
        return [*self.cells, "I.slot.tag"]

    def has(self, kind: str, _name: str) -> bool:
        return kind == "table"

    def direct_counters(self, _table: str) -> list[TableEntry]:
        return []

    def read(self, _table: str) -> list[TableEntry]:
        workers = [
            TableEntry("jobs", {"gen": 7, "port": wid + 1}, "worker", {"wid": wid, "job": 4}) for wid in range(4)
        ]
        return [*workers, TableEntry("jobs", {"gen": 7, "port": 9}, "root", {"job": 4})]

    def register(self, name: str, index: int) -> dict[int, int]:
        if not self._registers:
            raise SwitchError("no registers", code="UNIMPLEMENTED")
        return {index: self.cells[name][index]}


def test_lags_are_counted_on_the_circle(tmp_path: Path) -> None:
    path = tmp_path / "lab.yaml"
    path.write_text(TOPOLOGY.format(address="127.0.0.1:1"))
    topology = Topology.load(path)
    found = switch_stats(topology, "s1", HeartbeatSwitch())  # type: ignore[arg-type]
    assert [(lag.member, lag.ack, lag.credit) for lag in found.lags] == [("w0", 3, 0), ("?", 0, 10)]
    assert switch_stats(topology, "s1", HeartbeatSwitch(registers=False)).lags == ()  # type: ignore[arg-type]


TOPOLOGY = """\
name: lab
switches:
  s1: {{program: luwu.p4, ip: 10.0.0.254, mac: 02:00:00:00:fe:01, grpc: {address}}}
hosts:
  w0: {{ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}}
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a switch on an interface needs root")
def test_ports_of_a_running_switch(
    tmp_path: Path, held: HeldAddress, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("CATCHMENT_STATE_DIR", str(tmp_path / "state"))
    topology = tmp_path / "lab.yaml"
    topology.write_text(TOPOLOGY.format(address=held.address))
    monkeypatch.setenv("CATCHMENT_TOPOLOGY", str(topology))
    command = embedded_command(held.address, 1, {1: "lo"})
    with start_switch("s1", command, log=tmp_path / "log", environment=os.environ):
        place = find_place(topology)
        port = serve(SwitchCollector(lambda: {"s1": Poll(None, time.monotonic(), 0.0)}), "127.0.0.1", 0).port
        assert scrape(port)["catchment_switch_up"] == {("s1",): 0}
        # It has no program yet, so that its counters cannot be read.
        monkeypatch.setattr(sys, "argv", ["catchment", "stats", "--json"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 1
        assert "no program" in capsys.readouterr().err
        (found,) = port_statistics(place.address("s1"))
        assert client_statistics(place.address("s1"))["failed_handshakes"] == 0
        assert (found["port"], found["name"], found["up"]) == (1, "lo", True)
    assert port_statistics(held.address) == []


def test_the_dashboard_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["catchment", "stats", "--dashboard"])
    with pytest.raises(SystemExit):
        cli.main()
    assert json.loads(capsys.readouterr().out)["title"] == "Catchment"


def test_a_wrong_address_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                    tmp_path: Path) -> None:  # fmt: skip
    topology = tmp_path / "lab.yaml"
    topology.write_text(TOPOLOGY.format(address="127.0.0.1:1"))
    for where in ("web", "127.0.0.1:70000", "192.0.2.1:9464"):
        monkeypatch.setattr(sys, "argv", ["catchment", "stats", "-t", str(topology), "--prometheus", where])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 1
        assert where in capsys.readouterr().err
