"""Networks under test: one per target and shape, shared by the tests of a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from controlled import ControlledLab
from lab import Lab, missing_tools
from shapes import LANES, PROGRAM, SLOTS_PROGRAM, WORKERS, unique
from verbs import Catchment, verbs

from catchment.controlplane.topology import Target, racks, star


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.e2e)


@pytest.fixture(scope="session", params=list(Target))
def target(request: pytest.FixtureRequest) -> Target:
    """Each target that TARGET allows and the machine has."""
    chosen = Target(request.param)
    only = os.environ.get("CATCHMENT_TARGET")
    if only and only != chosen:
        pytest.skip(f"CATCHMENT_TARGET={only}")
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if reason := missing_tools(chosen):
        pytest.skip(reason)
    return chosen


@pytest.fixture
def catchment(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Catchment]:
    """The command, for a network whose `name` is a fixture of the test's file."""
    with verbs(tmp_path, name, monkeypatch) as call:
        yield call


@pytest.fixture(scope="session")
def _labs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, Target], Lab]]:
    with ExitStack() as exits:
        up: dict[tuple[str, Target], Lab] = {}

        def lab(shape: str, target: Target) -> Lab:
            if (shape, target) not in up:
                lanes = LANES[target]
                topology = {
                    "star": lambda: star([*WORKERS, "opt", "out"], program=PROGRAM, target=target, lanes=lanes),
                    "slots": lambda: star(WORKERS, program=SLOTS_PROGRAM, target=target, lanes=8),
                    "racks": lambda: racks(
                        [WORKERS[:2], WORKERS[2:4]], ["opt"], program=PROGRAM, target=target, lanes=lanes
                    ),
                }[shape]()
                folder = tmp_path_factory.mktemp(f"{shape}-{target}")
                up[shape, target] = exits.enter_context(Lab(unique(topology, shape, target), folder))
            return up[shape, target]

        yield lab


@pytest.fixture
def lab(_labs: Callable[[str, Target], Lab], target: Target) -> Lab:
    """One switch with eight workers, an optimizer node and a host that is in no job."""
    return _labs("star", target)


@pytest.fixture
def slots_lab(_labs: Callable[[str, Target], Lab], target: Target) -> Lab:
    """One switch with p4sgd.p4 and eight workers."""
    return _labs("slots", target)


@pytest.fixture
def tree(_labs: Callable[[str, Target], Lab], target: Target) -> Lab:
    """Two racks of two workers under a spine with the optimizer node."""
    return _labs("racks", target)


@pytest.fixture
def own_lab(target: Target, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Lab]:
    """A network of its own, for tests that break things: two workers and an optimizer node."""
    topology = star(["w0", "w1", "opt"], program=PROGRAM, target=target, lanes=LANES[target])
    with Lab(unique(topology, f"own-{abs(hash(request.node.name)) % 10000}", target), tmp_path) as own:
        yield own


@pytest.fixture(scope="session")
def controlled(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlledLab]:
    """Two racks under a spine that a controller keeps; tests kill parts of it, and the controller puts them right."""
    topology = racks([WORKERS[:2], WORKERS[2:4]], ["opt"], program=PROGRAM, target=target, lanes=LANES[target])
    folder = tmp_path_factory.mktemp(f"controlled-{target}")
    with ControlledLab(unique(topology, "controlled", target), folder) as lab:
        yield lab
