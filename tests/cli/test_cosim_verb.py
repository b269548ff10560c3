"""`catchment cosim` refuses a file that it could not write before it builds anything, and says what it lacks."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from command_lab import Run

from catchment import native_module
from catchment.sim.cosim import CosimError, native
from catchment.sim.cosim import run as cosim_run
from catchment.softswitch.errors import SwitchError


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The captures and waveforms that were asked for, of co-simulations whose NICs would be built; each fails."""
    orders: list[Path] = []

    def run(order: cosim_run.Order) -> None:
        orders.extend(path for path in (order.pcap, order.waves) if path is not None)
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


@pytest.mark.parametrize(
    ("installed", "said"),
    [(True, "is not in this package ({}): take a checkout, and run `make native` there"),
     (False, "is not built ({}): run `make native`")],
)  # fmt: skip
def test_a_package_without_the_co_simulation(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, installed: bool, said: str
) -> None:
    monkeypatch.setattr(native_module, "INSTALLED", installed)
    monkeypatch.setattr(native_module, "NATIVE", tmp_path)
    monkeypatch.setattr(cosim_run, "run", lambda _: native.native.__wrapped__())
    told = call("cosim", "--json", "--seed", "7", code=1)
    assert told == f"catchment: cosim with seed 7: the co-simulation {said.format(tmp_path / 'sim' / 'cosim')}\n"


def test_a_switch_that_is_not_compiled(call: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_: cosim_run.Order) -> None:
        raise SwitchError(13, "CXX=/nonexistent cannot be run")

    monkeypatch.setattr(cosim_run, "run", run)
    assert call("cosim", "--json", "--seed", "7", code=1) == (
        "catchment: cosim with seed 7: CXX=/nonexistent cannot be run\n"
    )


def test_waveforms_that_cannot_be_written(call: Run, tmp_path: Path, built: list[Path]) -> None:
    (tmp_path / "file").touch()
    assert f"{tmp_path / 'file'} is no folder" in call("cosim", "--waves", str(tmp_path / "file" / "x"), code=1)
    assert not built


def test_waveforms_that_can_be_written(call: Run, tmp_path: Path, built: list[Path]) -> None:
    assert "no NIC is built here" in call("cosim", "--json", "--waves", str(tmp_path / "new"), code=1)
    assert built == [tmp_path / "new"]
    assert not (tmp_path / "new").exists()
