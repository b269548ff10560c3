"""The capture files, read by somebody else's reader."""

from __future__ import annotations

import io
import os
import random
import sys
from pathlib import Path

import pytest
from scapy.utils import RawPcapNgReader

from catchment import cli
from catchment.controlplane.diagnosis.pcapng import INBOUND, OUTBOUND, PcapngWriter


def test_frames_come_back_with_time_and_interface(rng: random.Random, tmp_path: Path) -> None:
    frames = [
        (
            rng.randrange(2),
            rng.randrange(1 << 62),
            rng.randbytes(rng.randrange(1, 2000)),
            rng.choice((INBOUND, OUTBOUND)),
        )
        for _ in range(50)
    ]
    out = io.BytesIO()
    writer = PcapngWriter(out, snap=1000)
    assert [writer.add_interface(name, f"port {name}") for name in ("s1:1", "w0")] == [0, 1]
    for frame in frames:
        writer.add_frame(*frame)
    path = tmp_path / "frames.pcapng"
    path.write_bytes(out.getvalue())
    with RawPcapNgReader(str(path)) as reader:
        read = list(reader)
    assert len(read) == len(frames)
    for (data, about), (interface, time_ns, frame, direction) in zip(read, frames, strict=True):
        assert data == frame[:1000]
        assert about.wirelen == len(frame)
        assert about.tshigh << 32 | about.tslow == time_ns
        assert about.ifname == (b"s1:1", b"w0")[interface]
        assert about.direction == direction


@pytest.mark.skipif(os.geteuid() != 0, reason="packet sockets need root")
def test_what_cannot_be_captured_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    monkeypatch.delenv("CATCHMENT_TOPOLOGY", raising=False)
    wrong = {
        ("iface=nothing0", str(tmp_path / "x.pcapng")): "cannot listen on nothing0: No such device",
        ("iface=lo", str(tmp_path / "no" / "x.pcapng")): "cannot write",
        ("s1:1", str(tmp_path / "x.pcapng")): "no network is up",
    }
    for (where, output), said in wrong.items():
        monkeypatch.setattr(sys, "argv", ["catchment", "capture", where, "-o", output, "-s", "0"])
        with pytest.raises(SystemExit) as end:
            cli.main()
        assert end.value.code == 1
        assert said in capsys.readouterr().err
