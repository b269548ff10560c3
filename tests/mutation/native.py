"""Says whether tests notice a mutant of C++: each is built and tried by the runner of planted bugs."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from verdict import Verdict

sys.path.insert(0, str(Path(__file__).parents[1] / "planted"))

from runner import DOES_NOT_COMPILE, ENDLESS, can_plant, run_changed

from catchment.checkout import ROOT

_VERDICTS = {0: Verdict.SURVIVED, 1: Verdict.NOTICED, DOES_NOT_COMPILE: Verdict.UNBUILT, ENDLESS: Verdict.ENDLESS}
_SECONDS = 300  # of the tests of a mutant


class MutationError(Exception):
    """The mutants could not be tried: why."""


def try_native(
    file: str, tests: Sequence[str], targets: Sequence[str], sources: Sequence[str]
) -> Iterator[tuple[str, Verdict]]:
    """The verdict on each mutant, as they come.

    Args:
        file: below the root.
        tests: below the root.
        targets: of CMake, that the tests need.

    Raises:
        MutationError: the tests fail on the module as it is, or nothing can be laid over it.
    """
    if not can_plant():
        raise MutationError(f"{file}: a mutant is laid over it in a mount namespace, which needs root")
    as_it_is, said = _verdict(file, (ROOT / file).read_text("utf-8"), tests, targets)
    if as_it_is is not Verdict.SURVIVED:
        raise MutationError(f"{file}: its tests fail on it as it is:\n{said}")
    for source in sources:
        yield source, _verdict(file, source, tests, targets)[0]


def _verdict(file: str, source: str, tests: Sequence[str], targets: Sequence[str]) -> tuple[Verdict, str]:
    with tempfile.TemporaryDirectory() as folder:
        done = run_changed(file, source, tests, Path(folder), targets=targets, seconds=_SECONDS)
    said = (done.stdout + done.stderr)[-2000:]
    # A crash of the interpreter is a failure that nobody overlooks.
    return _VERDICTS.get(done.returncode, Verdict.NOTICED), said
