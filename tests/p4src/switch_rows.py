"""The model's tables as P4Runtime-shaped rows: names as in P4Info, integers as values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field

from catchment.sim.golden.switch_tables import Fault, Tables, Worker
from catchment.sim.golden.tags import halves


@dataclass(frozen=True)
class Row:
    """One entry; `match` values are integers, or (value, mask) for ternary fields; no match: the default action."""

    table: str
    action: str
    match: dict[str, int | tuple[int, int]] = field(default_factory=dict)
    params: dict[str, int] = field(default_factory=dict)
    priority: int = 0


def rows(tables: Tables) -> Iterator[Row]:
    """Every row of `tables` but the multicast groups."""
    for (gen, port), entry in tables.jobs.items():
        action = "worker" if isinstance(entry, Worker) else "root"
        yield Row("jobs", action, {"gen": gen, "port": port}, {k: int(v) for k, v in asdict(entry).items()})
    for (gen, port), receiver in tables.receivers.items():
        yield Row("receivers", "rewrite", {"gen": gen, "port": port}, asdict(receiver))
    for gen in tables.packed:
        yield Row("packed", "halves", {"gen": gen})
    yield from _keys(tables)
    for ip, mac in tables.own_addresses.items():
        yield Row("own_addresses", "answer", {"target": ip}, {"mac": mac})
    for port, host in tables.bindings.items():
        yield Row("bindings", "trunk" if host is None else "host", {"port": port}, {} if host is None else asdict(host))
    if not tables.strangers:
        yield Row("bindings", "stranger")
    for ip, own in tables.switch_addresses.items():
        yield Row("switch_addresses", "own" if own else "other", {"address": ip})
    for mac, port in tables.l2.items():
        yield Row("l2", "forward", {"dst": mac}, {"port": port})
    if tables.flood_group is not None:
        yield Row("l2", "flood", {}, {"group": tables.flood_group})
    for name, faults in (("ingress_faults", tables.ingress_faults), ("egress_faults", tables.egress_faults)):
        for fault in faults:
            yield _fault(name, fault)


def _fault(table: str, fault: Fault) -> Row:
    match: dict[str, int | tuple[int, int]] = {"port": fault.port}
    if fault.type_mask:
        match["type"] = (fault.type, fault.type_mask)
    return Row(table, "maybe_drop", match, {"threshold": fault.threshold}, fault.priority)


def _keys(tables: Tables) -> Iterator[Row]:
    for (gen, port), said in tables.tags.items():
        k0, k1 = halves(said.key)
        params = {"k0": k0, "k1": k1, "wid": said.wid}
        if said.term_bit:
            odd_k0, odd_k1 = halves(said.odd)
            params |= {"odd_k0": odd_k0, "odd_k1": odd_k1, "term_bit": said.term_bit}
        yield Row("tags", "termed" if said.term_bit else "keyed", {"gen": gen, "port": port}, params)
