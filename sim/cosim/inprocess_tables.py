"""A P4 program in this process, filled from the tables of its slow model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from catchment.sim.golden.switch_tables import Root, Tables
from catchment.sim.world.star import Inject
from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch


def embedded_switch(program: Path, tables: Tables) -> Inject:
    """The compiled program itself, with these groups, addresses, receivers and jobs."""
    switch = Switch(build(program))
    for group, ports in tables.groups.items():
        switch.multicast(group, ports)
    for ip, mac in tables.own_addresses.items():
        switch.insert("own_addresses", {"target": ip}, "answer", mac=mac)
    for (gen, port), to in tables.receivers.items():
        switch.insert("receivers", {"gen": gen, "port": port}, "rewrite", **asdict(to))
    for (gen, port), row in tables.jobs.items():
        action = "root" if isinstance(row, Root) else "worker"
        switch.insert("jobs", {"gen": gen, "port": port}, action, **asdict(row))
    return switch.inject
