"""Arrays of counters and meters: clearing, configuring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from catchment.controlplane.client.entries import meter_values, to_message
from catchment.controlplane.client.switch import SwitchClient
from catchment.wire.generated import p4runtime_pb2


def clear_counter(client: SwitchClient, name: str, indices: Iterable[int]) -> None:
    """Set cells of a counter to zero.

    Raises:
        SwitchError: there is no such counter, or an index is beyond it.
    """
    counter = client.p4info.find("counter", name).preamble.id
    updates = []
    for index in indices:
        entity = p4runtime_pb2.Entity()
        entity.counter_entry.counter_id = counter
        entity.counter_entry.index.index = index
        entity.counter_entry.data.SetInParent()
        updates.append(("modify", entity, f"clear {name}[{index}]"))
    client.write_entities(updates)  # type: ignore[arg-type]


def clear_direct_counter(client: SwitchClient, table: str) -> None:
    """Set the direct counters of all entries of a table to zero."""
    updates = []
    for entry in client.direct_counters(table):
        entity = p4runtime_pb2.Entity()
        entity.direct_counter_entry.table_entry.CopyFrom(to_message(entry, client.p4info, with_action=False))
        entity.direct_counter_entry.data.SetInParent()
        updates.append(("modify", entity, f"clear the counter of {entry.key()}"))
    client.write_entities(updates)  # type: ignore[arg-type]


def read_meters(client: SwitchClient, name: str) -> dict[int, dict[str, int]]:
    """Index -> rates and bursts of the cells of a meter that have a configuration."""
    query = p4runtime_pb2.Entity()
    query.meter_entry.meter_id = client.p4info.find("meter", name).preamble.id
    return {
        entity.meter_entry.index.index: meter_values(entity.meter_entry.config)
        for entity in client.read_entities(query, f"reading meter {name}")
        if entity.meter_entry.HasField("config")
    }


def write_meters(client: SwitchClient, name: str, cells: Mapping[int, Mapping[str, int] | None]) -> None:
    """Configure cells of a meter; None: back to marking everything green.

    Raises:
        SwitchError: there is no such meter, or the switch refuses a configuration.
    """
    meter = client.p4info.find("meter", name).preamble.id
    updates = []
    for index, config in cells.items():
        entity = p4runtime_pb2.Entity()
        entity.meter_entry.meter_id = meter
        entity.meter_entry.index.index = index
        if config is not None:
            entity.meter_entry.config.CopyFrom(p4runtime_pb2.MeterConfig(**config))
        updates.append(("modify", entity, f"configure {name}[{index}]"))
    client.write_entities(updates)  # type: ignore[arg-type]
