"""Trainings on C++ workers in processes of their own, which a P4 switch adds up for."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from catchment.controlplane.errors import ControlPlaneError
from catchment.host.glm import Epoch, GlmError, Parallel, Prepared
from catchment.sim.glm.labs import Lab, LabKind, open_lab
from catchment.sim.glm.member import EPOCH, PROGRESS
from catchment.sim.glm.task import Task, write_share
from catchment.sim.lab.crew import Crew
from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import ProcessMember, module_command
from catchment.wire.generated.constants import HEADER_BYTES, IPV4_BYTES, LANE_BYTES, SUPPORTED_LANES, UDP_BYTES

_SILENCE = 300.0
"""Seconds without news from any worker after which a training has failed; they tell of progress all the time."""
_START = 600.0
"""Seconds until all workers must have loaded their shares; one that ends is heard of at once."""
_SPIN = 200e-6
_MTU = 1500
"""The largest packet of the labs' links, in bytes."""
_MOST_LANES = max(n for n in SUPPORTED_LANES if IPV4_BYTES + UDP_BYTES + HEADER_BYTES + n * LANE_BYTES <= _MTU)

OnProgress = Callable[[float], None]


class NetworkRunner:
    """Workers `w0`.. on a switch that runs p4sgd.p4.

    Args:
        lab: MININET or SHM.
        loss: share of frames that the switch loses on purpose.
        faults: of the switch's ports, with MININET: "dup=0.01,reorder=0.05" (docs/explanation/ports.md).
        timeout: seconds without any sum after which a worker gives up.
        on_progress: hears what share of the training is done.
    """

    def __init__(
        self,
        lab: LabKind,
        *,
        loss: float = 0.0,
        faults: str = "",
        timeout: float = 120.0,
        on_progress: OnProgress | None = None,
    ) -> None:
        self._kind = lab
        self._loss = loss
        self._faults = faults
        self._timeout = timeout
        self._on_progress = on_progress

    def run(self, prepared: Prepared, on_epoch: Callable[[Epoch], None]) -> None:
        """Run a training; `on_epoch` hears of each epoch."""
        training = prepared.training
        lanes = min(SUPPORTED_LANES) if training.parallel == Parallel.MODEL else _MOST_LANES
        try:
            with ExitStack() as exits:
                folder = Path(exits.enter_context(TemporaryDirectory(prefix="catchment-glm-")))
                lab = exits.enter_context(
                    open_lab(
                        self._kind, training.workers, lanes=lanes, loss=self._loss, faults=self._faults, logs=folder
                    )
                )
                try:
                    self._train(prepared, lab, folder, on_epoch)
                except LabError as error:
                    # Workers only know that nothing moves.
                    raise GlmError("; ".join(filter(None, (lab.trouble(), str(error))))) from error
        except (LabError, ControlPlaneError) as error:
            raise GlmError(str(error)) from error

    def _train(self, prepared: Prepared, lab: Lab, folder: Path, on_epoch: Callable[[Epoch], None]) -> None:
        with Crew(start_timeout=_START, silence=max(_SILENCE, 2 * self._timeout)) as crew:
            tasks = [self._task(prepared, lab, wid, folder) for wid in range(prepared.training.workers)]
            for task in tasks:
                crew.add(self._start(lab, task, crew, folder))
            crew.run(_Collector(prepared, tasks, on_epoch, self._on_progress).hear)

    def _task(self, prepared: Prepared, lab: Lab, wid: int, folder: Path) -> Task:
        training = prepared.training
        share = folder / f"share-{wid}.npz"
        write_share(prepared, wid, share)
        oversubscribed = training.workers + 1 > len(os.sched_getaffinity(0))
        return Task(
            wid=wid,
            description=lab.description(wid),
            port=lab.port(wid),
            share=str(share),
            weights=str(folder),
            loss=training.loss.value,
            bits=training.bits,
            batch=training.batch,
            fraction=training.fraction,
            micro_batch=training.micro_batch,
            parallel=training.parallel.value,
            steps=tuple((step.multiplier, step.shift) for step in prepared.steps),
            timeout=self._timeout,
            spin=0.0 if oversubscribed else _SPIN,
        )

    def _start(self, lab: Lab, task: Task, crew: Crew, folder: Path) -> ProcessMember:
        path = folder / f"task-{task.wid}.json"
        task.write(path)
        name = f"w{task.wid}"
        command = module_command("catchment.sim.glm.member", (str(path),), folder / f"{name}.log")
        return ProcessMember(name, command, lambda argv, **options: lab.popen(task.wid, argv, **options), crew.deliver)


class _Collector:
    """Makes epochs of what the workers tell: one is done when all have reported it."""

    def __init__(
        self,
        prepared: Prepared,
        tasks: list[Task],
        on_epoch: Callable[[Epoch], None],
        on_progress: OnProgress | None,
    ) -> None:
        self._prepared = prepared
        self._tasks = tasks
        self._on_epoch = on_epoch
        self._on_progress = on_progress
        self._reports: dict[int, list[dict[str, Any]]] = {}
        self._before = {"sums": 0, "sum_seconds": 0.0, "resent": 0}

    def hear(self, name: str, event: dict[str, Any]) -> None:
        """An event of a worker."""
        if event["event"] == PROGRESS:
            if name == "w0" and self._on_progress is not None:
                self._on_progress(event["done"] / event["of"])
        elif event["event"] == EPOCH:
            reports = self._reports.setdefault(event["epoch"], [])
            reports.append(event)
            if len(reports) == len(self._tasks):
                self._on_epoch(self._epoch(event["epoch"], self._reports.pop(event["epoch"])))

    def _epoch(self, number: int, reports: list[dict[str, Any]]) -> Epoch:
        parts = []
        for task in self._tasks:
            path = task.weights_after(number)
            parts.append(np.load(path, allow_pickle=False))
            path.unlink()
        data_parallel = self._prepared.training.parallel == Parallel.DATA
        totals = {key: sum(event[key] for event in reports) for key in self._before}
        new = {key: totals[key] - before for key, before in self._before.items()}
        self._before = totals
        facts = {
            "all_reduces": new["sums"] // len(reports),
            "all_reduce_seconds": new["sum_seconds"] / max(1, new["sums"]),
            "retransmissions": new["resent"],
        }
        return Epoch(
            parts[0] if data_parallel else np.concatenate(parts),
            max(event["seconds"] for event in reports),
            sum(event["saturated"] for event in reports),
            facts,
        )
