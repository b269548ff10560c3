"""The command line of the demo: `catchment demo ...` or `python -m catchment.demo ...`."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from rich.console import Console

from catchment.demo.orchestrate import run
from catchment.sim.lab.errors import LabError
from catchment.sim.training.model import PRESETS
from catchment.sim.training.options import NETWORKS, TARGETS, TrainingOptions, defaults_for
from catchment.wire.generated.constants import SUPPORTED_LANES


def parser(target: str = "embedded") -> argparse.ArgumentParser:
    """Every option, with the defaults for `target`."""
    default = defaults_for(target)
    made = argparse.ArgumentParser(
        prog="catchment demo",
        description="Train a language model through a P4 switch in Mininet and compare with one process.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = made.add_argument
    add("--workers", type=int, default=default.workers, help="number of workers")
    add("--preset", choices=PRESETS, default=default.preset, help="size of the model")
    add("--steps", type=int, default=default.steps, help="training steps")
    add("--batch", type=int, default=default.batch, help="sequences per worker and step")
    add("--rate", type=float, default=default.rate, help="peak learning rate of Adam")
    add("--seed", type=int, default=default.seed, help="of initial weights and order of the text")
    add("--wire", choices=("bf16", "fp32"), default=default.wire, help="parameters on the wire")
    add("--loss", type=float, default=default.loss, help="probability of losing a frame at each port, each way")
    add("--lanes", type=int, choices=SUPPORTED_LANES, default=default.lanes, help="32-bit lanes per frame")
    add("--slots", type=int, default=default.slots, help="vectors in flight, a power of two")
    add("--mtu", type=int, default=default.mtu, help="of the hosts' links, bytes")
    add("--target", choices=TARGETS, default=default.target, help="which P4 switch")
    add("--network", choices=NETWORKS, default=default.network, help="memory: threads, no switch, no root needed")
    add("--evaluate", type=int, default=default.evaluate, help="steps between validations")
    add("--timeout", type=float, default=default.timeout, help="seconds without progress before giving up")
    add("--out-of-core", action="store_true", help="model states in a store on disk, streamed layer by layer")
    add("--arena", type=int, default=default.arena, help="bytes for layers in flight out of core; 0: three layers")
    add("--resume", action="store_true", help="go on with a run out of core that was ended")
    add("--output", type=Path, default=default.output, help="folder of the report and the logs")
    add("--name", default=default.name, help="of the network; demos of different names can run at once")
    add("--no-reference", dest="reference", action="store_false", help="skip the training in one process")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demo; gives the exit code: 0 done, 1 failed, 2 wrong options, 130 interrupted."""
    first = argparse.ArgumentParser(add_help=False)
    first.add_argument("--target", choices=TARGETS, default="embedded")
    target = first.parse_known_args(arguments)[0].target
    values = parser(target).parse_args(arguments)
    console = Console()
    previous = signal.signal(signal.SIGTERM, _interrupt)
    try:
        run(TrainingOptions(**vars(values)), console)
    except LabError as error:
        Console(stderr=True).print(f"demo: {error}", style="red", markup=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has been ended")
        return 130
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
