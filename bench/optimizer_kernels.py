"""The update kernel beside torch, DeepSpeed and the memory, for bench/optimizer.py."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch

from bench.report import Figure
from catchment.host import _optimizer
from catchment.host.layers import LayerSpec
from catchment.host.optimizer import Adam, Sgd, UpdateRule
from catchment.host.optimizer.store import UNIT, Rule, page_aligned

_ELEMENTS = 8192 * UNIT
_ROUNDS = 15
_ADAM = Adam()
# Loops that hardly compute, and write no line that they have not read: bytes per element.
_LOOPS = {"a += 2 b": 12, "SGD, kernel alone": 20}
# Ours: what it is, bytes of memory per element (four arrays read, three written; the bf16 copy), its peers, the aim.
_OURS = (
    ("Adam, kernel alone", 28, ("torch fused Adam", "DeepSpeed CPUAdam"), 1.0),
    ("Adam, with bf16 copy and checksums", 30, ("torch fused Adam", "DeepSpeed CPUAdam"), None),
    ("the same with bf16 moments", 22, ("torch fused Adam", "DeepSpeed CPUAdam"), None),
    ("SGD, with bf16 copy and checksums", 22, ("torch fused SGD",), None),
)


def measure() -> tuple[list[Figure], list[str]]:
    """Parameters per second on one core and on all, each beside its peers of the same run, in turn.

    All arrays of all contestants lie in huge pages, as the node's arena does.
    """
    figures, notes = [], []
    ours = _ours()
    for threads in dict.fromkeys((1, torch.get_num_threads())):
        torch.set_num_threads(threads)
        contestants: dict[str, Callable[[], object]] = {
            "Adam, kernel alone": ours(threads, whole=False),
            "Adam, with bf16 copy and checksums": ours(threads),
            "the same with bf16 moments": ours(threads, bf16_moments=True),
            "SGD, kernel alone": ours(threads, whole=False, rule=Sgd()),
            "SGD, with bf16 copy and checksums": ours(threads, rule=Sgd()),
            "torch fused Adam": _stepping(torch.optim.Adam([_parameter()], fused=True)),
            "torch fused SGD": _stepping(torch.optim.SGD([_parameter()], momentum=0.9, fused=True)),
            "a += 2 b": _scaled_add(),
        }
        deepspeed = _deepspeed(threads)
        if deepspeed is None:
            notes.append("DeepSpeed's CPUAdam is not installed here, so it is not compared.")
        else:
            contestants["DeepSpeed CPUAdam"] = deepspeed
        # The thread's own time where one core is meant: others on this machine may take turns with it.
        rates = _rates(contestants, time.thread_time if threads == 1 else time.perf_counter)
        where = f"{threads} core{'s' * (threads > 1)}"
        memory, loop = max((rates[name] * each, name) for name, each in _LOOPS.items())  # bytes per second
        for name, bytes_each, peers, goal in _OURS:
            title = f"{name}, {where}"
            figures += [
                Figure(title, rates[name] / 1e6, "M/s", peer, rates[peer] / 1e6, goal)
                for peer in peers
                if peer in rates
            ]
            limit = memory / bytes_each  # elements per second if only memory took time
            figures.append(Figure(title, rates[name] / 1e6, "M/s", f"memory ({loop})", limit / 1e6))
    return figures, list(dict.fromkeys(notes))


def _rates(contestants: dict[str, Callable[[], object]], clock: Callable[[], float]) -> dict[str, float]:
    """Elements per second of the median round; rounds go in turn, so that all see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(_ROUNDS):
        for name, work in contestants.items():
            begun = clock()
            work()
            times[name].append(clock() - begun)
    return {name: _ELEMENTS / median(each) for name, each in times.items()}


def _ours() -> Callable[..., Callable[[], object]]:
    layer = LayerSpec.of(0, "layer", [("layer.weight", (_ELEMENTS,))])
    sections = {name: page_aligned(_ELEMENTS * 4, resident=True) for name in ("master", "first", "second")}
    parameters = page_aligned(_ELEMENTS * 2, resident=True)
    gradients = page_aligned(_ELEMENTS * 4, resident=True)
    gradients.view(np.float32)[:] = np.random.default_rng(1).standard_normal(_ELEMENTS, np.float32)
    tensor = layer.tensors[0]

    def contestant(
        threads: int, *, whole: bool = True, rule: UpdateRule = _ADAM, bf16_moments: bool = False
    ) -> Callable[[], object]:
        moments = {name: sections[name][: _ELEMENTS * (2 if bf16_moments else 4)] for name in ("first", "second")}
        updater = _optimizer.Updater(threads)
        scalars = np.array([rule.scalars(10, 1e-3, 0.25)], np.float32)
        return lambda: updater.update(
            parameters=parameters if whole else None,
            master=sections["master"],
            first=moments["first"],
            second=moments["second"] if rule.kind is Rule.ADAM else None,
            bf16_moments=bf16_moments,
            gradient=gradients,
            shard_units=[_ELEMENTS // UNIT],
            offsets=[tensor.offset],
            counts=[tensor.numel],
            scalars=scalars,
            summed=whole,
        )

    return contestant


def _tensor() -> torch.Tensor:
    return torch.from_numpy(page_aligned(_ELEMENTS * 4, resident=True).view(np.float32))


def _stepping(optimizer: torch.optim.Optimizer) -> Callable[[], object]:
    """The step of `optimizer`, with all that it keeps in huge pages too."""
    step: Callable[[], object] = optimizer.step
    step()
    for state in optimizer.state.values():
        state.update({name: _tensor() for name, value in state.items() if getattr(value, "numel", int)() == _ELEMENTS})
    return step


def _parameter() -> torch.nn.Parameter:
    parameter = torch.nn.Parameter(_tensor())
    parameter.grad = _tensor().copy_(torch.randn(_ELEMENTS))
    return parameter


def _deepspeed(threads: int) -> Callable[[], object] | None:
    try:
        ctypes.CDLL("libgomp.so.1").omp_set_num_threads(threads)  # torch brings an OpenMP of its own
        from deepspeed.ops.adam import DeepSpeedCPUAdam  # type: ignore[import-not-found]  # noqa: PLC0415

        step = _stepping(DeepSpeedCPUAdam([_parameter()]))
    except Exception:  # it compiles itself on first use: whatever goes wrong there, it is not to be had here
        return None
    return step


def _scaled_add() -> Callable[[], object]:
    a, b = _tensor(), _tensor()
    return lambda: a.add_(b, alpha=2.0)
