"""Frames that get tags and lose them in hardware, under cocotb, beside the golden model."""

from __future__ import annotations

import pytest
from cocotb_run import run_cocotb

pytestmark = pytest.mark.sampled(4)

TESTS = 7
"""Number of the bench's tests; those of the other module are skipped."""


@pytest.mark.parametrize("units", [1, 5, 14])
def test_frames_leave_with_tags(units: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAG_UNITS", str(units))
    given = {"UNITS": units}
    assert run_cocotb("tag_writer", "cocotb_tag_frames", seed=seed, monkeypatch=monkeypatch, parameters=given) == TESTS


@pytest.mark.parametrize("units", [1, 5])
def test_frames_arrive_with_tags(units: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"UNITS": units}
    assert run_cocotb("tag_reader", "cocotb_tag_frames", seed=seed, monkeypatch=monkeypatch, parameters=given) == TESTS
