"""What docs/reference/pytorch.md says of how the two process groups differ is so; all else that is tested is alike."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from crew import FOLDER, NATIVE, PYTHON, ROOT, run_ranks

PAGE = (ROOT / "docs" / "reference" / "pytorch.md").read_text()


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading, without backquotes."""
    table = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert table is not None, f"docs/reference/pytorch.md has no table {heading!r}"
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in table[1].splitlines()]


def told(group: str, store: Path, expressions: list[str], calls: list[str]) -> Iterator[dict[str, dict[str, str]]]:
    """What each rank says."""
    asked = json.dumps({"expressions": expressions, "calls": calls})
    commands = [[str(FOLDER / "differences.py"), str(rank), str(store), asked] for rank in range(2)]
    for ended in run_ranks(commands, {"CATCHMENT_PROCESS_GROUP": group}, patience=240):
        assert ended.code == 0, ended.complaint[-3000:]
        yield ended.said[0]


@pytest.mark.sampled(4)
def test_what_the_page_says_of_their_differences_is_so(tmp_path: Path) -> None:
    asked = {row[0]: {NATIVE: row[1], PYTHON: row[2]} for row in rows("asked")}
    calls = {row[0]: row[1] for row in rows("call of the C++ group")}
    assert len(asked) > 3 and len(calls) > 10
    for group in (NATIVE, PYTHON):
        for said in told(group, tmp_path / f"{group}-store", list(asked), list(calls)):
            assert said["expressions"] == {expression: answers[group] for expression, answers in asked.items()}
            if group == NATIVE:
                assert said["calls"].keys() == calls.keys()
                wrong = {
                    call: by for call, by in said["calls"].items() if (by or "C++") not in calls[call].split("` or `")
                }
                assert not wrong


ONE_GROUP = {
    "test_agreement.py": "is of what comes before a group",
    "test_beside.py": "makes no process group",
    "test_contacts.py": "makes no process group",
    "test_differences.py": "compares them",
    "test_failed_groups.py": "makes no process group",
    "test_group_arguments.py": "pybind refuses what is no tensor before the C++ group has it",
    "test_rail_training.py": "compares trainings for minutes; rails are below both groups",
    "test_seats.py": "makes no process group",
    "test_settings.py": "makes no process group",
    "test_shared_seats.py": "makes no process group",
    "test_switch_command.py": "makes no process group",
    "test_wheel.py": "runs the one that the wheel has",
    "test_works.py": "makes no process group",
}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("test_*.py")), ids=lambda path: path.name)
def test_every_test_of_one_is_a_test_of_the_other(path: Path) -> None:
    """A file that says nothing of both groups would let them drift."""
    said = {node.id for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Name)}
    assert path.name in ONE_GROUP or {"NATIVE", "PYTHON"} <= said or "GROUPS" in said, path.name
