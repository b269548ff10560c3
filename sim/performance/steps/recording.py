"""Records a step of a real training under DistributedDataParallel as a trace, which simulations scale."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import TracebackType
from typing import Any, Self

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import GradBucket
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.steps.chakra import write_traces
from catchment.sim.performance.steps.graph import Builder, Collective, Trace


@dataclass(frozen=True, slots=True)
class _Mark:
    """A moment: a module's pass has ended, or a bucket of gradients of so many bytes is complete."""

    name: str
    at: float
    size: int = 0


class StepRecorder:
    """Records one step: forward and backward pass and the optimizer's step, while in its context.

    Gradients must be summed by DistributedDataParallel; its communication hook is taken, so give none of your own.
    What stands between two marks is computing: time in which this process waits for others is not (DDP waits after the
    last bucket).

        with StepRecorder(model, optimizer) as recorder:
            loss = criterion(model(inputs), labels); loss.backward(); optimizer.step()
        recorder.write(Path("et"))

    Args:
        model: whose step is recorded; it can be recorded once.
        optimizer: of it.
    """

    def __init__(self, model: DistributedDataParallel, optimizer: Optimizer) -> None:
        self._model, self._optimizer = model, optimizer
        self._forward: list[_Mark] = []
        self._buckets: list[_Mark] = []
        self._update: list[float] = []
        self._handles = ExitStack()
        self._recording = False
        # DDP takes one hook for good: it passes buckets on when nothing is recorded. DDP takes no annotations as text,
        # hence a function without any.
        model.register_comm_hook(None, lambda _state, bucket: self._on_bucket(bucket))

    def __enter__(self) -> Self:
        self._forward = [_Mark("start", perf_counter())]
        self._buckets, self._update = [], []
        leaves = [(name, module) for name, module in self._model.module.named_modules() if not list(module.children())]
        handles: list[Any] = [
            module.register_forward_hook(lambda *_, name=name: self._forward.append(_Mark(name, perf_counter())))
            for name, module in leaves
        ]
        handles += [
            self._optimizer.register_step_pre_hook(lambda *_: self._update.append(perf_counter())),
            self._optimizer.register_step_post_hook(lambda *_: self._update.append(perf_counter())),
        ]
        for handle in handles:
            self._handles.callback(handle.remove)
        self._recording = True
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        self._recording = False
        self._handles.close()

    def trace(self) -> Trace:
        """What this rank did.

        Raises:
            PerformanceError: no whole step was recorded.
        """
        for what, there in (("forward pass", len(self._forward) > 1), ("backward pass", self._buckets),
                            ("optimizer's step", len(self._update) == 2)):  # fmt: skip
            if not there:
                raise PerformanceError(f"nothing was recorded of the {what}: run one whole step in the recorder")
        tasks = Builder()
        last: tuple[int, ...] = ()
        for before, mark in zip(self._forward, self._forward[1:], strict=False):
            last = (tasks.compute(f"forward {mark.name}", mark.at - before.at, *last),)
        at, sums = self._forward[-1].at, []
        for mark in self._buckets:
            last = (tasks.compute(f"backward to {mark.name}", mark.at - at, *last),)
            sums.append(tasks.collective(Collective.ALL_REDUCE, mark.name, mark.size, *last))
            at = mark.at
        tasks.compute("optimizer", self._update[1] - self._update[0], *last, *sums)
        return Trace(dist.get_rank(self._model.process_group), tuple(tasks))

    def write(self, folder: Path, name: str = "step") -> None:
        """Write the trace of this rank, NAME.RANK.et; all ranks may write to one folder.

        Raises:
            PerformanceError: as of `trace`.
            OSError: the folder cannot be written.
        """
        write_traces(folder, name, [self.trace()])

    def _on_bucket(self, bucket: GradBucket) -> torch.futures.Future[torch.Tensor]:
        if self._recording:
            size = bucket.buffer().numel() * bucket.buffer().element_size()
            self._buckets.append(_Mark(f"gradients {bucket.index()}", perf_counter(), size))
        return default_hooks.allreduce_hook(self._model.process_group, bucket)
