"""What people put on a switch beside what the control plane did: read off it, and put back after a restart.

Entries and default actions of any table, clone sessions, meters, members of action profiles, multicast groups from
FIRST_HAND_GROUP on (the lower ones are for jobs), and faults of the switch's ports.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from catchment.controlplane.client import SwitchClient, TableEntry
from catchment.controlplane.dump.apply import apply_document
from catchment.controlplane.dump.document import FORMAT, SECTIONS
from catchment.controlplane.dump.read import read_document
from catchment.controlplane.state.desired import FIRST_HAND_GROUP, SwitchConfig, is_ours
from catchment.controlplane.state.faults import PortFaults

_GROUPS = "multicast_groups"


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of one switch.

    Attributes:
        document: as `catchment table dump` has it.
        port_faults: port -> faults below the program, as `softswitch --fault` takes them.
    """

    document: Mapping[str, Any] = field(default_factory=dict)
    port_faults: Mapping[int, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.document or self.port_faults)

    def to_json(self) -> str:
        """What is kept, as JSON text."""
        return json.dumps({"document": self.document, "port_faults": self.port_faults}, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Kept:
        """The opposite of `to_json`."""
        data = json.loads(text)
        return cls(data["document"], {int(port): spec for port, spec in data["port_faults"].items()})


def read_kept(client: SwitchClient, parts: Iterable[SwitchConfig], address: str, ports: PortFaults | None) -> Kept:
    """What a switch holds beside these parts.

    Raises:
        SwitchError: it does not answer.
    """
    ours = {client.key(entry) for part in parts for entry in part.entries}

    def by_hand(entry: TableEntry) -> bool:
        return not is_ours(client, entry) and client.key(entry) not in ours

    document = read_document(client, wanted=by_hand)
    document.pop("format", None)
    groups = {number: copies for number, copies in document.pop(_GROUPS, {}).items() if number >= FIRST_HAND_GROUP}
    if groups:
        document[_GROUPS] = groups
    return Kept(document, ports.read(address) if ports is not None else {})


def put_back(kept: Kept, client: SwitchClient, address: str, ports: PortFaults | None) -> None:
    """Give a restarted switch what is kept of it.

    Raises:
        ControlPlaneError: it refuses, or its ports cannot be reached.
    """
    if kept.document:
        apply_document(client, {"format": FORMAT, **{name: {} for name in SECTIONS}, **kept.document})
    if kept.port_faults and ports is not None:
        ports.write(address, kept.port_faults)
