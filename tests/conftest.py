"""Shared by every test: one seed for all random input, printed so that a failure can be repeated."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from importlib import metadata
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from catchment.checkout import ROOT

sys.path.insert(0, str(Path(__file__).parent / "selection"))

import quick
import sampling
import tiers
import verdicts

SEED = int(os.environ.get("CATCHMENT_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 32)
# The processes of a parallel run inherit it: all of them must collect the same tests.
os.environ["CATCHMENT_SEED"] = str(SEED)


# Half of the runs leave the program to the switch's process, where otherwise who has a frame runs it.
if SEED % 2:
    os.environ.setdefault("CATCHMENT_IN_CALLERS", "0")

# A shell starts background jobs with SIGINT ignored, and every child inherits that; tests of Ctrl-C need it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# So does nohup with SIGHUP. A signal that is handled is not ignored in what tests start, and does not end this process.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


# What a hypothesis test needs of time depends on the machine, and fails nothing.
settings.register_profile("catchment", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("catchment")


def _stale_packages() -> list[str]:
    """Packages of the environment that are not as requirements.txt pins them."""
    pins = (line.split("==") for line in (ROOT / "requirements.txt").read_text().split() if "==" in line)
    wrong = []
    for name, wanted in pins:
        try:
            found = metadata.version(name)
        except metadata.PackageNotFoundError:
            found = "none"
        if found.partition("+")[0] != wanted:
            wrong.append(f"{name} {found}, not {wanted}")
    return wrong


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Old packages end the run; hypothesis draws from the run's seed, too, unless --hypothesis-seed gives another."""
    if stale := _stale_packages():
        raise pytest.UsageError(f"requirements.txt has changed, run `make setup`: {'; '.join(stale)}")
    if config.getoption("--hypothesis-seed", None) is None:
        config.option.hypothesis_seed = str(SEED)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """What collection makes lives to the end of the run: the garbage collector never looks at it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_itemcollected(item: pytest.Item) -> None:
    """The tests of `make check` have its mark; long ones that this run does not draw are slow."""
    if quick.is_quick(item.path.relative_to(Path(__file__).parent).as_posix()):
        item.add_marker(pytest.mark.check)
    sampling.leave_to_the_long_run(item, SEED)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Side by side, quick files come last: they fill up the end of the run, where a long one would keep all waiting.

    The files of a folder are spread, since they compete for the same things.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: (item.get_closest_marker("check") is not None, crc32(item.path.name.encode())))


@pytest.fixture(autouse=True)
def _a_quick_test_starts_no_process(request: pytest.FixtureRequest) -> Iterator[None]:
    with quick.guard() if request.node.get_closest_marker("check") else nullcontext():
        yield


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """A test of the sources alone is not run again over sources that it has passed over."""
    return True if verdicts.is_known(pyfuncitem) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """What has passed is kept."""
    report: pytest.TestReport = yield  # type: ignore[misc]
    verdicts.note(item, report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How long the tests of each tier took, and how many tests were not run again."""
    reports = (one for found in terminalreporter.stats.values() for one in found if isinstance(one, pytest.TestReport))
    for line in tiers.times(reports):
        terminalreporter.line(line)
    if known := verdicts.known(terminalreporter.stats.get("passed", [])):
        terminalreporter.line(f"{known} passed before over the same sources and were not run again (CATCHMENT_FRESH=1)")


def _surroundings() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if name.startswith("CATCHMENT_")}
    return {**ours, "PATH": os.environ.get("PATH", ""), "the current folder": str(Path.cwd())}


@pytest.fixture(autouse=True)
def _leaves_its_surroundings_alone() -> Iterator[None]:
    """A test that changes our variables or the folder for those behind it fails itself."""
    before = _surroundings()
    yield
    after = _surroundings()
    changed = sorted(name for name in before | after if before.get(name) != after.get(name))
    assert not changed, f"changed and not put back: {', '.join(changed)}"


def pytest_report_header() -> str:
    return f"catchment: CATCHMENT_SEED={SEED}"


@pytest.fixture
def seed() -> int:
    """The run's seed; derive every random generator of a test from it."""
    return SEED


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """A generator that differs for each test and repeats for the same seed."""
    return random.Random(f"{seed}:{request.node.nodeid}")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """PyTorch computes in one thread while a module's tests run: sums come in the same order on every machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
