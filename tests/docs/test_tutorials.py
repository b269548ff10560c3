"""Tutorials and how-tos do what they say: each page's files and commands, in order, in a folder of the page's own."""

from __future__ import annotations

import os
import select
import shutil
from pathlib import Path

import page_check
import page_script
import pytest

from catchment.checkout import ROOT

DOCS = ROOT / "docs"
PAGES = [
    page
    for folder in ("tutorials", "howto")
    for page in sorted((DOCS / folder).glob("*.md"))
    if page_script.steps_of(page)
]
NEEDY = [
    (page, step)
    for page in PAGES
    for step in page_script.steps_of(page)
    if isinstance(step, page_script.Command) and step.needs
]
TIMEOUT = 550.0
NEEDY_TIMEOUT = 3600.0
"""What others install, BMv2 for one, may be a hundred times slower than what the project brings."""


def _needs_programs(page: Path) -> bool:
    return any(page == needy for needy, _ in NEEDY)


def _page(page: Path) -> object:
    marks = {
        "slow": [pytest.mark.slow],
        "network": [pytest.mark.slow, pytest.mark.e2e],
        "interfaces": [pytest.mark.e2e],
    }
    wanted = [mark for need in page_script.needs(page) for mark in marks[need]]
    wanted += [pytest.mark.timeout(2 * NEEDY_TIMEOUT)] if _needs_programs(page) else []
    return pytest.param(page, id=f"{page.parent.name}/{page.stem}", marks=wanted)


@pytest.mark.parametrize("page", [_page(page) for page in PAGES])
def test_a_page_does_what_it_says(page: Path, tmp_path: Path) -> None:
    if "network" in page_script.needs(page) and (os.geteuid() != 0 or shutil.which("mn") is None):
        pytest.skip("needs root and Mininet")
    if "interfaces" in page_script.needs(page) and os.geteuid() != 0:
        pytest.skip("needs root")
    (tmp_path / "page").mkdir()
    page_script.run(page, tmp_path / "page", NEEDY_TIMEOUT if _needs_programs(page) else TIMEOUT)


@pytest.mark.parametrize(("page", "command"), NEEDY, ids=lambda value: getattr(value, "stem", None))
def test_a_command_whose_programs_are_not_here_is_right_as_far_as_one_can_tell(
    page: Path, command: page_script.Command
) -> None:
    page_check.check(command)
    if command.missing:
        pytest.skip(f"`{command.text.splitlines()[0]}` was checked, not run: needs {', '.join(command.missing)}")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sudo X=1 catchment job create train --workers w0 --root opt | cat", None),
        ("catchment job make train", "there is no verb 'make' in 'catchment job'"),
        ("X=1 catchment job create train --worker w0", "'catchment job create' has no option --worker"),
        ("sudo env X=1 catchment job create train --worker w0", "'catchment job create' has no option --worker"),
        ("catchment demo --of-another-program", None),
        ("for x in 1; do echo", "is no shell"),
    ],
)
def test_a_command_that_cannot_run_here_and_is_wrong_is_noticed(text: str, says: str | None) -> None:
    if says is None:
        page_check.check(page_script.Command(text))
    else:
        with pytest.raises(page_script.PageError, match=says):
            page_check.check(page_script.Command(text))


def _write(tmp_path: Path, text: str) -> Path:
    (tmp_path / "folder").mkdir()
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


@pytest.mark.parametrize(
    ("block", "says"),
    [
        ("```console\n$ echo one 2 three\none 5 three\n```\n", None),
        ("```console\n$ echo one 2 three\none 5 four\n```\n", "did not print 'one 5 four'"),
        ("```console\n$ seq 2; echo b; echo a\na\nb\n```\n", "did not print 'b'"),
        ("```console\n$ export X=1\n$ test $X = 1\n$ test $X = 2\n```\n", r"`test \$X = 2` failed \(1\)"),
        ('```python title="a.py"\nprint("x")\n```\n```console\n$ python a.py\nx\n```\n', None),
        ("```python\nprint(1)\n```\n", "a block of python has no title"),
        ("```console\nnot a command\n```\n", "stands before the first command"),
        ("```console\n$ exit 0\n```\n", "failed"),
        ("<!-- needs: bash -->\n```console\n$ exit 1\n```\n", "failed"),
        ("<!-- needs: no-such-program -->\n```console\n$ exit 1\n```\n```console\n$ echo a\na\n```\n", None),
    ],
)
def test_a_page_that_is_wrong_is_noticed(block: str, says: str | None, tmp_path: Path) -> None:
    page = _write(tmp_path, block)
    if says is None:
        page_script.run(page, tmp_path / "folder", 60)
    else:
        with pytest.raises(page_script.PageError, match=says):
            page_script.run(page, tmp_path / "folder", 60)


@pytest.mark.parametrize("last", ["$ echo done\n", "$ exit 1\n", "$ sleep 60\n"])
def test_nothing_of_a_page_goes_on(last: str, tmp_path: Path) -> None:
    page = _write(tmp_path, f"```console\n$ exec 9> held\n$ sleep 1000 &\n$ exec 9>&-\n{last}```\n")
    os.mkfifo(tmp_path / "folder" / "held")
    held = os.open(tmp_path / "folder" / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        page_script.run(page, tmp_path / "folder", 2.0)
    except page_script.PageError:
        assert last != "$ echo done\n"
    assert select.select([held], [], [], 60)[0], "what the page began still has its output"
    assert os.read(held, 1) == b""
    os.close(held)
