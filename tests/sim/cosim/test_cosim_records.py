"""What a run leaves on disk: captures, waveforms; and the verb that makes it."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import numpy as np
import pytest
from scapy.utils import RawPcapNgReader

from catchment import cli
from catchment.sim.cosim import Faults, Machine
from catchment.sim.cosim.rounds import gradients
from catchment.wire.generated.constants import UDP_PORT, DataType

pytestmark = pytest.mark.sampled(4)  # what it builds takes a minute


def verb(*arguments: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["catchment", "cosim", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert not ended.value.code, ended.value.code


def test_a_capture_has_every_frame_of_every_cable(tmp_path: Path, rng: random.Random) -> None:
    path = tmp_path / "run.pcapng"
    with Machine.star(2, seed=rng.getrandbits(32)) as machine:
        job = machine.luwu(["w0", "w1"], root="opt")
        machine.cables["w0"].faults(Faults(loss=0.2))
        parts = [np.random.default_rng(w).normal(size=12_000).astype(np.float32) for w in range(2)]
        before = [line.counts()["frames"] for c in machine.cables.values() for line in (c.up, c.down)]
        with machine.capture(path):
            gradients(machine, job, parts, DataType.FP32, exponent=3)
        after = [line.counts()["frames"] for c in machine.cables.values() for line in (c.up, c.down)]
    frames = [(bytes(data), meta) for data, meta in RawPcapNgReader(str(path))]
    assert len(frames) == sum(sum(a.values()) for a in after) - sum(sum(b.values()) for b in before)
    assert all(UDP_PORT.to_bytes(2, "big") in data[34:38] for data, _ in frames)
    times = [(meta.tshigh << 32) + meta.tslow for _, meta in frames]
    assert times == sorted(times)
    names = {meta.ifname for _, meta in frames}
    assert {"w0", "w0 lost", "w1", "opt"} <= {name.decode() for name in names}


def test_a_capture_that_cannot_be_written_costs_no_run(tmp_path: Path, rng: random.Random) -> None:
    with (
        Machine.star(1, seed=rng.getrandbits(32)) as machine,
        pytest.raises(FileNotFoundError),
        machine.capture(tmp_path / "nowhere" / "run.pcapng"),
    ):
        raise AssertionError("it runs")


def test_the_verb_reports_a_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--elements", "5000", "--rounds", "1", "--loss", "0.01", "--seed", "3", "--json")
    verb(*arguments, monkeypatch=monkeypatch)
    first = json.loads(capsys.readouterr().out)
    verb(*arguments, monkeypatch=monkeypatch)
    second = json.loads(capsys.readouterr().out)
    for report in (first, second):
        assert report.pop("clocks_per_second") > 0
    assert first == second
    assert first["lost"] > 0 and first["frames"]["PA"] >= 2 * 79


@pytest.mark.slow  # a build of each NIC of its own
@pytest.mark.timeout(1800)
def test_waveforms_of_every_nic(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    verb("--elements", "100", "--rounds", "1", "--waves", str(tmp_path / "waves"), monkeypatch=monkeypatch)
    assert "equal to numpy" in capsys.readouterr().out
    for name in ("w0", "w1", "opt"):
        assert (tmp_path / "waves" / f"{name}.fst").stat().st_size > 10_000
