"""Every environment variable that a program of ours reads is explained on a page of the reference."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from environment import UnknownNameError, of_python, read_by_users

from catchment.checkout import ROOT

PAGES = ROOT / "docs" / "reference"
GENERATED = {"commands.md"}


def test_all_that_are_read_are_explained() -> None:
    read = read_by_users()
    assert {"CATCHMENT_RUN_DIR", "CATCHMENT_TOPOLOGY", "CATCHMENT_PACKED", "XDG_STATE_HOME"} <= set(read)
    assert "softswitch/server/src/options.cpp" in read["CATCHMENT_RUN_DIR"]
    text = " ".join(page.read_text("utf-8") for page in sorted(PAGES.glob("*.md")) if page.name not in GENERATED)
    missing = {name: sorted(files) for name, files in sorted(read.items()) if not re.search(rf"\b{name}\b", text)}
    assert not missing, f"docs/reference/cli.md has a table of them: {missing}"


def test_each_way_to_read_one_is_seen() -> None:
    text = """\
import os
from os import environ, getenv
from catchment.sim.lab.shm_lab import IN_CALLERS as CALLERS
NAME: Final = "FIFTH"
os.environ["FIRST"], os.environ.get("SECOND"), "THIRD" in os.environ, environ.pop("FOURTH"), environ.get(NAME)
os.getenv("SIXTH", ""), getenv("SEVENTH")
def flag(environment, name): return environment.get(name)
flag(environment, "EIGHTH")
Option(envvar="NINTH"), Option(envvar=["TENTH"]), Option(envvar=CALLERS)
os.environ["WRITTEN"] = {**os.environ}
"""
    ordinals = "FIRST SECOND THIRD FOURTH FIFTH SIXTH SEVENTH EIGHTH NINTH TENTH"
    assert of_python(text, "") == {*ordinals.split(), "CATCHMENT_IN_CALLERS"}


def test_a_name_that_cannot_be_told_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match=r"some\.py:2"):
        of_python("import os\nos.environ.get(os.name)", "some.py")
