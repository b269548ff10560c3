"""The protocol's proofs, and that the checker can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from catchment.sim.protocol import spin
from catchment.sim.protocol.cases import CASES, Case
from catchment.sim.protocol.spin import SpinError, check

# What a third level of switches adds takes longest.
THIRD_LEVEL = tuple(case for case in CASES if "three levels" in case.name or "middle" in case.name)


def _case(case: Case) -> object:
    return pytest.param(case, id=case.name, marks=pytest.mark.sampled(12 if case in THIRD_LEVEL else 8))


@pytest.mark.sources_alone("spin", "gcc")
@pytest.mark.parametrize("case", [_case(case) for case in CASES])
def test_case(case: Case) -> None:
    verdict = check(case)
    assert verdict.as_expected, verdict.trail
    assert bool(verdict.trail) == (not case.holds)


def test_a_broken_model_is_an_error_not_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.pml").write_text("active proctype P() { x = 1 }\n")
    monkeypatch.setattr(spin, "MODELS", tmp_path)
    with pytest.raises(SpinError, match="undeclared"):
        check(Case("broken", "broken.pml", holds=True))
