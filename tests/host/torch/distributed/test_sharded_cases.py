"""MiCS in processes of torch.distributed; each case is a function of mics_cases.py."""

from __future__ import annotations

import ast

import pytest
from crew import FOLDER, NATIVE, PYTHON, run_cases

CASES = FOLDER / "mics_cases.py"
NAMES = [
    node.name
    for node in ast.parse(CASES.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
]


QUICK = [name for name in NAMES if "checkpoint" in name or "fsdp2" in name or "timeout" in name]
LONG = [name for name in NAMES if name not in QUICK]


def run(cases: list[str], paths: pytest.TempPathFactory, group: str) -> dict[str, list[str]]:
    return run_cases(CASES, 4, paths.mktemp("mics") / "store", timeout=120, group=group, cases=cases)


@pytest.fixture(scope="module", params=[NATIVE, pytest.param(PYTHON, marks=pytest.mark.slow)])
def quick(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, list[str]]:
    return run(QUICK, tmp_path_factory, request.param)


@pytest.fixture(scope="module", params=[NATIVE, PYTHON])
def long(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> dict[str, list[str]]:
    return run(LONG, tmp_path_factory, request.param)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("case", [*QUICK, "end"])
def test_mics(quick: dict[str, list[str]], case: str) -> None:
    assert not quick[case], "\n".join(quick[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", [*LONG, "end"])
def test_more_of_mics(long: dict[str, list[str]], case: str) -> None:
    assert not long[case], "\n".join(long[case])
