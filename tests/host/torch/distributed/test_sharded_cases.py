"""MiCS in processes of torch.distributed; each case is a function of mics_cases.py."""

from __future__ import annotations

import ast

import pytest
from crew import FOLDER, NATIVE, run_cases

CASES = FOLDER / "mics_cases.py"
NAMES = [
    node.name
    for node in ast.parse(CASES.read_text("utf-8")).body
    if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")
]


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    return run_cases(CASES, 4, tmp_path_factory.mktemp("mics") / "store", timeout=120, group=NATIVE)


@pytest.mark.parametrize("case", [*NAMES, "end"])
def test_mics(failures: dict[str, list[str]], case: str) -> None:
    assert not failures[case], "\n".join(failures[case])
