"""Cluster files: what they say, and what is said of a wrong one before anything runs."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path

import pytest

from catchment.checkout import ROOT
from catchment.sim.performance.cluster import Failure
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.errors import ClusterError, PerformanceError
from catchment.sim.performance.models import ProgramModel
from catchment.sim.performance.requests import Mode, Request
from catchment.sim.performance.rounds import Rounds
from catchment.sim.performance.run import simulate
from catchment.wire.generated.constants import MAX_WORKERS

FOUR_RACKS = ROOT / "sim" / "clusters" / "four-racks.yaml"
TOO_MANY = MAX_WORKERS + 1
FABRIC = "fabric: {kind: rack-spine, racks: 2, per_rack: 2}\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "cluster.yaml"
    path.write_text(text)
    return path


def test_what_a_file_says(tmp_path: Path) -> None:
    cluster = load_cluster(
        write(
            tmp_path,
            "fabric: {kind: rack-spine, racks: 2, per_rack: 4, spines: 2, oversubscription: 2}\n"
            "links: {host: 25gbps, latency: 1us, loss: 0.5}\n"
            "switch: {pipeline: 0.5us, queue: 2MB, slots: 64, lanes: 256, pps: 500mpps}\n"
            "node: {gpus: 4, peak: 100tflops, mfu: 0.4, slow: {r1h3: 2}}\n"
            "failures: [{what: host, name: r0h0, at: 1ms, until: 2ms}, {what: switch, name: s1, at: 5us}]\n",
        )
    )
    assert cluster.hosts == tuple(f"r{k}h{at}" for k in range(2) for at in range(4))
    assert (cluster.links.host_byte, cluster.links.up_byte, cluster.links.latency) == (320, 320, 1_000_000)
    assert cluster.links.faults.loss == 0.5
    switch = cluster.switch
    assert (switch.pipeline, switch.queue_bytes, switch.slots, switch.lanes, switch.frame) == (
        500_000, 2_000_000, 64, 256, 2000,
    )  # fmt: skip
    assert cluster.node.flops == pytest.approx(40e12) and cluster.node.straggle.slow == {"r1h3": 2.0}
    assert [(f.kind, f.at, f.until) for f in cluster.failures] == [
        ("host", 10**9, 2 * 10**9), ("switch", 5_000_000, None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (FABRIC + "links: {latency: 265}\n", 2, "has no unit"),
        (FABRIC + "links: {latency: 265gbps}\n", 2, "is no unit of a time"),
        (FABRIC + "links: {host: 300gbps}\n", 2, "whole picoseconds"),
        (FABRIC + "\nlinks: {loss: 2}\n", 3, "is not between 0 and 1"),
        (FABRIC + "switch: {slots: 1000}\n", 2, "power of two"),
        (FABRIC + "switch: {slots: 1024,\n  sram: 1KiB}\n", 2, "more than there are"),
        (FABRIC + "switches: {}\n", 2, "is unknown"),
        (FABRIC + "nic: {model: software, push: 1us}\n", 2, "nic.push is unknown"),
        (FABRIC + "nic: {model: slow}\n", 2, "is not one of: nic, software"),
        (FABRIC + "node: {slow: {r7h0: 2}}\n", 2, "no host 'r7h0'"),
        (FABRIC + "failures: [{what: host, name: r0h0, at: 2ms, until: 1ms}]\n", 2, "before it fails"),
        ("fabric: {kind: rack-spine, racks: 0, per_rack: 2}\n", 1, "is not between 1"),
        ("fabric: {kind: ring}\n", 1, "is not one of"),
        (
            "fabric: {kind: rack-spine, racks: 2, per_rack: 2, oversubscription: 2}\nlinks: {up: 100gbps}\n",
            1,
            "same as",
        ),
        ("links: {}\n", 1, "give either"),
        (
            "links: {host: 800gbps}\nfabric: {kind: rack-spine, racks: 2, per_rack: 64}\n",
            2,
            r"a byte would take 0\.156 ps.*at no more than 8 Tb/s: give more `spines`",
        ),
        (
            "fabric: {kind: rack-spine, racks: 2, per_rack: 16,\n  oversubscription: 0.1}\n",
            2,
            r"a byte would take 0\.5 ps",
        ),
        (
            "fabric: {kind: rack-spine, racks: 2, per_rack: 64}\n\nrails: [{name: a, host: 400gbps}]\n",
            3,
            r"a byte would take 0\.25 ps.*slower `host`",
        ),
    ],
)
def test_a_mistake_is_named_with_file_and_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ClusterError, match=says) as raised:
        load_cluster(path)
    assert str(raised.value).startswith(f"{path}:{line}: ")


def test_links_between_switches_are_as_fast_as_asked_for_to_a_quarter(tmp_path: Path, rng: random.Random) -> None:
    for _ in range(30):
        host, per_rack, spines = rng.choice([25, 100, 400, 800]), rng.randint(1, 200), rng.randint(1, 8)
        over = rng.choice([0.5, 1, 2, 4])
        text = f"links: {{host: {host}gbps}}\nfabric: {{kind: rack-spine, racks: 2, per_rack: {per_rack}, "
        path = write(tmp_path, text + f"spines: {spines}, oversubscription: {over}}}\n")
        exact = 8000 / host * spines * over / per_rack
        try:
            up_byte = load_cluster(path).links.up_byte
        except ClusterError:
            assert exact < 1.6
        else:
            assert up_byte / 1.25 <= exact <= up_byte * 1.25
    path = write(tmp_path, text + "spines: 1}\n")
    assert load_cluster(path, {"links.up": "800gbps", "fabric.per_rack": "200"}).links.up_byte == 10


def test_endpoints_in_software(tmp_path: Path) -> None:
    nic = load_cluster(write(tmp_path, FABRIC + "nic: {model: software, receive: 2us, ring: 32KiB}\n")).nic
    assert nic == ProgramModel(receive=2_000_000, ring_bytes=32768)


def test_settings_and_sweeps_are_checked_before_anything_runs() -> None:
    requests = Request.all_of("allreduce", FOUR_RACKS, ["size=64KiB"], ["links.loss=0,0.01", "fabric.racks=1,2"])
    assert [request.varied for request in requests] == [
        (("links.loss", loss), ("fabric.racks", racks)) for loss in ("0", "0.01") for racks in ("1", "2")
    ]
    assert len(load_cluster(FOUR_RACKS, {"fabric.racks": "2", "node.gpus": "8"}).hosts) == 17
    for settings, says in (
        (["size=64"], "has no unit"), (["colour=red"], "no 'colour'"), (["size"], "KEY=VALUE"),
        (["links.loss=many"], "not a number"), (["slots=no"], "slots=no: give a whole number"),
    ):  # fmt: skip
        with pytest.raises(PerformanceError, match=says):
            Request.all_of("allreduce", FOUR_RACKS, settings, [])
    with pytest.raises(PerformanceError, match="no workload"):
        Request.all_of("chess", FOUR_RACKS, [], [])


def test_a_job_that_no_switch_takes_is_refused() -> None:
    cluster = load_cluster(FOUR_RACKS, {"fabric.per_rack": str(TOO_MANY)})
    with pytest.raises(PerformanceError, match=f"switch r0 has {TOO_MANY} members"):
        simulate("allreduce", cluster, Rounds(1024))


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (
            [f"fabric.per_rack={TOO_MANY}"],
            f"3: switch r0 has {TOO_MANY} members of the job, its program takes {MAX_WORKERS}",
        ),
        ([f"fabric.racks={TOO_MANY}"], f"3: switch s0 has {TOO_MANY} members of the job"),
        (["slots=262144"], "3: 262144 slots of 64 lanes need 69206016 bytes of a switch's SRAM, 18874368 more"),
        (["slots=1000"], "3: 1000 slots: give a power of two"),
    ],
)
def test_what_switches_cannot_hold_is_refused_before_anything_runs(
    tmp_path: Path, mode: Mode, settings: list[str], says: str
) -> None:
    path = write(tmp_path, "# a cluster\n\nfabric: {kind: rack-spine, racks: 2, per_rack: 2}\n")
    with pytest.raises(ClusterError, match=f"^{re.escape(str(path))}:{says}"):
        Request.all_of("allreduce", path, settings, [], mode=mode)
    if "slots" not in settings[0]:
        Request.all_of("ring", path, settings, [], mode=Mode.FLOW)


@pytest.mark.parametrize("kind", ["host", "link", "switch"])
def test_what_comes_back_is_waited_for_and_what_stays_away_is_reported(kind: str) -> None:
    name = "r1" if kind == "switch" else "r1h2"
    calm = load_cluster(FOUR_RACKS, {"fabric.per_rack": "3"})
    gone = replace(calm, failures=(Failure(kind, name, 20_000_000),))
    with pytest.raises(PerformanceError, match="nothing has moved"):
        simulate("allreduce", gone, Rounds(1 << 20))
    back = replace(calm, failures=(Failure(kind, name, 20_000_000, 70_000_000),))
    before, after = (simulate("allreduce", each, Rounds(1 << 20)) for each in (calm, back))
    assert after.rounds[0] > before.rounds[0] + 40e-6
    assert before.record is not None and after.record is not None
    assert before.record.resent == 0 < after.record.resent
