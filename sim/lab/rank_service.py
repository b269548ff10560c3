"""What a switch of this machine does for the processes on its ports: it makes and removes the jobs of their groups.

A process connects to a unix socket and keeps the connection; its end without a goodbye is the end of the process,
which all others are told at once.  So is a process that does not read what it is told: its connection ends when too
much waits for it.  Lines of JSON, from a process:

    {"rank": 2}                                    who it is: the port that it will attach to
    {"attached": true}                             it has attached
    {"make": "NAME", "ranks": [0, 2]}              make a group of these ranks, in the order of the worker indices
    {"tell": "TEXT", "hosts": ["w1"]}              what every other process must know: the job has lost these hosts
    {"left": "NAME"}                               this process has left that group
    {"goodbye": true}                              it is about to end the connection

and to it:

    {"port": "shm:PATH"}                           in answer to the rank
    {"made": "NAME", "members": [{...}, ...]}      what each rank of the group needs for a Communicator
    {"made": "NAME", "refused": "why"}             the switch is full, a rank has gone, or the request is wrong
    {"refused": "why"}                             the connection ends
    {"lost": 1}                                    this rank's process has ended
    {"told": "TEXT", "hosts": ["w1"]}              what another process tells
    {"ended": "what has become of the switch"}

A group's job is removed when each of its ranks has left it, or ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import shutil
import signal
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.jobs import JobPlan
from catchment.ending_signals import call_when_ended
from catchment.sim.lab.shm_lab import ShmLab

_log = logging.getLogger(__name__)

_LONGEST_LINE = 65536
_LAST_WORDS = "catchment-switch: ending: a thread cannot go on: "
_LEAST_SLOTS = 4
_MOST_UNREAD = 8 << 20  # bytes that wait for a process: some hundred of the longest messages
_ROOM = 8  # a new group gets an eighth of the free slots at most, so that there is room for many


@dataclass(frozen=True, slots=True)
class _Group:
    job: JobPlan
    members: set[int]  # that have not left it


class RankService:
    """Serves the ranks of a lab on the socket at `path`; `serve` returns when the last has gone.

    Args:
        lab: rank r is on the port of its r-th host.
        hosts: of the lab, in the order of the ranks.
        slots: vectors in flight of a group, where there is room.
        path: of the socket; its folder and the lab's are removed when all ranks have attached.
        patience: seconds to wait for the first rank.
    """

    def __init__(self, lab: ShmLab, hosts: Sequence[str], *, slots: int, path: Path, patience: float) -> None:
        self._lab = lab
        self._hosts = hosts
        self._slots = slots
        self._socket = path
        self._patience = patience
        self._ranks: dict[int, asyncio.StreamWriter] = {}
        self._groups: dict[str, _Group] = {}
        self._seen: set[int] = set()
        self._attached: set[int] = set()
        self._empty = asyncio.Event()

    async def serve(self, ready: str) -> None:
        """Serve until the last rank has gone, or `patience` seconds passed without any, or a signal ends it."""
        loop = asyncio.get_running_loop()
        call_when_ended(loop, self._empty.set)
        server = await asyncio.start_unix_server(self._rank, self._socket, limit=_LONGEST_LINE)
        nobody = loop.call_later(self._patience, self._end_if_unused)
        end = self._lab.switch.end_descriptor()
        loop.add_reader(end, self._switch_ended, end)
        print(ready, flush=True)
        try:
            await self._empty.wait()
        finally:
            server.close()  # and no more: since Python 3.12 `async with` waits until every connection has ended
        nobody.cancel()
        if loop.remove_reader(end):
            os.close(end)

    def _switch_ended(self, end: int) -> None:
        asyncio.get_running_loop().remove_reader(end)
        os.close(end)
        switch = self._lab.switch
        code = switch.stop()
        how = signal.Signals(-code).name if code < 0 else f"code {code}"
        said = _last_words(switch.output)
        text = f"the switch of this group, process {switch.pid} on {socket.gethostname()}, has ended with {how}{said}"
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
                _send(writer, {"port": f"shm:{self._lab.path(self._hosts[rank])}"})
                while (said := await _line(reader)) is not None:
                    said_goodbye = said_goodbye or bool(said.get("goodbye"))
                    self._serve(rank, said, writer)
            except _RefusedError as why:
                _send(writer, {"refused": str(why)})
            except Exception:  # the others must hear that this rank has gone, whatever it sent
                _log.exception("rank %s cannot be served", rank)
                _send(writer, {"refused": "the service failed; see its log"})
        if rank is not None:
            self._gone(rank, lost=not said_goodbye)
        writer.close()

    def _serve(self, rank: int, said: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        if said.get("attached"):
            self._attach(rank)
        if "tell" in said:
            hosts = said.get("hosts", [])
            if not isinstance(hosts, list):
                raise _RefusedError(f"hosts {hosts!r}: give a list")
            for other in [one for number, one in self._ranks.items() if number != rank]:
                _send(other, {"told": str(said["tell"]), "hosts": list(map(str, hosts))})
        if "left" in said:
            self._leave(rank, str(said["left"]))
        if "make" in said:
            name = str(said["make"])
            try:
                _send(writer, {"made": name, "members": self._make(name, said.get("ranks"))})
            except (_RefusedError, ControlPlaneError) as why:
                _send(writer, {"made": name, "refused": str(why)})

    def _admit(self, hello: dict[str, Any] | None, writer: asyncio.StreamWriter) -> int:
        rank = None if hello is None else hello.get("rank")
        size = len(self._hosts)
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
        if len(self._attached) == len(self._hosts):
            for folder in (self._socket.parent, self._lab.path(self._hosts[0]).parent):
                shutil.rmtree(folder, ignore_errors=True)

    def _make(self, name: str, ranks: Any) -> list[dict[str, Any]]:
        """A job for these ranks, and what each of them needs."""
        size = len(self._hosts)
        if not isinstance(ranks, list) or any(type(rank) is not int or not 0 <= rank < size for rank in ranks):
            raise _RefusedError(f"a group of {ranks!r}: give a list of ranks, 0 to {size - 1}")
        if name in self._groups:
            raise _RefusedError(f"there is a group {name} already")
        if gone := [rank for rank in ranks if rank in self._seen and rank not in self._ranks]:
            raise _RefusedError(f"a group of {ranks!r}: rank {gone[0]} has gone")  # it would never leave the group
        hosts = [self._hosts[rank] for rank in ranks]
        job = self._lab.allreduce(hosts, slots=self._room(), packed=True, name=name)
        self._groups[name] = _Group(job, set(ranks))
        return [{**job.describe(host), "port": f"shm:{self._lab.path(host)}"} for host in hosts]

    def _room(self) -> int:
        slots = self._slots
        while slots > _LEAST_SLOTS and slots * _ROOM > self._lab.free_slots:
            slots //= 2
        return slots

    def _leave(self, rank: int, name: str) -> None:
        group = self._groups.get(name)
        if group is None:
            return
        group.members.discard(rank)
        if not group.members:
            del self._groups[name]
            self._lab.remove(group.job)

    def _gone(self, rank: int, *, lost: bool) -> None:
        del self._ranks[rank]
        if lost:
            for other in self._ranks.values():
                _send(other, {"lost": rank})
        if not self._ranks:
            self._empty.set()
            return
        for name in list(self._groups):
            self._leave(rank, name)


class _RefusedError(Exception):
    """What a rank asks for is not given."""


async def _line(reader: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message; None at the end of the connection."""
    try:
        line = await reader.readline()
        message = json.loads(line) if line else None
    except (ValueError, RecursionError):  # too long, no JSON, or JSON that is too deep
        raise _RefusedError("a line that is no message") from None
    if message is not None and not isinstance(message, dict):
        raise _RefusedError("a message that is no object")
    return message


def _send(writer: asyncio.StreamWriter, message: dict[str, Any]) -> None:
    """Send a message, or end the connection of a process that does not read what it is told."""
    with contextlib.suppress(ConnectionError, RuntimeError):
        writer.write(json.dumps(message).encode() + b"\n")
        if writer.transport.get_write_buffer_size() > _MOST_UNREAD:
            writer.transport.abort()


def _last_words(output: str) -> str:
    """What a switch said of its end, where that was not its own will."""
    said = [line for line in output.splitlines() if line.startswith(_LAST_WORDS)]
    return f": {said[-1].removeprefix(_LAST_WORDS)}" if said else ""
