"""One of several optimizer nodes is lost while the others live: all go back to one step, and on to the same bits."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from catchment.demo import TrainingOptions
from catchment.host import EndpointError
from catchment.host.optimizer.store import Store
from catchment.host.optimizer.store.check import check
from catchment.host.optimizer.store.group_commit import GroupFolder
from catchment.sim.lab import events
from catchment.sim.lab.memory_switch import MemoryPort, MemorySwitch
from catchment.sim.training.root import collect, initial_layers, serve
from catchment.sim.training.worker import prepare, train

STEPS, ROOTS, WORKERS = 8, 2, 2

pytestmark = pytest.mark.usefixtures("one_thread")


class _Port:
    """A port that tells of each transfer before it begins."""

    def __init__(self, port: MemoryPort, begin: Callable[[], None]) -> None:
        self._port, self._begin = port, begin

    def push(self, array: Any, exponent: int | None = None) -> Any:
        self._begin()
        return self._port.push(array, exponent)

    def pull(self, array: Any) -> Any:
        self._begin()
        return self._port.pull(array)


class _Epoch:
    """The fabrics of one epoch. It is over after so many transfers, for everybody at once."""

    def __init__(self, transfers: int | None) -> None:
        self.fabrics = [MemorySwitch(WORKERS) for _ in range(ROOTS)]
        self._left = transfers
        self._lock = threading.Lock()
        self.begun = 0

    def port(self, root: int, wid: int | None) -> _Port:
        fabric = self.fabrics[root]
        return _Port(fabric.root() if wid is None else fabric.worker(wid), self._begin)

    def _begin(self) -> None:
        with self._lock:
            self.begun += 1
            over = self.begun == self._left
        if over:
            for fabric in self.fabrics:
                fabric.fail(EndpointError("the generations were replaced", kind="closed"))


class _Training:
    """The demo's workers and optimizer nodes in threads; each loss of an epoch sends all of them into the next."""

    def __init__(self, options: TrainingOptions, epochs: list[int]) -> None:
        self.options = options
        self.epochs = [_Epoch(transfers) for transfers in epochs] + [_Epoch(None)]
        self.losses: dict[tuple[int, int], set[float]] = {}
        self.steps: list[set[int]] = [set() for _ in self.epochs]
        self.failures: list[BaseException] = []

    def run(self) -> str:
        threads = [threading.Thread(target=self._play, args=(self._root(root),)) for root in range(ROOTS)]
        threads += [threading.Thread(target=self._play, args=(self._worker(wid),)) for wid in range(WORKERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
        return collect(self.options)

    def _play(self, part: Callable[[_Epoch, int], None]) -> None:
        for number, epoch in enumerate(self.epochs):
            try:
                part(epoch, number)
            except EndpointError:
                continue
            except BaseException as failure:
                self.failures.append(failure)
                for other in self.epochs:
                    for fabric in other.fabrics:
                        fabric.fail(EndpointError("the test has failed", kind="closed"))
            return

    def _root(self, root: int) -> Callable[[_Epoch, int], None]:
        initial = initial_layers(self.options)

        def part(epoch: _Epoch, number: int) -> None:
            def tell(event: str, **facts: Any) -> None:
                if event == events.REJOINED:
                    self.steps[number].add(facts["trained"])

            serve(self.options, initial, epoch.port(root, None), tell, root, rejoin=number > 0)  # type: ignore[arg-type]

        return part

    def _worker(self, wid: int) -> Callable[[_Epoch, int], None]:
        prepared = prepare(self.options, wid)

        def tell(event: str, **facts: Any) -> None:
            if event == events.PASS:
                self.losses.setdefault((facts["index"], wid), set()).add(facts["loss"])

        def part(epoch: _Epoch, _number: int) -> None:
            train(self.options, prepared, [epoch.port(root, wid) for root in range(ROOTS)], tell)  # type: ignore[misc]

        return part


def _options(output: Path) -> TrainingOptions:
    output.mkdir()
    return TrainingOptions(
        workers=WORKERS, roots=ROOTS, preset="tiny", steps=STEPS, batch=2, evaluate=2, lanes=64, out_of_core=True,
        output=output,
    )  # fmt: skip


def test_members_that_live_go_back_to_one_step_and_on_to_the_same_bits(tmp_path: Path, rng: random.Random) -> None:
    undisturbed = _Training(_options(tmp_path / "whole"), [])
    digest = undisturbed.run()
    transfers = undisturbed.epochs[0].begun
    # In the last one there are two steps left at least, a quarter of all transfers: nobody has finished when it ends.
    losses = [rng.randrange(1, transfers // 2), rng.randrange(1, transfers // 3), rng.randrange(1, transfers // 8)]
    print(f"epochs end after {losses} transfers of {transfers}")
    disturbed = _Training(_options(tmp_path / "disturbed"), losses)
    assert disturbed.run() == digest
    assert disturbed.losses == undisturbed.losses, "also what ran twice had the same bits both times"
    for steps in disturbed.steps[1:]:
        assert len(steps) <= 1, "all went back to the same step"
    options = disturbed.options
    assert options.group_folder is not None
    record = GroupFolder(options.group_folder).record()
    assert record is not None
    assert record.step == STEPS
    for root in range(ROOTS):
        with Store.open(options.store_places(root)) as store:
            assert store.state.trained == STEPS
            assert check(store) == []


def test_a_loss_before_the_first_snapshot_begins_anew(tmp_path: Path, rng: random.Random) -> None:
    whole = _Training(replace(_options(tmp_path / "whole"), evaluate=STEPS), [])
    digest = whole.run()
    options = replace(_options(tmp_path / "early"), evaluate=STEPS)
    early = _Training(options, [1, rng.randrange(2, whole.epochs[0].begun // 2)])
    assert early.run() == digest
    assert early.steps[2] in ({0}, set())
