"""What people put on one switch, through its restarts and the controller's."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.store import Transactions
from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.state.desired import SwitchConfig
from catchment.controlplane.state.faults import PortFaults
from catchment.controlplane.state.kept import Kept, put_back, read_kept

_log = logging.getLogger(__name__)


class Keeper:
    """Notes and puts back; called in threads.

    Args:
        switch: its name.
        address: of its P4Runtime server.
        store: where it is noted.
        ports: reaches its ports' faults; None where nothing does.
    """

    def __init__(self, switch: str, address: str, store: Transactions, ports: PortFaults | None) -> None:
        self._switch = switch
        self._address = address
        self._store = store
        self._ports = ports

    def note(self, client: SwitchClient, parts: Iterable[SwitchConfig]) -> None:
        """Note what the switch holds beside these parts.

        Raises:
            SwitchError: it does not answer.
        """
        content = read_kept(client, parts, self._address, self._ports).to_json()
        with self._store() as stored:
            stored.can_wait = True
            stored.keep(self._switch, content)

    def put_back(self, client: SwitchClient) -> None:
        """Give a switch that came back empty what is noted; what it refuses is logged, and does not keep it down."""
        with self._store() as stored:
            content = stored.kept(self._switch)
        kept = Kept() if content is None else Kept.from_json(content)
        if not kept:
            return
        try:
            put_back(kept, client, self._address, self._ports)
        except ControlPlaneError as error:
            _log.warning("switch %s: what people had put on it cannot be restored: %s", self._switch, error)
