"""Modules of rtl/glm under cocotb, a build each."""

from __future__ import annotations

from pathlib import Path

import pytest
from cocotb_run import run_cocotb
from netlists import netlist

from catchment.rtl.synth import Target

HERE = Path(__file__).parent


@pytest.mark.sampled(4)
@pytest.mark.parametrize("top", ["rounding_shift", "loss_lane"])
def test_against_the_golden_model(top: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb(top, "cocotb_glm", seed=seed, monkeypatch=monkeypatch, folder=HERE)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("engines", [1, 3, 8])
def test_activations(engines: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    parameters = {"ENGINES": engines}
    run_cocotb("activations", "cocotb_glm", seed=seed, monkeypatch=monkeypatch, folder=HERE, parameters=parameters)


@pytest.mark.slow
def test_the_core_behind_its_registers(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    small = {"ENGINES": 1, "MODEL_ROWS": 64, "REPLAY_WORDS": 256, "BUFFER_WORDS": 32, "SLOTS": 8}
    run_cocotb("glm_core", "cocotb_core", seed=seed, monkeypatch=monkeypatch, folder=HERE, parameters=small)


@pytest.mark.sampled(4)
def test_rounds_among_forged_frames(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb(
        "round_client", "cocotb_rounds", seed=seed, monkeypatch=monkeypatch, folder=HERE, parameters={"SLOTS": 16}
    )


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_rounds_of_cells_among_forged_frames(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, over what synthesis makes of it."""
    slots = {"SLOTS": 16}
    files = netlist(Target("", "round_client", slots))
    run_cocotb(
        "round_client",
        "cocotb_rounds",
        seed=seed,
        monkeypatch=monkeypatch,
        folder=HERE,
        parameters=slots,
        instead=files,
    )
