"""The notebook runs from its first cell to its last, and nothing of a run is committed with it."""

from __future__ import annotations

import json
from typing import Any

import matplotlib as mpl
import pytest

from catchment.checkout import ROOT

NOTEBOOK = ROOT / "docs" / "tutorials" / "switch.ipynb"


def _cells() -> list[dict[str, Any]]:
    return [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


@pytest.mark.sampled(4)
def test_the_notebook_runs(capsys: pytest.CaptureFixture[str]) -> None:
    mpl.use("agg", force=True)
    names: dict[str, Any] = {"__name__": "notebook"}
    for number, cell in enumerate(_cells()):
        exec(compile("".join(cell["source"]), f"{NOTEBOOK.name} cell {number}", "exec"), names)
    said = capsys.readouterr().out
    assert "worker 0 again: [(1, [11, 11, 11, 11, 11, 11, 11, 11])]" in said
    assert "worker 1 says ack 3, credit 7: the switch says [(1, 3, 7), (2, 3, 7)]" in said
    assert "nothing was dropped" in said


def test_no_output_is_committed() -> None:
    assert not any(cell["outputs"] or cell["execution_count"] for cell in _cells())
