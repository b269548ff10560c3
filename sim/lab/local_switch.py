"""A switch for the processes of one machine, for as long as they live: what torchrun's processes use by default.

    catchment-local-switch --ranks 4

starts an embedded switch with a shared-memory port for each rank, prints a line of JSON that names its socket, and
makes jobs for the groups that ranks ask for there (rank_service.py).  The switch ends with the last connection, or when
nobody comes.

    catchment-local-switch --ranks 4 --below - < member.json

takes the place of a job's worker with it (leaf.py): what the four ranks push goes on as one.
"""

from __future__ import annotations

import asyncio
import json
import sys
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any

import typer

from catchment.controlplane.programs.cache import is_compiled, programs_of
from catchment.ending_signals import ended_as_by_ctrl_c
from catchment.program import one_of, run_program
from catchment.sim.lab.leaf import deploy_leaf, uplink_of
from catchment.sim.lab.rank_service import RankService
from catchment.sim.lab.shm_lab import IN_CALLERS, ShmLab
from catchment.wire.generated.constants import MAX_WORKERS, SUPPORTED_LANES
from catchment.wire.socket_folder import socket_folder

LANES = 1024
SLOTS = 256  # 1 MiB of vectors in flight: more leaves a core's nearest caches (docs/measurements/collectives.md)
SLOTS_OF_SHARERS = 128  # where a core's caches hold another rank's window, or the switch's slots, as well
PATIENCE = 60.0
GROUPS = 32
"""So many groups have room for all their slots; 4 KiB of memory a slot, once it is used."""
_MTU = 9000  # of memory: as long as the plan needs


def rings(lanes: int, slots: int) -> str:
    """A ring takes a whole window, and its cells, each a frame and a cache line at least, lie close together."""
    line = 64
    return f"cells={slots},bytes={line * (2 + -(-4 * lanes // line))}"


def slots_of(*, in_callers: bool) -> int:
    """Vectors in flight of a group of this machine, as measured to be best (docs/measurements/shared-processors.md)."""
    return SLOTS_OF_SHARERS if in_callers else SLOTS


def _checked_slots(slots: int | None) -> int | None:
    if slots is not None and (slots < 1 or slots & (slots - 1)):
        raise typer.BadParameter(f"{slots} is no power of two")
    return slots


def _checked_patience(seconds: float) -> float:
    if not seconds >= 0:
        raise typer.BadParameter(f"{seconds} is no number of seconds from 0 on")
    return seconds


@ended_as_by_ctrl_c()
def local_switch(
    *,
    ranks: Annotated[int, typer.Option(help="Processes on the switch.", min=1, max=MAX_WORKERS)] = 1,
    slots: Annotated[
        int | None,
        typer.Option(
            help=f"Vectors in flight of a group, a power of two; unless given, {SLOTS_OF_SHARERS} where ranks run the "
            f"switch's program, else {SLOTS}.",
            callback=_checked_slots,
        ),
    ] = None,
    lanes: Annotated[
        int,
        typer.Option(
            help="Elements of a vector.", metavar="|".join(map(str, SUPPORTED_LANES)), callback=one_of(SUPPORTED_LANES)
        ),
    ] = LANES,
    below: Annotated[
        str,
        typer.Option(
            help="Take a worker's place in a job: what `job show --json` says of it; - reads it from the input, for it "
            "has the job's key.",
            metavar="JSON",
        ),
    ] = "",
    patience: Annotated[
        float, typer.Option(help="Seconds to wait for the first rank.", callback=_checked_patience)
    ] = PATIENCE,
    in_callers: Annotated[
        bool | None,
        typer.Option(
            envvar=IN_CALLERS,
            help="Whether ranks run the switch's program themselves; unless given, yes, but not below another switch.",
        ),
    ] = None,
    compile_only: Annotated[
        bool, typer.Option("--compile", help="Only compile its program, unless that was done before.")
    ] = False,
) -> None:
    """Serve a switch to the processes of one machine."""
    hosts = [f"w{rank}" for rank in range(ranks)]
    place = _place(below)
    lanes = int(place["sums"]["lanes"]) if place else lanes
    in_callers = not place if in_callers is None else in_callers
    room = slots or SLOTS
    planned = ShmLab(
        hosts,
        lanes=lanes,
        slots=GROUPS * room,
        mtu=_MTU,
        options=rings(lanes, room),
        uplink=uplink_of(place) if place else "",
        in_callers=in_callers,
        tags=bool(place and place["sums"].get("key")),
    )
    for switch in planned.topology.switches.values():
        if not is_compiled(switch):
            print(json.dumps({"compiling": switch.program.name}), flush=True)
    if compile_only:
        programs_of(planned.topology)
        return
    with socket_folder() as folder, planned as lab:
        path = Path(folder) / "socket"
        slots = slots or slots_of(in_callers=in_callers)
        service = RankService(lab, hosts, slots=slots, path=path, patience=patience)
        ready: dict[str, Any] = {"socket": str(path), "ranks": ranks}
        if place:
            ready["members"] = deploy_leaf(lab, place, hosts)
        asyncio.run(service.serve(json.dumps(ready)))


def _place(text: str) -> dict[str, Any]:
    try:
        place = json.loads((sys.stdin.read() if text == "-" else text) or "{}")
    except ValueError:
        place = None
    if place != {} and not _is_place(place):
        raise typer.BadParameter(
            "not what `catchment job show --json` says of a worker of an all-reduce", param_hint="--below"
        )
    return dict(place)


def _is_place(said: Any) -> bool:
    """Whether `said` has what this program takes of `JobPlan.describe`, in the types that it has there."""
    match said:
        case {
            "job": str(),
            "kind": str(),
            "wid": int(),
            "local": [str() as local, int() as local_port],
            "switch": [str() as switch, int() as switch_port],
            "sums": {"gen": int(), "lanes": int() as lanes, "slots": int() as slots, "param_bytes": int()} as sums,
        }:
            key = sums.get("key", "")
            ports_fit = 0 < local_port < 1 << 16 and 0 < switch_port < 1 << 16
            sizes_fit = lanes in SUPPORTED_LANES and slots > 0 and slots & (slots - 1) == 0
            return ports_fit and sizes_fit and isinstance(key, str) and all(map(_is_address, (local, switch)))
    return False


def _is_address(text: str) -> bool:
    try:
        IPv4Address(text)
    except ValueError:
        return False
    return True


def main() -> None:
    """Run it as a program."""
    run_program(local_switch)


if __name__ == "__main__":
    main()
