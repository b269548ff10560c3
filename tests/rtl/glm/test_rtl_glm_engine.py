"""The engine alone against the golden model, under cocotb."""

from __future__ import annotations

from pathlib import Path

import pytest
from cocotb_run import run_cocotb
from engine_case import MODEL_ROWS

HERE = Path(__file__).parent
PARAMETERS = {"MODEL_ROWS": MODEL_ROWS, "REPLAY_WORDS": 64}


@pytest.mark.slow
def test_the_engine_alone(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    run_cocotb("engine", "cocotb_engine", seed=seed, monkeypatch=monkeypatch, folder=HERE, parameters=PARAMETERS)


@pytest.mark.slow
def test_the_engine_alone_at_every_precision(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for more in range(3):
        run_cocotb(
            "engine", "cocotb_engine", seed=seed + more, monkeypatch=monkeypatch, folder=HERE, parameters=PARAMETERS
        )
