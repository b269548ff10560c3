"""Which network `net down` and `net exec` are about, where several are up or left over."""

from __future__ import annotations

import errno
import os
import select
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from command_lab import Run

from catchment.controlplane.controller import run as controller_run
from catchment.controlplane.controller.settings import Settings
from catchment.controlplane.networks.state import NetworkError, NetworkState, StateFile, known_networks, networks_up
from catchment.sim.lab.mininet import claim, leftovers
from catchment.sim.lab.mininet.claim import Claim
from catchment.sim.lab.mininet.naming import ENVIRONMENT_MARK

Up = Callable[..., StateFile]

_TOPOLOGY = """\
name: {name}
switches:
  s1: {{program: luwu.p4, ip: 10.0.0.254, mac: 02:00:00:00:fe:01}}
hosts:
  w0: {{ip: 10.0.0.1/24, mac: 02:00:00:00:00:01, link: s1:1}}
"""


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Up]:
    """A network that is up, held by this process: `up(NAME, HOST=PID...)`."""
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    monkeypatch.delenv("CATCHMENT_TOPOLOGY", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(claim, "_SCOPE", f"catchment-test-{os.getpid()}-")  # networks of these names may be up
    monkeypatch.setattr(leftovers, "remove_leftovers", lambda _: [])
    with ExitStack() as held:

        def up(name: str, **hosts: int) -> StateFile:
            file = StateFile.acquire(name)
            held.callback(file.release)
            (tmp_path / f"{name}.yaml").write_text(_TOPOLOGY.format(name=name))
            file.write(NetworkState(name, os.getpid(), str(tmp_path / f"{name}.yaml"), hosts=hosts, ready=True))
            return file

        yield up


@pytest.fixture
def left_over(up: Up, tmp_path: Path) -> Callable[[str], None]:
    """A network whose owner was killed."""

    def left_over(name: str) -> None:
        (tmp_path / f"{name}.json").write_text("{}")

    return left_over


def test_the_only_network_that_is_up_goes_down_beside_dead_ones(
    call: Run, up: Up, left_over: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = up("lab")
    for name in ("dead", "old"):
        left_over(name)
    monkeypatch.setattr(os, "kill", lambda pid, _: lab.release() if pid == os.getpid() else None)
    assert call("net", "down") == "network lab is down\n"
    assert known_networks() == ["dead", "old"]
    assert "say which network: dead, old" in call("net", "down", code=1)
    assert "network old was not up" in call("net", "down", "old")
    assert "network dead was not up" in call("net", "down"), "the only one that is left over"
    assert "say which network: none is up or left over" in call("net", "down", code=1)


@pytest.mark.parametrize(
    ("folder", "why"),
    [("file", "it is no folder"), ("file/below", "Not a directory"), ("full", "Disk quota exceeded")],
)
@pytest.mark.parametrize("verb", ["net up", "net up --detach"])
def test_a_run_folder_that_cannot_be(  # noqa: PLR0917
    call: Run, up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, folder: str, why: str
) -> None:
    up("lab").release()  # writes the topology file
    (tmp_path / "file").touch()

    def quota(**_: object) -> None:
        raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))

    if folder == "full":
        monkeypatch.setattr(tempfile, "TemporaryFile", quota)
    monkeypatch.setattr("catchment.cli.net.programs_of", lambda _: {})
    monkeypatch.setattr("catchment.sim.lab.mininet.preflight.check", lambda: None)
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / folder))
    assert call(*verb.split(), str(tmp_path / "lab.yaml"), code=1) == (
        f"catchment: no network can be noted in {tmp_path / folder}: {why}; CATCHMENT_RUN_DIR=FOLDER names another "
        "folder\n"
    )


def test_a_state_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    (tmp_path / "lab.json").mkdir()
    with pytest.raises(NetworkError, match=f"no network can be noted in {tmp_path}: Is a directory; CATCHMENT_RUN_DIR"):
        StateFile.acquire("lab")


@pytest.mark.usefixtures("up")
def test_no_network_is_up_in_a_folder_that_cannot_be(
    call: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "file" / "below"))
    assert call("net", "down", "lab") == "network lab was not up, and left nothing behind\n"


def test_a_network_of_another_run_folder_does_not_go_down(
    call: Run, up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up("lab")
    with Claim.acquire("lab"):
        monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path / "other"))
        complaint = call("net", "down", "lab", code=1)
    assert f"run `CATCHMENT_RUN_DIR={tmp_path} catchment net down lab` first" in complaint
    monkeypatch.setenv("CATCHMENT_RUN_DIR", str(tmp_path))
    assert [state.name for state in networks_up()] == ["lab"]


def test_what_no_network_can_be_called_is_refused_before_a_file_is_sought(call: Run, up: Up) -> None:
    assert "'../x' is no name of a network" in call("net", "down", "../x", code=1)
    assert "it has 300 bytes, 250 at the most" in call("net", "down", 300 * "x", code=1)
    assert "was not up" in call("net", "down", 250 * "x")


def test_a_second_owner_leaves_the_first_ones_log(call: Run, up: Up, tmp_path: Path) -> None:
    up("lab")
    log = tmp_path / "lab.log"
    log.write_text("what the first one says\n")
    before = set(tmp_path.iterdir())
    call("net", "up", "-d", str(tmp_path / "lab.yaml"), code=1)
    assert log.read_text() == "what the first one says\n"
    assert set(tmp_path.iterdir()) == before


def test_a_start_that_is_interrupted_leaves_no_log_and_ends_the_owner(
    call: Run, up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up("lab").release()
    before = set(tmp_path.iterdir())
    ended: list[str] = []

    class Owner:
        def __init__(self, *_: object, **__: object) -> None:
            """Nothing starts."""

        def terminate(self) -> None:
            ended.append("lab")

    def interrupt(*_: object) -> None:
        assert set(tmp_path.iterdir()) != before, "the owner has a log"
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "Popen", Owner)
    monkeypatch.setattr(select, "select", interrupt)
    call("net", "up", "-d", str(tmp_path / "lab.yaml"), code=130)
    assert ended == ["lab"]
    assert set(tmp_path.iterdir()) == before


def test_the_log_goes_with_the_network(
    call: Run, up: Up, left_over: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody = 1 << 22  # the kernel gives out smaller numbers
    others = [tmp_path / name for name in ("lab.log.log", f"lab.log.{os.getpid()}", f"lab.{nobody}.log", "lab2.log")]
    for path in others:
        path.write_text("of another network, or of a start that is under way\n")
    log = tmp_path / "lab.log"
    lab = up("lab")
    monkeypatch.setattr(os, "kill", lambda *_: lab.release())
    log.write_text("network lab is up\nnetwork lab is down\n")
    assert call("net", "down") == "network lab is down\n"
    assert not log.exists()
    left_over("lab")
    log.write_text("network lab is up\ncatchment: switch s1 ended\x1b\n  the end of its log\n")
    start = tmp_path / f"lab.log.{nobody}"
    start.touch()
    assert call("net", "down", "lab").splitlines() == [
        rf"removed {log}, which says: catchment: switch s1 ended\x1b",
        f"removed {start}, which says: nothing",
        "network lab is down",
    ]
    assert not log.exists() and not start.exists()
    assert all(path.exists() for path in others)


def test_a_controller_belongs_to_the_network_that_is_up(
    call: Run, up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Settings] = []
    monkeypatch.setattr(controller_run, "run", lambda settings, started: told.append(settings))
    lab = up("lab")
    lab.write(NetworkState("lab", os.getpid(), str(tmp_path / "lab.yaml"), {"s1": "127.0.0.1:9"}, ready=True))
    call("controller", "run")
    life = told[0].network
    assert life is not None and life.name == "lab" and not life.is_over()
    lab.release()
    assert life.is_over()


def test_none_of_several_networks_goes_down_without_its_name(
    call: Run, up: Up, left_over: Callable[[str], None]
) -> None:
    for name in ("left", "right"):
        up(name)
    left_over("dead")
    assert "say which network: dead, left, right" in call("net", "down", code=1)
    assert [state.name for state in networks_up()] == ["left", "right"]


def test_a_host_that_several_networks_have_is_not_guessed(
    call: Run, up: Up, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    up("left", w0=11, w1=12)
    up("right", w0=21, w2=23)
    started: list[list[str]] = []
    marks: list[str] = []

    def run(_: str, words: list[str], environment: dict[str, str]) -> None:
        started.append(words)
        marks.append(environment[ENVIRONMENT_MARK])

    monkeypatch.setattr(os, "execvpe", run)
    complaint = call("net", "exec", "w0", "true", code=1)
    assert f"several networks are up: left ({tmp_path}/left.yaml), right ({tmp_path}/right.yaml)" in complaint
    assert "say which with --topology FILE" in complaint
    assert started == []
    for network, pid in (("left", "11"), ("right", "21")):
        call("net", "exec", "--topology", str(tmp_path / f"{network}.yaml"), "w0", "ip", "--topology", "x")
        assert started.pop() == ["mnexec", "-a", pid, "ip", "--topology", "x"]
        assert marks.pop() == network  # by which `net down` ends it
    call("net", "exec", "w2", "true")
    assert started.pop() == ["mnexec", "-a", "23", "true"], "one network alone has that host"
    assert "no host 'w9'; there are: w0, w1, w0, w2" in call("net", "exec", "w9", "true", code=1)
    topology = str(tmp_path / "left.yaml")
    assert "no host 'w2'; there are: w0, w1" in call("net", "exec", "-t", topology, "w2", "true", code=1)


def test_a_host_of_a_network_that_is_not_up_runs_nothing(call: Run, up: Up, tmp_path: Path) -> None:
    up("left", w0=11).release()
    up("right", w0=21)
    topology = str(tmp_path / "left.yaml")
    assert "network left is not up; start it with" in call("net", "exec", "-t", topology, "w0", "true", code=1)
