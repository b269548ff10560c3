"""Old generations in a switch's registers: they must be gone before their numbers are given out again."""

from __future__ import annotations

from collections.abc import Iterator, Set

from catchment.controlplane.client import SwitchClient, SwitchError
from catchment.controlplane.state.desired import JOBS

_GENERATION_ABOVE = {"tag": 32, "acked": 32, "last": 64, "heartbeat": 64}
"""Registers that keep a generation, by the last part of their name -> how many bits lie below it."""


def scrub(client: SwitchClient, alive: Set[int]) -> bool:
    """Set every register cell to zero that belongs to a generation which no job has.

    What the switch has an entry for stays, too: the job of another control plane, or one that is younger than `alive`.

    Args:
        client: of the switch.
        alive: generations of the jobs that exist.

    Returns:
        Whether it could be done: BMv2 gives no access to registers, and needs its program loaded anew instead.

    Raises:
        SwitchError: the switch refuses or does not answer.
    """
    try:
        for name, below in _registers(client):
            cells = client.register(name)
            known = alive | _admitted(client)  # read after them: a job has its entries before its frames come
            stale = {index: 0 for index, value in cells.items() if value and value >> below not in known}
            client.write_registers(name, stale)
    except SwitchError as error:
        if error.code == "UNIMPLEMENTED":
            return False
        raise
    return True


def _registers(client: SwitchClient) -> Iterator[tuple[str, int]]:
    for name in client.p4info.names("register"):
        below = _GENERATION_ABOVE.get(name.rpartition(".")[2])
        if below is not None:
            yield name, below


def _admitted(client: SwitchClient) -> set[int]:
    """The generations that a switch lets frames of in."""
    return {int(entry.match["gen"]) for entry in client.read(JOBS)}
