"""The file that says which controller runs: who looks for one disturbs no start, and reads all of it or nothing."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from catchment.controlplane.controller import presence
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.controller.presence import PresenceFile, read, wait_for

SHORT, LONG = ("unix:/s",), tuple(f"unix:/a/longer/path/{number}" for number in range(40))


class Clock:
    """Time that passes only while somebody sleeps, and what happens then."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.events: list[object] = []
        clock = SimpleNamespace(monotonic=lambda: self.now, sleep=self._sleep)
        monkeypatch.setattr(presence, "time", clock, raising=False)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.events:
            os.close(self.events.pop())  # type: ignore[arg-type]


def reading(folder: Path) -> int:
    """A look at the file that is not over yet."""
    handle = os.open(folder / "lab.controller.json", os.O_RDONLY | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    return handle


def test_who_looks_for_a_controller_keeps_none_from_starting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    clock.events = [reading(tmp_path), reading(tmp_path)]
    with PresenceFile(tmp_path, "lab") as mine:
        mine.announce(SHORT, tmp_path)
        found = read(tmp_path, "lab")
        assert found is not None and found.addresses == SHORT
    assert read(tmp_path, "lab") is None


def test_a_second_controller_is_refused_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    with PresenceFile(tmp_path, "lab") as mine:
        mine.announce(SHORT, tmp_path)
        with (
            pytest.raises(ControllerError, match=rf"lab runs already \(process {os.getpid()}\)"),
            PresenceFile(tmp_path, "lab"),
        ):
            pass
    assert clock.now == 0.0


def test_a_controller_that_starts_is_one_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has announced nothing yet, and so cannot be told from somebody who looks; in the end it counts."""
    clock = Clock(monkeypatch)
    with (
        PresenceFile(tmp_path, "lab"),
        pytest.raises(ControllerError, match="lab runs already; end it first"),
        PresenceFile(tmp_path, "lab"),
    ):
        pass
    assert 0.0 < clock.now < 5.0


def test_a_controller_that_starts_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has read the jobs already: what a command did to them meanwhile it would not know."""
    Clock(monkeypatch)
    assert wait_for(tmp_path, "lab", patience=2.0) is None
    with PresenceFile(tmp_path, "lab") as killed:
        killed.announce(LONG, tmp_path)
        text = (tmp_path / "lab.controller.json").read_bytes()
    (tmp_path / "lab.controller.json").write_bytes(text)
    assert wait_for(tmp_path, "lab", patience=2.0) is None
    with PresenceFile(tmp_path, "lab") as mine:
        with pytest.raises(ControllerError, match="a controller of lab has been starting for 2 s"):
            wait_for(tmp_path, "lab", patience=2.0)
        monkeypatch.setattr(presence.time, "sleep", lambda _: mine.announce(SHORT, tmp_path))
        found = wait_for(tmp_path, "lab", patience=2.0)
        assert found is not None and found.addresses == SHORT
    assert wait_for(tmp_path, "lab", patience=2.0) is None


def test_an_announcement_is_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the text of an earlier controller, which was killed, is longer: before and after each step."""
    seen: list[tuple[str, ...] | None] = []

    def look() -> None:
        found = read(tmp_path, "lab")
        seen.append(None if found is None else found.addresses)

    def watch(name: str) -> None:
        real = getattr(os, name)

        def step(*arguments: object) -> object:
            look()
            done = real(*arguments)
            look()
            return done

        monkeypatch.setattr(os, name, step)

    with PresenceFile(tmp_path, "lab") as mine:
        mine.announce(LONG, tmp_path)
        watch("pwrite")
        watch("ftruncate")
        mine.announce(SHORT, tmp_path)
        assert seen == [LONG, SHORT, SHORT, SHORT]
        assert (tmp_path / "lab.controller.json").read_text("utf-8").endswith("}")
        monkeypatch.undo()
