"""What commands that were cut short left on a switch: streams with this control plane's mark that no job has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.state.desired import JOBS, PACKED, RECEIVERS, TAGS

_TABLES = (JOBS, PACKED, RECEIVERS, TAGS)


def take_off_forgotten(
    client: SwitchClient, generations: Callable[[], Collection[int]], is_foreign: Callable[[TableEntry], bool]
) -> int:
    """Delete entries of streams that no job has, and the multicast groups that they alone name.

    Args:
        client: of the switch.
        generations: gives those of all jobs that are noted; asked once the switch was read, so that a job is noted by
            then whose entries were found.
        is_foreign: says of an entry that another control plane may have put it there; it stays.

    Returns:
        How many entries went.

    Raises:
        SwitchError: the switch refuses or does not answer.
    """
    tables = [table for table in _TABLES if client.p4info.has("table", table)]
    entries = [entry for table in tables for entry in client.read(table) if "gen" in entry.match]
    if not entries:
        return 0
    known = generations()
    gone: list[TableEntry] = []
    stays: list[TableEntry] = []
    for entry in entries:
        (stays if int(entry.match["gen"]) in known or is_foreign(entry) else gone).append(entry)
    if not gone:
        return 0
    groups = _groups(gone) - _groups(stays)
    client.delete_groups(groups & set(client.groups()))  # first: entries that are left of it say whose they are
    client.delete(*gone)
    return len(gone)


def _groups(entries: Iterable[TableEntry]) -> set[int]:
    return {int(entry.params["group"]) for entry in entries if "group" in entry.params}
