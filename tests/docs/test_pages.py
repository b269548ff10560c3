"""Pages hold what they say: links lead somewhere, the README stays short, and its program runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from catchment.checkout import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
BESIDE = (ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md")  # pages that the site does not have
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_WORD = re.compile(r"\S*\w\S*")  # a table's lines are none
_PAGE_NAME = re.compile(rb"\bdocs/[\w/-]+\.md\b")


def _anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as repository hosts make them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    wrong = []
    for link in _LINK.findall(_CODE.sub("", page.read_text("utf-8"))):
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not link.startswith("http") and (not target.exists() or (anchor and anchor not in _anchors(target))):
            wrong.append(link)
    assert not wrong, f"{page.name} links to what is not there: {', '.join(wrong)}"


def test_the_site_has_every_page() -> None:
    listed = re.findall(r"^\s+- ([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(str(page.relative_to(ROOT / "docs")) for page in PAGES[1:])


def test_every_figure_is_shown_with_a_text() -> None:
    shown = {
        Path(target).name: text
        for page in PAGES
        for text, target in re.findall(r"!\[([^\]]*)\]\(([^)\s]+)\)", page.read_text("utf-8"))
    }
    assert set(shown) == {figure.name for figure in (ROOT / "docs" / "figures").glob("*.svg")}
    assert all(len(text.split()) >= 3 for text in shown.values()), shown


def test_every_page_has_the_folder_of_its_kind() -> None:
    folders = {page.parent.name for page in PAGES[1:] if page.name != "index.md"}
    assert folders <= {"tutorials", "howto", "reference", "explanation", "measurements"}


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "measurements").glob("*.md")), ids=lambda page: page.stem)
def test_a_measurement_says_when_and_how(page: Path) -> None:
    """A figure without a date says nothing of today's code; what is simulated has the same bits on every day."""
    text = page.read_text("utf-8")
    assert re.search(r"^Measured (on|from) 20\d\d-\d\d-\d\d", text, re.MULTILINE) or "has written it" in text
    assert re.search(r"`(make|python|catchment) [^`]+`|`tests/[^`]+`", text), "no command"


def test_pages_that_sources_name_exist() -> None:
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    sources = [ROOT / name for name in files.split("\0") if name]
    gone = [
        f"{source.relative_to(ROOT)}: {page.decode()}"
        for source in sources
        if source.is_file() and not source.is_symlink()
        for page in _PAGE_NAME.findall(source.read_bytes())
        if not (ROOT / page.decode()).is_file()
    ]
    assert not gone, "\n".join(gone)


def test_the_readme_is_short() -> None:
    text = PAGES[0].read_text("utf-8")
    assert len(re.sub(r"\]\([^)]*\)", "]", text).split()) <= 500


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_are_short(page: Path) -> None:
    """A page with more to say is two pages."""
    if page.parent.name != "reference":
        assert len(_WORD.findall(page.read_text("utf-8"))) <= 1500


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short(page: Path) -> None:
    """Rows of tables cannot be broken; prose, drawings and commands can."""
    lines = page.read_text("utf-8").splitlines()
    assert not [line for line in lines if len(line) > 140 and not line.startswith("|")]


def test_the_program_of_the_readme_trains(tmp_path: Path) -> None:
    (program,) = (code for language, code in _CODE.findall(PAGES[0].read_text("utf-8")) if language == "python")
    (tmp_path / "train.py").write_text(program)
    # Files of a user's own whose names are those of our folders must not stand in the way.
    for name in ("host.py", "wire.py", "sim.py"):
        (tmp_path / name).write_text("raise RuntimeError('this is the file of a user')\n")
    torchrun = Path(sys.executable).with_name("torchrun")
    # Ranks do not buffer under torchrun, and would write into each other's lines: each has a file.
    command = [torchrun, "--nproc-per-node", "2", "--log-dir", "logs", "--redirects", "3", "train.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    said = dict(log.read_text("utf-8").split() for log in (tmp_path / "logs").rglob("stdout.log"))
    complaints = "".join(log.read_text("utf-8") for log in (tmp_path / "logs").rglob("stderr.log"))
    assert run.returncode == 0, run.stdout + run.stderr + complaints
    assert set(said) == {"0", "1"}, complaints
    assert all(float(loss) < 10 for loss in said.values())
