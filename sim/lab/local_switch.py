"""A switch for the processes of one machine, for as long as they live: what torchrun's processes use by default.

    catchment-local-switch --ranks 4

starts an embedded switch with a shared-memory port for each rank and an all-reduce job for all of them, prints a
line of JSON that names its socket, and serves it.  A rank connects, says who it is, and is told its part of the job;
it keeps the connection open.  A connection that ends without a goodbye is the end of that process, which all others
are told at once.  The switch ends with the last connection, or when nobody comes.

Lines of JSON, from a rank: {"rank": 2}, {"attached": true}, {"goodbye": true}; to it: {"member": {...}},
{"refused": "why"}, {"lost": 1}, {"ended": "what has become of the switch"}.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path
from typing import Annotated, Any

import typer

from catchment.controlplane.jobs import JobPlan
from catchment.controlplane.programs.cache import is_compiled, programs_of
from catchment.program import one_of, run_program
from catchment.sim.lab.shm_lab import ShmLab
from catchment.wire.generated.constants import MAX_WORKERS, SUPPORTED_LANES

LANES = 1024
SLOTS = 256  # 1 MiB of vectors in flight: more leaves a core's nearest caches (docs/collectives.md)
PATIENCE = 60.0
_LONGEST_LINE = 4096
_MTU = 9000  # of memory: as long as the plan needs


class LocalSwitch:
    """Serves one job's ranks on the socket at `path`; `serve` returns when the last has gone."""

    def __init__(self, lab: ShmLab, job: JobPlan, path: Path, patience: float) -> None:
        self._lab = lab
        self._job = job
        self._socket = path
        self._patience = patience
        self._ranks: dict[int, asyncio.StreamWriter] = {}
        self._seen: set[int] = set()
        self._attached: set[int] = set()
        self._empty = asyncio.Event()

    async def serve(self, ready: str) -> None:
        """Serve until the last rank has gone, or `patience` seconds passed without any, or SIGTERM comes."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._empty.set)
        server = await asyncio.start_unix_server(self._rank, self._socket, limit=_LONGEST_LINE)
        nobody = loop.call_later(self._patience, self._end_if_unused)
        end = self._lab.switch.end_descriptor()
        loop.add_reader(end, self._switch_ended, end)
        print(ready, flush=True)
        async with server:
            await self._empty.wait()
        nobody.cancel()
        if loop.remove_reader(end):
            os.close(end)

    def _switch_ended(self, end: int) -> None:
        asyncio.get_running_loop().remove_reader(end)
        os.close(end)
        switch = self._lab.switch
        code = switch.stop()
        how = signal.Signals(-code).name if code < 0 else f"code {code}"
        text = f"the switch of this group, process {switch.pid} on {socket.gethostname()}, has ended with {how}"
        for writer in self._ranks.values():
            _send(writer, {"ended": text})
        self._empty.set()

    def _end_if_unused(self) -> None:
        if not self._seen:
            self._empty.set()

    async def _rank(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        rank = None
        said_goodbye = False
        with contextlib.suppress(ConnectionError):
            try:
                rank = self._admit(await _line(reader), writer)
                _send(writer, {"member": self._member(rank)})
                while (said := await _line(reader)) is not None:
                    said_goodbye = said_goodbye or bool(said.get("goodbye"))
                    if said.get("attached"):
                        self._attach(rank)
            except _RefusedError as why:
                _send(writer, {"refused": str(why)})
        if rank is not None:
            self._gone(rank, lost=not said_goodbye)
        writer.close()

    def _admit(self, hello: dict[str, Any] | None, writer: asyncio.StreamWriter) -> int:
        rank = None if hello is None else hello.get("rank")
        size = len(self._job.workers)
        if not isinstance(rank, int) or isinstance(rank, bool) or not 0 <= rank < size:
            raise _RefusedError(f"rank {rank!r}: this switch has ranks 0 to {size - 1}")
        if rank in self._seen:
            raise _RefusedError(f"rank {rank} was here already; a new process needs a new switch")
        self._seen.add(rank)
        self._ranks[rank] = writer
        return rank

    def _attach(self, rank: int) -> None:
        """Remove the folders when every rank is connected: nobody could, after a SIGKILL."""
        self._attached.add(rank)
        if len(self._attached) == len(self._job.workers):
            for folder in (self._socket.parent, self._lab.path(self._job.workers[0]).parent):
                shutil.rmtree(folder, ignore_errors=True)

    def _member(self, rank: int) -> dict[str, Any]:
        host = self._job.workers[rank]
        return {**self._job.describe(host), "port": f"shm:{self._lab.path(host)}"}

    def _gone(self, rank: int, *, lost: bool) -> None:
        del self._ranks[rank]
        if lost:
            for other in self._ranks.values():
                _send(other, {"lost": rank})
        if not self._ranks:
            self._empty.set()


class _RefusedError(Exception):
    """What a rank asks for is not given."""


async def _line(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message; None at the end of the connection."""
    try:
        line = await reader.readline()
        message = json.loads(line) if line else None
    except ValueError:  # too long, or no JSON
        raise _RefusedError("a line that is no message") from None
    if message is not None and not isinstance(message, dict):
        raise _RefusedError("a message that is no object")
    return message


def _send(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    with contextlib.suppress(ConnectionError, RuntimeError):
        writer.write(json.dumps(message).encode() + b"\n")


def rings(lanes: int, slots: int) -> str:
    """A ring takes a whole window, and its cells, each a frame and a cache line at least, lie close together."""
    line = 64
    return f"cells={slots},bytes={line * (2 + -(-4 * lanes // line))}"


def local_switch(
    *,
    ranks: Annotated[int, typer.Option(help="Processes of the job.", min=1, max=MAX_WORKERS)] = 1,
    slots: Annotated[int, typer.Option(help="Vectors in flight, a power of two.")] = SLOTS,
    lanes: Annotated[
        int,
        typer.Option(
            help="Elements of a vector.", metavar="|".join(map(str, SUPPORTED_LANES)), callback=one_of(SUPPORTED_LANES)
        ),
    ] = LANES,
    patience: Annotated[float, typer.Option(help="Seconds to wait for the first rank.")] = PATIENCE,
    compile_only: Annotated[
        bool, typer.Option("--compile", help="Only compile its program, unless that was done before.")
    ] = False,
) -> None:
    """Serve a switch to the processes of one machine."""
    hosts = [f"w{rank}" for rank in range(ranks)]
    planned = ShmLab(hosts, lanes=lanes, slots=slots, mtu=_MTU, options=rings(lanes, slots))
    for switch in planned.topology.switches.values():
        if not is_compiled(switch):
            print(json.dumps({"compiling": switch.program.name}), flush=True)
    if compile_only:
        programs_of(planned.topology)
        return
    with tempfile.TemporaryDirectory(prefix="catchment-") as folder, planned as lab:
        job = lab.allreduce(hosts, slots=slots, name="torch")
        path = Path(folder) / "socket"
        ready = json.dumps({"socket": str(path), "ranks": ranks})
        asyncio.run(_serve(lab, job, path, patience, ready))


async def _serve(lab: ShmLab, job: JobPlan, path: Path, patience: float, ready: str) -> None:
    await LocalSwitch(lab, job, path, patience).serve(ready)


def main() -> None:
    """Run it as a program."""
    run_program(local_switch)


if __name__ == "__main__":
    main()
