"""A step is wholly in or not at all: errors at every write, power cuts, and processes that are killed."""

from __future__ import annotations

import errno
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from out_of_core import create, digest, node_options, train

from catchment.checkout import ROOT
from catchment.host import _optimizer
from catchment.host.optimizer import DynamicLossScale, NodeOptions
from catchment.host.optimizer.store import Store, StoreError, StoreOptions
from catchment.host.optimizer.store.check import check
from catchment.host.optimizer.streaming import Clip, StreamingOptions

STEPS = 5
SECTOR = 512


@dataclass(frozen=True)
class Template:
    """A new store, and what an uninterrupted training makes of it."""

    places: list[Path]
    streaming: StreamingOptions
    digest: str
    options: NodeOptions | None = None
    half: bool = False

    def train(self, store: Store, steps: int = STEPS, **how: Any) -> None:
        train(store, steps, streaming=self.streaming, options=self.options, half=self.half, **how)

    def copy(self, folder: Path) -> list[Path]:
        folder.mkdir(parents=True)
        return [Path(shutil.copy(place, folder / place.name)) for place in self.places]


def _make(folder: Path, streaming: StreamingOptions, **how: Any) -> Template:
    places = [folder / "new" / f"device{index}" for index in range(2)]
    places[0].parent.mkdir()
    create(places).close()
    made = Template(places, streaming, "", **how)
    with Store.open(made.copy(folder / "whole")) as store:
        made.train(store)
        return replace(made, digest=digest(store))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return _make(tmp_path_factory.mktemp("template"), StreamingOptions(snapshot_every=2, keep=1))


@pytest.fixture(scope="module")
def clipping(tmp_path_factory: pytest.TempPathFactory) -> Template:
    return _make(tmp_path_factory.mktemp("clipping"), StreamingOptions(commit_every=2, clip=Clip(3.0)))


@pytest.fixture(scope="module")
def scaled(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Steps that overflow after some layers were updated; every second one is committed."""
    options = replace(node_options(), loss_scale=DynamicLossScale(2.0**15, growth=2))
    return _make(tmp_path_factory.mktemp("scaled"), StreamingOptions(commit_every=2), options=options, half=True)


def _goes_on_to_the_same_bits(places: list[Path], template: Template, least: int = 0) -> int:
    """Open after a crash: nothing is damaged, at least `least` steps are in, and the end is the same."""
    with Store.open(places) as store:
        found = store.state.trained
        assert found >= least
        assert check(store) == []
        template.train(store)
        assert digest(store) == template.digest
    return found


def _boundaries(template: Template, folder: Path) -> int:
    counting = _optimizer.Faults()
    with Store.open(template.copy(folder), StoreOptions(faults=counting)) as store:
        template.train(store)
    return counting.seen


def _fail_at(template: Template, folder: Path, boundary: int, torn: bool) -> int:
    places = template.copy(folder)
    faults = _optimizer.Faults(after=boundary, error=errno.EIO, torn=torn)
    done: list[int] = []
    with (
        Store.open(places, StoreOptions(faults=faults)) as store,
        pytest.raises(StoreError, match="Input/output error") as caught,
    ):
        template.train(store, on_pass=lambda record: done.append(record.index))
    assert caught.value.kind == "device"
    assert str(folder) in caught.value.path
    # a pass is reported when it is updated, which waits for the commit before it
    every = template.streaming.commit_every
    return _goes_on_to_the_same_bits(places, template, least=(len(done) - 1) // every * every if done else 0)


def _one_of_each(parts: int, count: int, rng: random.Random) -> list[int]:
    """A number out of each of so many equal parts of range(count), rising."""
    return [rng.randrange(count * part // parts, count * (part + 1) // parts) for part in range(parts)]


def test_an_error_at_some_boundaries(template: Template, tmp_path: Path, rng: random.Random) -> None:
    count = _boundaries(template, tmp_path / "count")
    assert count > 100
    chosen = _one_of_each(12, count, rng)
    found = {at: _fail_at(template, tmp_path / str(at), at, rng.random() < 0.5) for at in chosen}
    # the devices work at once, and which of two operations is counted first is theirs
    assert all(found[one] <= found[other] for one in chosen for other in chosen if other > one + 8)
    assert len(set(found.values())) > 2


def test_an_error_while_gradients_wait_for_their_norm(clipping: Template, tmp_path: Path, rng: random.Random) -> None:
    for at in rng.sample(range(_boundaries(clipping, tmp_path / "count")), 6):
        _fail_at(clipping, tmp_path / str(at), at, rng.random() < 0.5)


def test_an_error_among_steps_that_overflow(scaled: Template, tmp_path: Path, rng: random.Random) -> None:
    for at in rng.sample(range(_boundaries(scaled, tmp_path / "count")), 6):
        _fail_at(scaled, tmp_path / str(at), at, rng.random() < 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("torn", [False, True])
def test_an_error_at_every_boundary(template: Template, tmp_path: Path, torn: bool) -> None:
    for at in range(_boundaries(template, tmp_path / "count")):
        _fail_at(template, tmp_path / str(at), at, torn)
        shutil.rmtree(tmp_path / str(at))


# ---- power cuts: what was not synced may be lost, whole or in part, in any order -----------------

RECORD = struct.Struct("<IIQQQ")
WRITE, SYNC, DONE = 1, 2, 3


@dataclass
class Event:
    """One record of the log that host/optimizer/native/faults.cpp keeps."""

    device: int
    kind: int
    id: int
    offset: int
    data: bytes


def _read_log(path: Path) -> list[Event]:
    raw, at, events = path.read_bytes(), 0, []
    while at < len(raw):
        device, kind, number, offset, length = RECORD.unpack_from(raw, at)
        at += RECORD.size
        size = length if kind == WRITE else 0
        events.append(Event(device, kind, number, offset, raw[at : at + size]))
        at += size
    return events


def _cut(places: list[Path], events: list[Event], rng: random.Random) -> None:
    """Bring the files into a state in which a power cut after `events` may leave them."""
    for device, place in enumerate(places):
        own = [event for event in events if event.device == device]
        done: set[int] = set()  # operations done so far
        covered: dict[int, set[int]] = {}  # a sync in flight -> the writes that it covers
        safe: set[int] = set()
        for event in own:
            if event.kind == SYNC:
                covered[event.id] = set(done)
            elif event.kind == DONE:
                safe |= covered.get(event.id, set())
                done.add(event.id)
        with place.open("r+b") as file:
            for event in own:
                if event.kind != WRITE:
                    continue
                fate = "all" if event.id in safe else rng.choice(["all", "none", "some"])
                for start in range(0, len(event.data), SECTOR):
                    if fate == "all" or (fate == "some" and rng.random() < 0.5):
                        file.seek(event.offset + start)
                        file.write(event.data[start : start + SECTOR])


def _log_of_a_training(template: Template, folder: Path) -> tuple[list[Event], list[int]]:
    """All that reached the devices, and after which event each commit had returned."""
    log = folder.parent / f"{folder.name}.log"
    ends: list[int] = []
    faults = _optimizer.Faults(log=str(log))
    with Store.open(template.copy(folder), StoreOptions(faults=faults)) as store:
        for step in range(1, STEPS + 1):
            template.train(store, step)
            ends.append(len(_read_log(log)))
    return _read_log(log), ends


def _power_cuts(template: Template, folder: Path, rng: random.Random, cuts: int) -> None:
    events, ends = _log_of_a_training(template, folder / "whole")
    kept = set()
    for number, at in enumerate(_one_of_each(cuts, len(events) + 1, rng)):
        places = template.copy(folder / str(number))
        _cut(places, events[:at], rng)
        kept.add(_goes_on_to_the_same_bits(places, template, least=sum(end <= at for end in ends)))
        shutil.rmtree(folder / str(number))
    assert len(kept) > 2


def test_power_cuts(template: Template, tmp_path: Path, rng: random.Random) -> None:
    _power_cuts(template, tmp_path, rng, 12)


@pytest.mark.slow
def test_many_power_cuts(template: Template, tmp_path: Path, rng: random.Random) -> None:
    _power_cuts(template, tmp_path, rng, 400)


def test_without_the_sync_before_the_record_a_power_cut_is_noticed(
    template: Template, tmp_path: Path, rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checker can fail: a store that does not sync its data loses steps that it had committed."""
    monkeypatch.setattr(Store, "_sync", lambda _store: None)
    events, ends = _log_of_a_training(template, tmp_path / "whole")
    monkeypatch.undo()
    caught = 0
    for number, at in enumerate(ends):
        places = template.copy(tmp_path / str(number))
        _cut(places, events[:at], rng)
        try:
            _goes_on_to_the_same_bits(places, template, least=number + 1)
        except (AssertionError, StoreError):
            caught += 1
    assert caught


def test_a_power_cut_while_a_store_is_made(tmp_path: Path, rng: random.Random) -> None:
    whole, log = [tmp_path / "a", tmp_path / "b"], tmp_path / "log"
    create(whole, faults=_optimizer.Faults(log=str(log))).close()
    sizes = [place.stat().st_size for place in whole]
    events = _read_log(log)
    outcomes = set()
    # before the last event nothing may be there, and at the end all is
    for number, at in enumerate([*_one_of_each(12, len(events), rng), *[len(events)] * 4]):
        places = [tmp_path / f"{number}-{place.name}" for place in whole]
        for place, size in zip(places, sizes, strict=True):
            place.touch()
            os.truncate(place, size)
        _cut(places, events[:at], rng)
        try:
            with Store.open(places) as store:
                assert check(store) == []
                outcomes.add("there")
        except StoreError as error:
            outcomes.add(error.kind)
    assert outcomes <= {"there", "missing", "corrupt"}
    assert "missing" in outcomes


# ---- processes that are killed -------------------------------------------------------------------


def _killed_until_done(
    template: Template, folder: Path, when: Callable[[int], tuple[int, int | None]], kills: int
) -> int:
    """Run the training as a process, killed `kills` times; `when(n)` gives KILL_AT and after how many lines to kill."""
    places = template.copy(folder)
    killed = 0
    for number in range(kills + 1):
        kill_at, lines = when(number) if number < kills else (-1, None)
        program = Path(__file__).with_name("out_of_core.py")
        # It cannot come to its end before it is killed, however late the signal.
        said = -1 if lines is None else lines
        command = [sys.executable, str(program), str(STEPS), str(kill_at), str(said), *map(str, places)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=_environment()
        ) as process:
            assert process.stdout is not None
            heard = []
            for line in process.stdout:
                heard.append(line.split())
                if lines is not None and len(heard) == lines:
                    process.send_signal(signal.SIGKILL)
            code = process.wait(120)
        killed += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL), heard
        if heard[-1][0] == "done":
            assert heard[-1][1] == template.digest
    assert heard[-1] == ["done", template.digest]
    return killed


def _environment() -> dict[str, str]:
    root = str(ROOT)
    return {**os.environ, "PYTHONPATH": root, "OMP_NUM_THREADS": "1"}


@pytest.mark.sampled(4)
def test_killed_processes_go_on(template: Template, tmp_path: Path, rng: random.Random) -> None:
    # one kills itself in the middle of a write, one is killed from outside right after a pass was reported
    killed = _killed_until_done(
        template, tmp_path / "s", lambda n: (rng.randrange(10, 40), None) if n == 0 else (-1, rng.randrange(1, 3)), 2
    )
    assert killed == 2


@pytest.mark.slow
@pytest.mark.parametrize("_round", range(4))
def test_killed_again_and_again(template: Template, tmp_path: Path, rng: random.Random, _round: int) -> None:
    _killed_until_done(
        template,
        tmp_path / "s",
        lambda _n: rng.choice([(rng.randrange(60), None), (-1, rng.randrange(1, 5))]),
        6,
    )
