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
    gone = [entry for entry in entries if int(entry.match["gen"]) not in known and not is_foreign(entry)]
    if not gone:
        return 0
    groups = _groups(gone) - _groups(entry for entry in entries if entry not in gone)
    client.delete_groups(groups & set(client.groups()))  # first: entries that are left of it say whose they are
    client.delete(*gone)
    return len(gone)


def _groups(entries: Iterable[TableEntry]) -> set[int]:
    return {int(entry.params["group"]) for entry in entries if "group" in entry.params}
