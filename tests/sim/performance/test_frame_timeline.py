"""What every host did when, as frame mode writes it for Perfetto's viewer."""

from __future__ import annotations

import json
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from catchment.checkout import ROOT
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.requests import Mode, Request, run_all

FOUR_RACKS = ROOT / "sim" / "clusters" / "four-racks.yaml"
TWO_RAILS = ROOT / "sim" / "clusters" / "two-rails.yaml"


def play(workload: str, cluster: Path, path: Path, *settings: str) -> tuple[float, list[dict[str, Any]]]:
    requests = Request.all_of(workload, cluster, settings, [])
    ((_, outcome),) = run_all(requests, 1, lambda _share: None, path)
    return sum(outcome.rounds), json.loads(path.read_text())["traceEvents"]


@pytest.mark.parametrize(("workload", "cluster"), [("ring", FOUR_RACKS), ("luwu", FOUR_RACKS), ("nezha", TWO_RAILS)])
def test_bars_of_a_track_follow_one_another_and_end_with_the_last_round(
    workload: str, cluster: Path, tmp_path: Path
) -> None:
    settings = ["size=2MiB" if workload == "nezha" else "size=64KiB", "rounds=2", "compute=20us", "fabric.per_rack=2"]
    took, events = play(workload, cluster, tmp_path / "run.json", *settings)
    bars = sorted((e for e in events if e["ph"] == "X"), key=lambda e: (e["tid"], e["ts"]))
    for _, mine in groupby(bars, key=lambda bar: bar["tid"]):
        for before, after in pairwise(mine):
            assert before["ts"] + before["dur"] <= after["ts"] + 1e-6
    assert all(bar["dur"] >= 0 for bar in bars)
    # The streams settle for 5 us before the first round; a push ends when its sender knows that all have it.
    pulls = [bar for bar in bars if bar["cat"] == "pull"]
    assert max(bar["ts"] + bar["dur"] for bar in pulls) == pytest.approx(5 + 1e6 * took)
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert {"r0h0", "r1h1"} <= names and ("opt" in names) == (workload == "luwu")
    computing = [bar for bar in bars if bar["cat"] == "compute"]
    assert len(computing) == 2 * (len(names) - (workload == "luwu"))
    assert all(bar["dur"] == pytest.approx(20) for bar in computing)


def test_the_bytes_of_a_hosts_bars_are_what_it_sent(tmp_path: Path) -> None:
    _, events = play("allreduce", FOUR_RACKS, tmp_path / "run.json", "size=64KiB", "fabric.per_rack=1", "rounds=3")
    pushed = [event["args"]["bytes"] for event in events if event.get("cat") == "push"]
    assert pushed == [1 << 16] * 12


def test_a_timeline_is_of_one_run_in_frame_mode(tmp_path: Path) -> None:
    for sweep, mode in ((["size=1KiB,2KiB"], Mode.FRAME), ([], Mode.FLOW), ([], Mode.FOLD)):
        requests = Request.all_of("allreduce", FOUR_RACKS, [], sweep, mode=mode)
        with pytest.raises(PerformanceError, match="one run in frame mode"):
            run_all(requests, 1, lambda _share: None, tmp_path / "run.json")
