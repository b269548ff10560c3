"""`catchment cosim` refuses a file that it could not write before it builds anything."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_lab import Run

from catchment.sim.cosim import CosimError
from catchment.sim.cosim import run as cosim_run


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The captures that were asked for, of co-simulations whose NICs would be built; each fails."""
    orders: list[Path] = []

    def run(order: cosim_run.Order) -> None:
        assert order.pcap is not None
        orders.append(order.pcap)
        raise CosimError("no NIC is built here")

    monkeypatch.setattr(cosim_run, "run", run)
    return orders


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("absent/x.pcapng", "there is no folder"),
        ("file/x.pcapng", "there is no folder"),
        ("n" * 300, "File name too long"),
        ("protected", "it may not be written"),
    ],
)
def test_a_capture_that_cannot_be_written(
    call: Run, tmp_path: Path, built: list[Path], monkeypatch: pytest.MonkeyPatch, *, path: str, said: str
) -> None:
    for name in ("file", "protected"):
        (tmp_path / name).touch()
    access = os.access
    monkeypatch.setattr(
        os, "access", lambda at, mode: access(at, mode) and not (mode == os.W_OK and Path(at).name == "protected")
    )
    assert said in call("cosim", "--pcap", str(tmp_path / path), code=1)
    assert not built


@pytest.mark.parametrize("name", ["new", "old"])
def test_a_capture_that_can_be_written(call: Run, tmp_path: Path, built: list[Path], name: str) -> None:
    (tmp_path / "old").touch()
    assert "no NIC is built here" in call("cosim", "--json", "--pcap", str(tmp_path / name), code=1)
    assert built == [tmp_path / name]
    assert not (tmp_path / "new").exists()
