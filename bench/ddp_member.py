"""One rank of `make bench-ddp`: trains a model under DistributedDataParallel, as many steps as it is told.

A line on its standard input is `{"model": NAME, "steps": N}`; the answer is the seconds of each of N steps.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from catchment.sim.training.model import PRESETS, Decoder, initialise, next_byte_loss

WARM_UP = 3  # steps: DDP makes its buckets anew after the first
SEQUENCES, IMAGES = 8, 8  # of a rank and step

Step = Callable[[], None]


class _Block(nn.Module):
    """Two convolutions beside a way around them."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride, 1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, 1, 1, bias=False),
            nn.BatchNorm2d(after),
        )
        around = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
        self.around = nn.Identity() if before == after else around

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(images) + self.around(images))


def residual_network() -> nn.Module:
    """A ResNet-18 for images of 32 by 32 with a quarter of its channels: 0.7 million parameters."""
    widths = [16, 16, 16, 32, 32, 64, 64, 128, 128]
    blocks = [_Block(before, after, 1 if before == after else 2) for before, after in pairwise(widths)]
    stem = [nn.Conv2d(3, widths[0], 3, 1, 1, bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(widths[-1], 10))


def _residual() -> Step:
    model = DistributedDataParallel(residual_network())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images, labels = torch.randn(IMAGES, 3, 32, 32), torch.randint(10, (IMAGES,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def _decoder() -> Step:
    decoder = Decoder(PRESETS["demo"])
    initialise(decoder, 1)
    model = DistributedDataParallel(decoder)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3, betas=(0.9, 0.95), eps=1e-6)
    tokens = torch.randint(256, (SEQUENCES, decoder.shape.sequence))

    def step() -> None:
        optimizer.zero_grad()
        next_byte_loss(model(tokens), tokens).backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


MODELS: dict[str, Callable[[], Step]] = {"ResNet-like": _residual, "the demo's decoder": _decoder}


def main() -> None:
    """Run as `python -m bench.ddp_member TASK`."""
    task: dict[str, Any] = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    os.environ |= task["environment"]
    dist.init_process_group(
        task["backend"], init_method=f"file://{task['rendezvous']}", rank=task["rank"], world_size=task["ranks"]
    )
    torch.manual_seed(task["rank"])
    steps: dict[str, Step] = {}
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_measure(steps, **json.loads(line))), flush=True)


def _measure(made: dict[str, Step], *, model: str, steps: int) -> list[float]:
    if model not in made:
        made[model] = MODELS[model]()
        for _ in range(WARM_UP):
            made[model]()
    times = []
    for _ in range(steps):
        begun = time.perf_counter()
        made[model]()
        times.append(time.perf_counter() - begun)
    return times


if __name__ == "__main__":
    main()
