"""The command line of the demo: `catchment demo ...` or `python -m catchment.demo ...`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.output_path import check_folder
from catchment.demo.orchestrate import run
from catchment.ending_signals import ended_as_by_ctrl_c
from catchment.program import one_of, run_program
from catchment.sim.lab.errors import LabError
from catchment.sim.training.model import PRESETS
from catchment.sim.training.options import GRADIENTS, NETWORKS, TARGETS, TrainingOptions, defaults_for
from catchment.wire.generated.constants import SUPPORTED_LANES

_START = TrainingOptions()
_LANES = "|".join(map(str, SUPPORTED_LANES))


def _start_from(context: typer.Context, target: str) -> str:
    """Take the defaults of the target for all that the command line leaves out."""
    context.default_map = asdict(defaults_for(one_of(TARGETS)(target)))
    return target


def demo(
    context: typer.Context,
    *,
    target: Annotated[
        str, typer.Option(help="Which P4 switch.", metavar="|".join(TARGETS), is_eager=True, callback=_start_from)
    ] = _START.target,
    workers: Annotated[int, typer.Option(help="Number of workers.")] = _START.workers,
    roots: Annotated[int, typer.Option(help="Number of optimizer nodes that share the model.")] = _START.roots,
    preset: Annotated[
        str, typer.Option(help="Size of the model.", metavar="|".join(PRESETS), callback=one_of(PRESETS))
    ] = _START.preset,
    steps: Annotated[int, typer.Option(help="Training steps.")] = _START.steps,
    batch: Annotated[int, typer.Option(help="Sequences per worker and step.")] = _START.batch,
    rate: Annotated[float, typer.Option(help="Peak learning rate of Adam.")] = _START.rate,
    seed: Annotated[int, typer.Option(help="Of initial weights and order of the text.")] = _START.seed,
    wire: Annotated[
        str, typer.Option(help="Parameters on the wire.", metavar="bf16|fp32", callback=one_of(("bf16", "fp32")))
    ] = _START.wire,
    gradients: Annotated[
        str,
        typer.Option(
            help="Gradients on the wire; int16: two in a lane.", metavar="|".join(GRADIENTS), callback=one_of(GRADIENTS)
        ),
    ] = _START.gradients,
    loss: Annotated[float, typer.Option(help="Probability of losing a frame at each port, each way.")] = _START.loss,
    lanes: Annotated[
        int,
        typer.Option(
            help="32-bit lanes per frame.",
            metavar="|".join(map(str, SUPPORTED_LANES)),
            callback=one_of(SUPPORTED_LANES),
        ),
    ] = _START.lanes,
    slots: Annotated[int, typer.Option(help="Vectors in flight, a power of two.")] = _START.slots,
    mtu: Annotated[int, typer.Option(help="Of the hosts' links, bytes.")] = _START.mtu,
    network: Annotated[
        str,
        typer.Option(
            help="mininet needs root; shm: shared memory; memory: threads, no switch.",
            metavar="|".join(NETWORKS),
            callback=one_of(NETWORKS),
        ),
    ] = _START.network,
    evaluate: Annotated[int, typer.Option(help="Steps between validations.")] = _START.evaluate,
    timeout: Annotated[float, typer.Option(help="Seconds without progress before giving up.")] = _START.timeout,
    out_of_core: Annotated[
        bool, typer.Option("--out-of-core", help="Model states in a store on disk, streamed layer by layer.")
    ] = False,
    arena: Annotated[int, typer.Option(help="Bytes for layers in flight out of core; 0: three layers.")] = _START.arena,
    restart: Annotated[
        str, typer.Option(help="Kill a host's process after a step and start it again.", metavar="HOST@STEP")
    ] = _START.restart,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run out of core that was ended.")] = False,
    output: Annotated[Path, typer.Option(help="Folder of the report and the logs.")] = _START.output,
    name: Annotated[str, typer.Option(help="Of the network; demos of different names can run at once.")] = _START.name,
    reference: Annotated[bool, typer.Option(help="Train in one process as well, to compare.")] = _START.reference,
) -> int:
    """Train a language model through a P4 switch in Mininet and compare with one process.

    Exit status: 0 done, 1 failed, 2 wrong options, 130 interrupted.
    """
    console = Console(markup=False, emoji=False)  # of paths and what hosts say, nothing is markup
    status = 2
    try:
        options = TrainingOptions(**context.params)
        status = 1
        check_folder("--output", options.output)
        with ended_as_by_ctrl_c():
            run(options, console)
    except (LabError, ControlPlaneError, OSError) as error:
        Console(stderr=True).print(f"demo: {error}", style="red", markup=False, soft_wrap=True)
        return status
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has been ended")
        return 130
    return 0


if __name__ == "__main__":
    run_program(demo, name="catchment demo")
