"""The site is built from the pages without a warning and without a network, and needs none to be read from a server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from catchment.checkout import ROOT

# What the theme's search loads where the site is read as files: browsers let no file start a worker.
SEARCH_IN_FILES = "/iframe-worker/shim"
MKDOCS = ROOT / ".venv" / "docs" / "bin" / "mkdocs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    if not MKDOCS.exists():
        pytest.skip("no packages for the site: make docs")
    folder = tmp_path_factory.mktemp("site")
    cut_off = ["unshare", "--net"] if os.geteuid() == 0 and shutil.which("unshare") else []
    command = [*cut_off, str(MKDOCS), "build", "--strict", "--quiet", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return folder


def test_every_page_is_there_and_is_found(site: Path) -> None:
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html") for page in (ROOT / "docs").rglob("*.md")}
    assert not [page for page in pages if not (site / page).is_file()]
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    assert {"tutorials/rails.html", "reference/tables.html"} <= {
        entry["location"].split("#")[0] for entry in index["docs"]
    }


def test_docstrings_are_in_the_reference_of_python(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text("utf-8")
    assert 'id="catchment.host.collectives.Communicator.all_reduce"' in page


def test_a_page_loads_nothing_from_elsewhere(site: Path) -> None:
    loads = re.compile(r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=\"?(https?://[^\" >]+)")
    for page in site.rglob("*.html"):
        found = loads.findall(page.read_text("utf-8"))
        assert not [load for load in found if not load.endswith(SEARCH_IN_FILES)], page.name


def test_a_page_is_dark_where_its_reader_s_system_is(site: Path) -> None:
    """The theme keeps the first choice of its list, so a list without the system's own never follows it again."""
    offered = re.findall(r'<input[^>]*data-md-color-media="([^"]*)"', (site / "index.html").read_text("utf-8"))
    assert offered == [
        "(prefers-color-scheme)",
        "(prefers-color-scheme: light)",
        "(prefers-color-scheme: dark)",
    ]
