"""torch's own cases for a process group, run out of the installed torch with the backend `catchment`."""

from __future__ import annotations

import importlib.util
import random
from collections.abc import Iterator

import pytest
from crew import FOLDER, NATIVE, PYTHON, run_ranks
from torch_case_names import CASES, NOT_RUN

MODULE = "torch.testing._internal.distributed.distributed_test"
SAMPLE = 5

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch.testing._internal") is None
    or importlib.util.find_spec("torch.testing._internal.distributed") is None
    or importlib.util.find_spec(MODULE) is None,
    reason=f"this torch has no {MODULE}: its cases for a process group have moved",
)


def outcomes(ranks: int, cases: tuple[str, ...] | list[str], group: str) -> Iterator[tuple[str, str, str]]:
    """Name, outcome and text of each case."""
    command = [str(FOLDER / "torch_cases.py"), str(ranks), *cases]
    (ended,) = run_ranks([command], {"CATCHMENT_PROCESS_GROUP": group}, patience=3600)
    assert ended.code == 0 and [said["case"] for said in ended.said] == list(cases), ended.complaint[-5000:]
    for said in ended.said:
        text = said["said"] + ("" if said["outcome"] == "ok" else f"\n{ended.complaint[-5000:]}")
        yield said["case"], said["outcome"], text


def check(ranks: int, cases: tuple[str, ...] | list[str], group: str) -> None:
    """All pass; a case that the installed torch skips is no failure, but all of them are."""
    ended = list(outcomes(ranks, cases, group))
    assert not [f"{case}: {text}" for case, outcome, text in ended if outcome == "failed"]
    assert any(outcome == "ok" for _, outcome, _ in ended), ended


@pytest.mark.sampled(4)
def test_a_sample_of_torch_s_own_cases_passes(rng: random.Random) -> None:
    check(3, rng.sample(CASES[3], SAMPLE), NATIVE)


@pytest.mark.slow
@pytest.mark.timeout(3700)
@pytest.mark.parametrize("group", [NATIVE, PYTHON])
@pytest.mark.parametrize("ranks", CASES)
def test_torch_s_own_cases_pass(ranks: int, group: str) -> None:
    check(ranks, CASES[ranks], group)


def test_no_case_is_both_run_and_not_run() -> None:
    run = [case for cases in CASES.values() for case in cases]
    assert len(run) == len(set(run)) and not set(run) & set(NOT_RUN)
