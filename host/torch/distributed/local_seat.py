"""A group's place at a switch of this machine: one that its ranks are on already, or a new one that rank 0 starts."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, final

from catchment.host.collectives import CollectiveError, Communicator, Scaling
from catchment.host.torch.distributed import switch_command
from catchment.host.torch.distributed.agreement import Agreement
from catchment.host.torch.distributed.local_switch import LocalSwitch, Member
from catchment.host.torch.distributed.seat import Loss

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_ABSENT: Final = 1.0  # s; a local switch that ended is not started again
_SWITCHES: Final[dict[str, LocalSwitch]] = {}
"""Those that this process is connected to, by the path of their socket."""


def machine() -> str:
    """The boot id of this machine, which differs from every other machine's."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def take(agreement: Agreement, command: str | None) -> LocalSeat:
    """A place for this rank, which all ranks of the group ask for.

    Args:
        agreement: of the ranks.
        command: starts a switch, where there is none that all ranks are on and that has room; the installed one unless
            given.

    Raises:
        CollectiveError: kind ``argument``: the ranks are on several machines; ``system``: there is no switch.
    """
    for path in [path for path, switch in _SWITCHES.items() if switch.closed]:
        del _SWITCHES[path]
    own = {path: switch.rank for path, switch in _SWITCHES.items() if not switch.has_lost}
    said = agreement.of_all("machines", {"machine": machine(), "switches": own})
    others = [rank for rank, one in enumerate(said) if one["machine"] != said[0]["machine"]]
    if others:
        raise CollectiveError(
            "the ranks are on several machines, and no switch is named",
            kind="argument",
            peers=others,
            hint="set CATCHMENT_CONTROLLER or CATCHMENT_JOB; see docs/reference/pytorch.md",
        )
    switches = [one["switches"] for one in said]
    try:
        place = agreement.of_first("switch", lambda: _make(switches, command))
        path, ranks = place["path"], place["ranks"]
        switch = _SWITCHES.get(path) or connect(path, ranks[agreement.rank])
        return LocalSeat(switch, place["name"], place["members"][agreement.rank], ranks, command)
    except CollectiveError:
        for switch in _SWITCHES.values():
            switch.end_unless_used()
        raise


def _make(switches: Sequence[dict[str, int]], command: str | None) -> dict[str, Any]:
    """A group of these ranks: on a switch that all of them are on, or on a new one."""
    name = uuid.uuid4().hex
    for path in switches[0]:
        if not all(path in one for one in switches):
            continue
        ranks = [one[path] for one in switches]
        try:
            return _place(path, name, ranks, _SWITCHES[path].make_group(name, ranks))
        except CollectiveError:  # it is full, or has ended
            continue
    path, ranks = switch_command.start(len(switches), command).socket, list(range(len(switches)))
    return _place(path, name, ranks, connect(path, 0).make_group(name, ranks))


def _place(path: str, name: str, ranks: list[int], members: list[Member]) -> dict[str, Any]:
    return {"path": path, "name": name, "ranks": ranks, "members": members}


def connect(path: str, rank: int) -> LocalSwitch:
    """Connect this process, `rank` among those of the switch.

    Raises:
        CollectiveError: kind ``system``: the switch does not answer, or refuses.
    """
    switch = _SWITCHES[path] = LocalSwitch(path, rank)
    return switch


@final
class LocalSeat:
    """A rank's place in a group of the processes on a switch of this machine.

    Args:
        switch: this process's connection to it.
        group: the group's name there.
        member: what this rank needs.
        ranks: of the switch, in the order of the group's; -1 for a rank of the group that is on another host.
        command: starts a switch; the installed one unless given.
    """

    def __init__(
        self, switch: LocalSwitch, group: str, member: Member, ranks: Sequence[int], command: str | None = None
    ) -> None:
        self.name = "torch"
        self.address = self.host = None
        self._switch = switch
        self._group = group
        self._member = dict(member)
        self._ranks = list(ranks)
        self._command = command
        switch.join(group)

    def open(self, *, timeout: float, scaling: Scaling) -> Communicator:
        """See `Seat`."""
        description = dict(self._member)
        port = description.pop("port")
        try:
            communicator = Communicator.of_job(description, port=port, timeout=timeout, scaling=scaling, absent=_ABSENT)
            self._switch.attached()
        except OSError as error:
            self.leave()
            raise CollectiveError("the switch of this group has ended", kind="system", hint=str(error)) from None
        except CollectiveError:
            self.leave()
            raise
        return communicator

    def watch(self, lost: Callable[[Loss], None]) -> None:
        """See `Seat`."""

        def own(loss: Loss) -> None:
            ranks = [self._ranks.index(rank) for rank in loss.ranks if rank in self._ranks]
            if loss.kind != "missing" or not loss.ranks:
                lost(loss)
            elif ranks:
                lost(Loss(f"the process of rank {ranks[0]} has ended", ranks))

        self._switch.watch(self._group, own)

    def tell(self, loss: Loss) -> None:
        """Tell the other processes on the switch of a loss of other hosts."""
        self._switch.tell(loss.text, loss.hosts)

    def part(self, agreement: Agreement) -> LocalSeat:
        """See `Seat`: a group of its own on the same switch, or on another where that has no room."""
        return take(agreement, self._command)

    def leave(self) -> None:
        """See `Seat`."""
        self._switch.leave(self._group)
