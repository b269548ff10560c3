"""torch.distributed's backend `catchment`: every case runs on all ranks at once, in processes of their own."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from crew import FOLDER, NATIVE, PYTHON, run_cases

Failures = dict[str, list[str]]

COLLECTIVES = FOLDER / "collective_cases.py"
TRAINING = FOLDER / "training_cases.py"
NUMBERS = FOLDER / "number_cases.py"
WRAPPERS = FOLDER / "wrapper_cases.py"
REFUSALS = FOLDER / "refusal_cases.py"
GROUPS = FOLDER / "group_cases.py"
SAMPLE = 4


def names(module: Path) -> list[str]:
    """The cases of a module, without importing it."""
    return [node.name for node in ast.parse(module.read_text()).body if getattr(node, "name", "").startswith("case_")]


def check(failures: Failures) -> None:
    """No rank failed in any case."""
    failed = {case: said for case, said in failures.items() if said}
    assert not failed, failed


@pytest.fixture(scope="module")
def collectives(tmp_path_factory: pytest.TempPathFactory) -> Failures:
    return run_cases(COLLECTIVES, 3, tmp_path_factory.mktemp("collectives") / "store", timeout=120, group=NATIVE)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Failures:
    return run_cases(TRAINING, 4, tmp_path_factory.mktemp("training") / "store", timeout=120, group=NATIVE)


@pytest.fixture(scope="module", params=[NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
def refusals(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Failures:
    return run_cases(REFUSALS, 2, tmp_path_factory.mktemp("refusals") / "store", timeout=120, group=request.param)


@pytest.mark.parametrize("case", [*names(REFUSALS), "end"])
def test_refusals(refusals: Failures, case: str) -> None:
    assert not refusals[case], "\n".join(refusals[case])


@pytest.fixture(scope="module", params=[NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
def groups(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Failures:
    return run_cases(GROUPS, 4, tmp_path_factory.mktemp("groups") / "store", timeout=120, group=request.param)


@pytest.mark.sampled(4, together=True)
@pytest.mark.parametrize("case", [*names(GROUPS), "end"])
def test_groups(groups: Failures, case: str) -> None:
    assert not groups[case], "\n".join(groups[case])


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Failures:
    return run_cases(NUMBERS, 3, tmp_path_factory.mktemp("numbers") / "store", timeout=120, group=NATIVE)


@pytest.mark.sampled(4, together=True)
@pytest.mark.parametrize("case", [*names(NUMBERS), "end"])
def test_numbers(numbers: Failures, case: str) -> None:
    assert not numbers[case], "\n".join(numbers[case])


@pytest.mark.sampled(2, together=True)
@pytest.mark.parametrize("case", [*names(COLLECTIVES), "end"])
def test_collectives(collectives: Failures, case: str) -> None:
    assert not collectives[case], "\n".join(collectives[case])


@pytest.mark.sampled(4, together=True)
@pytest.mark.parametrize("case", [*names(TRAINING), "end"])
def test_training(training: Failures, case: str) -> None:
    assert not training[case], "\n".join(training[case])


@pytest.mark.sampled(4)
def test_a_sample_of_the_wrappers(tmp_path: Path, rng: random.Random) -> None:
    every = names(WRAPPERS)
    cases = [every[place] for place in sorted(rng.sample(range(len(every)), SAMPLE))]  # the last one ends the group
    check(run_cases(WRAPPERS, 4, tmp_path / "store", timeout=120, group=NATIVE, cases=cases))


@pytest.mark.slow
@pytest.mark.parametrize("group", [NATIVE, PYTHON])
def test_all_wrappers(tmp_path: Path, group: str) -> None:
    failures = run_cases(WRAPPERS, 4, tmp_path / "store", timeout=120, group=group)
    assert len(failures) == len(names(WRAPPERS)) + 1
    check(failures)


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("module", "size"), [(COLLECTIVES, 3), (NUMBERS, 3), (TRAINING, 4)])
def test_a_sample_with_the_process_group_in_python(module: Path, size: int, tmp_path: Path, rng: random.Random) -> None:
    cases = rng.sample(names(module), SAMPLE)
    check(run_cases(module, size, tmp_path / "store", timeout=120, group=PYTHON, cases=cases))


@pytest.mark.slow
@pytest.mark.parametrize(("module", "size"), [(COLLECTIVES, 3), (NUMBERS, 3), (TRAINING, 4)])
def test_all_with_the_process_group_in_python(module: Path, size: int, tmp_path: Path) -> None:
    failures = run_cases(module, size, tmp_path / "store", timeout=120, group=PYTHON)
    assert len(failures) == len(names(module)) + 1
    check(failures)
