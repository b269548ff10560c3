"""The example of a file of entries in docs/reference/cli.md: what it writes into a table of luwu.p4 fits that."""

from __future__ import annotations

import re
from pathlib import Path

import yaml
from command_lab import Run, as_json

from catchment.checkout import ROOT


def test_the_table_of_our_program_takes_its_part(run: Run, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    found = re.search(r"```yaml\n(format: 1\n.*?)```", page, re.DOTALL)
    assert found is not None
    example = yaml.safe_load(found[1])
    own = {"format": 1, **{part: {"l2": example[part]["l2"]} for part in ("tables", "defaults")}}
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(own))
    changes = as_json(run, "table", "load", "s1", str(file))
    assert (changes["inserted"], changes["modified"]) == (1, 1)
