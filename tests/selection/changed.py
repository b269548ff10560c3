"""Names the tests that a change can touch: `make test CHANGED=1` runs these and no others.

A file that no other needs, and that is no test, asks for every test below the folder of its name in tests/, or for all
tests where there is no such folder.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

sys.path.insert(0, str(Path(__file__).parent))

from dependencies import closure, dependencies, files_of_the_checkout, is_test, users

from catchment.checkout import ROOT

ALWAYS = ("tests/structure/", "tests/docs/")  # the house, and the pages, which speak of everything
_EVERYTHING = {"Makefile", "requirements.txt", "pyproject.toml", "CMakeLists.txt", "tests/conftest.py", ".ci/run"}


def changed_files(base: str) -> set[str]:
    """Files that differ from the commit `base`, and new ones that git does not ignore.

    Raises:
        ValueError: git knows no such commit.
    """

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(f"git {' '.join(words)}: {done.stderr.strip()}")
        return done.stdout.splitlines()

    return {*git("diff", "--name-only", base, "--"), *git("ls-files", "--others", "--exclude-standard")}


def select(changed: set[str], arrows: dict[str, set[str]] | None = None) -> list[str]:
    """The test files that can notice a change of `changed`, paths below the root, sorted.

    Args:
        changed: paths below the root.
        arrows: what `users` gives, if the caller has it.
    """
    every = {name for name in files_of_the_checkout() if is_test(name)}
    if changed & _EVERYTHING:
        return sorted(every)
    arrows = users(dependencies()) if arrows is None else arrows
    chosen = {name for name in every if name.startswith(ALWAYS)}
    for name in changed:
        reached = {file for file in closure(arrows, name) if is_test(file)} & every
        if name.endswith("/conftest.py"):
            reached |= {test for test in every if test.startswith(name.removesuffix("conftest.py"))}
        if not reached:
            reached = {test for test in every if test.startswith(f"tests/{name.split('/')[0]}/")} or every
        chosen |= reached
    return sorted(chosen)


def main(base: Annotated[str, typer.Argument(help="the commit that the change began at")] = "HEAD") -> None:
    """Print the chosen files, one a line; on standard error, how many of how many."""
    try:
        changed = changed_files(base)
    except ValueError as error:
        print(f"changed: {error}; give a commit, as in CHANGED=main", file=sys.stderr)
        raise typer.Exit(2) from error
    chosen = select(changed)
    every = sum(is_test(name) for name in files_of_the_checkout())
    print(f"changed: {len(changed)} files since {base}, {len(chosen)} of {every} test files", file=sys.stderr)
    print("\n".join(chosen))


if __name__ == "__main__":
    typer.run(main)
