"""What the shell offers at a tab: the names in the P4Info of the program that runs there.

Bash, zsh and fish ask a fresh `catchment` process at every tab, so nothing here may wait long or print anything.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from catchment.cli.target import connect
from catchment.controlplane.client import P4Info
from catchment.controlplane.errors import ControlPlaneError

_TIMEOUT = 1.0  # seconds
_MATCH_HINTS = {2: "exact", 3: "lpm: VALUE/LENGTH", 4: "ternary: VALUE&&&MASK", 5: "range: LOW..HIGH", 6: "optional"}

Offers = list[tuple[str, str]]
"""Words with a remark on each."""


def tables(ctx: typer.Context, incomplete: str) -> Offers:
    """Tables of the program."""
    return _names(ctx, "table", incomplete)


def counters(ctx: typer.Context, incomplete: str) -> Offers:
    """Counters of the program, and tables with a direct one."""
    info = _p4info(ctx)
    if info is None:
        return []
    direct = (info.by_id(counter.direct_table_id) for counter in info.message.direct_counters)
    offers = [(info.short_name("table", table.preamble.name), "direct counter") for table in direct]
    return _names(ctx, "counter", incomplete) + _starting(offers, incomplete)


def registers(ctx: typer.Context, incomplete: str) -> Offers:
    """Registers of the program."""
    return _names(ctx, "register", incomplete)


def meters(ctx: typer.Context, incomplete: str) -> Offers:
    """Meters of the program."""
    return _names(ctx, "meter", incomplete)


def entry_words(ctx: typer.Context, incomplete: str) -> Offers:
    """What may come next in KEY=VALUE... ACTION PARAM=VALUE...: key fields, actions, then that action's parameters."""
    info = _p4info(ctx)
    if info is None:
        return []
    try:
        table = info.find("table", ctx.params.get("table") or "")
    except ControlPlaneError:
        return []
    words = [word for word in ctx.params.get("words") or [] if word != incomplete]
    given = {word.partition("=")[0] for word in words if "=" in word}
    actions = info.actions_of(table)
    chosen = next((actions[word] for word in words if word in actions), None)
    if chosen is not None:
        params = ((f"{param.name}=", f"{param.bitwidth} bits") for param in chosen.params if param.name not in given)
        return _starting(params, incomplete)
    keys = (
        (f"{_short(field.name)}=", f"{field.bitwidth} bits, {_MATCH_HINTS.get(field.match_type, '')}")
        for field in table.match_fields
        if not {field.name, _short(field.name)} & given
    )
    return _starting([*keys, *((name, "action") for name in actions)], incomplete)


def _short(field: str) -> str:
    return field.rpartition(".")[2]


def _starting(offers: Iterable[tuple[str, str]], incomplete: str) -> Offers:
    return [(word, remark) for word, remark in offers if word.startswith(incomplete)]


def _names(ctx: typer.Context, kind: str, incomplete: str) -> Offers:
    info = _p4info(ctx)
    if info is None:
        return []
    return _starting(((info.short_name(kind, name), name) for name in info.names(kind)), incomplete)


def _p4info(ctx: typer.Context) -> P4Info | None:
    switch: Any = ctx.params.get("switch")
    if not switch:
        return None
    topology: Path | None = ctx.params.get("topology")
    try:
        device = ctx.params.get("device_id") or 1
        with connect(switch, topology, device, read_only=True, timeout=_TIMEOUT) as client:
            return client.p4info
    except ControlPlaneError:
        return None
