"""The demo's model trained by torchrun with DistributedDataParallel, plain PyTorch but for the backend's name.

torchrun --nproc-per-node 4 -m catchment.demo.ddp
torchrun --nproc-per-node 4 -m catchment.demo.ddp --backend gloo
"""

from __future__ import annotations

import hashlib
import time
from contextlib import nullcontext
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import torch
import torch.distributed as dist
import typer
from torch.nn.parallel import DistributedDataParallel

from catchment.program import one_of, run_program
from catchment.sim.performance.steps.recording import StepRecorder
from catchment.sim.training.data import Shard, load_corpus
from catchment.sim.training.model import PRESETS, Decoder, initialise, next_byte_loss


def train(
    *,
    backend: str = "catchment",
    preset: Annotated[
        str, typer.Option(help="Size of the model.", metavar="|".join(PRESETS), callback=one_of(PRESETS))
    ] = "demo",
    steps: int = 50,
    batch: Annotated[int, typer.Option(help="Sequences per rank and step.")] = 8,
    et: Annotated[
        Path | None,
        typer.Option(help="Folder that gets the last step as Chakra traces (`catchment simulate-step et`)."),
    ] = None,
) -> None:
    """Train the demo's model under torchrun.

    Rank 0 prints what it sees; every rank prints the checksum of its weights.
    """
    dist.init_process_group(backend, timeout=timedelta(minutes=2))  # the one line that differs
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    decoder = Decoder(PRESETS[preset])
    initialise(decoder, 1)
    model = DistributedDataParallel(decoder)
    optimizer = torch.optim.Adam(model.parameters(), lr=1.5e-3, betas=(0.9, 0.95), eps=1e-6)
    recorder = StepRecorder(model, optimizer) if et is not None else None
    text = Shard(load_corpus(), worker=rank, workers=size, sequence=decoder.shape.sequence, seed=1)
    started = time.monotonic()
    for step in range(steps):
        tokens = text.batch(step, batch)
        optimizer.zero_grad()
        with recorder if recorder is not None and step == steps - 1 else nullcontext():
            loss = next_byte_loss(model(tokens), tokens)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        if rank == 0 and (step % 10 == 0 or step == steps - 1):
            print(f"step {step}: loss {loss.item():.3f}, {time.monotonic() - started:.1f} s", flush=True)
    if recorder is not None and et is not None:
        recorder.write(et)
    weights = torch.cat([parameter.detach().reshape(-1) for parameter in decoder.parameters()])
    print(f"rank {rank}: weights {hashlib.sha256(weights.numpy().tobytes()).hexdigest()[:16]}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    run_program(train)
