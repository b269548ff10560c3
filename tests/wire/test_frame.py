"""The wire description: what it must be, and that a contradiction is refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.wire.frame import SOURCE, FrameError, load
from catchment.wire.generate import stale, write


def test_headers_fill_exactly_one_beat() -> None:
    frame = load()
    assert frame.header_bytes == 22
    assert (frame.encapsulation.total + frame.header_bytes) * 8 == frame.beat_bits == 512


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "gen"\nbits = 16', 'name = "gen"\nbits = 24', "payload must start on a beat"),
        ('name = "gen"\nbits = 16', 'name = "gen"\nbits = 17', "not whole bytes"),
        ('name = "FA", value = 2', 'name = "FA", value = 1', "PacketType value 1 appears twice"),
        ('name = "CNF", value = 7', 'name = "CNF", value = 16', "does not fit 4 bits"),
        ('name = "SAT", value = 0x10', 'name = "SAT", value = 0x30', "not a single bit"),
        ('name = "ack"', 'name = "seq"', "field 'seq' appears twice"),
        ('enum = "Flag"', 'enum = "Flags"', "no enumeration is called Flags"),
        ("default_lanes = 64", "default_lanes = 63", "not in supported_lanes"),
        ("max_workers = 64", "max_workers = 65", "max_workers 65: sets of workers are words of 64 bits"),
    ],
)
def test_contradictions_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    text = SOURCE.read_text()
    assert old in text
    broken = tmp_path / "frame.toml"
    broken.write_text(text.replace(old, new, 1))
    with pytest.raises(FrameError, match=message):
        load(broken)


def test_committed_outputs_are_current() -> None:
    assert stale() == []


def test_a_stale_a_missing_and_an_extra_file_are_found(tmp_path: Path) -> None:
    write(tmp_path)
    assert stale(tmp_path) == []
    (tmp_path / "wire.p4").write_text("// edited by hand\n")
    (tmp_path / "catchment.lua").unlink()
    (tmp_path / "left_over.p4").write_text("")
    assert stale(tmp_path) == ["catchment.lua", "left_over.p4", "wire.p4"]
