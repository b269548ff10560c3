"""The update kernel beside torch, DeepSpeed and the memory, for bench/optimizer.py."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from bench.report import Figure
from host import _optimizer
from host.layers import LayerSpec
from host.optimizer import Adam
from host.optimizer.layer_update import Step
from host.optimizer.store import UNIT, page_aligned

_ELEMENTS = 8192 * UNIT
_ROUNDS = 9
_TRAFFIC = 28  # bytes per element: four arrays read, three written
_TRIAD = 12


def measure() -> tuple[list[Figure], list[str]]:
    """Parameters per second on one core and on all, each beside its peers of the same run, in turn."""
    figures, notes = [], []
    ours = _ours()
    for threads in dict.fromkeys((1, torch.get_num_threads())):
        torch.set_num_threads(threads)
        contestants: dict[str, Callable[[], object]] = {
            "kernel": ours(threads, whole=False),
            "whole": ours(threads, whole=True),
            "torch fused Adam": _torch(),
            "triad": _triad(),
        }
        deepspeed = _deepspeed()
        if deepspeed is None:
            notes.append("DeepSpeed's CPUAdam is not installed here, so it is not compared.")
        else:
            contestants["DeepSpeed CPUAdam"] = deepspeed
        rates = _best(contestants)
        where = f"{threads} core{'s' * (threads > 1)}"
        memory = rates["triad"] * _TRIAD / _TRAFFIC  # elements per second if only memory took time
        kernel = rates["kernel"] / 1e6
        figures += [
            Figure(f"Adam kernel, {where}", kernel, "M/s", peer, rates[peer] / 1e6, 1.0)
            for peer in ("torch fused Adam", "DeepSpeed CPUAdam")
            if peer in rates
        ]
        whole = f"with bf16 copy and checksums, {where}"
        figures += [
            Figure(f"Adam kernel, {where}", kernel, "M/s", "memory (triad)", memory / 1e6),
            Figure(whole, rates["whole"] / 1e6, "M/s", "torch fused Adam", rates["torch fused Adam"] / 1e6),
        ]
    return figures, list(dict.fromkeys(notes))


def _best(contestants: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Elements per second of the fastest round; rounds go in turn, so that all see the same machine."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(_ROUNDS):
        for name, work in contestants.items():
            begun = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - begun)
    return {name: _ELEMENTS / min(each) for name, each in times.items()}


def _ours() -> Callable[..., Callable[[], object]]:
    layer = LayerSpec.of(0, "layer", [("layer.weight", (_ELEMENTS,))])
    sections = {name: page_aligned(_ELEMENTS * 4) for name in ("master", "first", "second")}
    parameters, gradients = page_aligned(_ELEMENTS * 2), page_aligned(_ELEMENTS * 4)
    gradients.view(np.float32)[:] = np.random.default_rng(1).standard_normal(_ELEMENTS, np.float32)
    step = Step(Adam(), 1e-3, 0.25)
    tensor = layer.tensors[0]
    scalars = np.array([step.rule.scalars(10, step.lr, step.scale)], np.float32)

    def contestant(threads: int, *, whole: bool) -> Callable[[], object]:
        updater = _optimizer.Updater(threads)
        return lambda: updater.update(
            parameters=parameters if whole else None,
            master=sections["master"],
            first=sections["first"],
            second=sections["second"],
            bf16_moments=False,
            gradient=gradients,
            shard_units=[_ELEMENTS // UNIT],
            offsets=[tensor.offset],
            counts=[tensor.numel],
            scalars=scalars,
            summed=whole,
        )

    return contestant


def _parameter() -> torch.nn.Parameter:
    parameter = torch.nn.Parameter(torch.zeros(_ELEMENTS))
    parameter.grad = torch.randn(_ELEMENTS)
    return parameter


def _torch() -> Callable[[], object]:
    return torch.optim.Adam([_parameter()], fused=True).step


def _deepspeed() -> Callable[[], object] | None:
    try:
        from deepspeed.ops.adam import DeepSpeedCPUAdam  # type: ignore[import-not-found]  # noqa: PLC0415

        step: Callable[[], object] = DeepSpeedCPUAdam([_parameter()]).step
        step()
    except Exception:  # it compiles itself on first use: whatever goes wrong there, it is not to be had here
        return None
    return step


def _triad() -> Callable[[], object]:
    a, b, c = (torch.ones(_ELEMENTS) for _ in range(3))
    return lambda: torch.add(a, b, alpha=2.0, out=c)
