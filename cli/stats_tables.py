"""The tables of `catchment stats`, at one moment or with rates between two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from catchment.cli.output import make_table
from catchment.controlplane.diagnosis.stats import CONSUMED, SwitchStats

Look = tuple[SwitchStats, list[dict[str, Any]]]
"""What a switch counted, and its ports' statistics."""
_RAIL_COLUMNS = ("job", "rail", "state", "goes over", "carried", "incidents")


def tables(
    stats: SwitchStats, ports: Sequence[Mapping[str, Any]], *, before: Look | None = None, seconds: float = 0.0
) -> list[Any]:
    """Tables (or a remark in place of an empty one) of one switch; rates when there is an earlier look."""

    def rate(now: int, then: int | None) -> list[str]:
        if before is None:
            return []
        return ["" if then is None else f"{max(0, now - then) / seconds:,.0f}"]

    per_second = [] if before is None else ["per s"]
    old_drops = before[0].drops if before else {}
    old_jobs = {(t.gen, t.port): t.packets for t in before[0].jobs} if before else {}
    old_ports = {port["port"]: port for port in before[1]} if before else {}
    drops = [(reason, packets, *rate(packets, old_drops.get(reason, 0))) for reason, packets in stats.drops.items()]
    jobs = [
        (t.job, t.stream, t.gen, t.port, t.member, t.packets, *rate(t.packets, old_jobs.get((t.gen, t.port))), t.bytes)
        for t in stats.jobs
    ]
    lags = [(lag.job, lag.stream, lag.member, lag.ack, lag.credit) for lag in stats.lags]
    counted = {port["port"]: port for port in ports}
    plugged = [
        (number, stats.ports.get(number, ""), *_port(counted.get(number), old_ports.get(number), rate))
        for number in sorted({*stats.ports, *counted})
    ]
    name = stats.switch
    rails = [
        (use.job, use.report.name, use.report.state, use.report.carrier, f"{use.share:.1%}", use.report.incidents)
        for use in stats.rails
    ]
    columns = ("port", "connected", "link", "frames in", *per_second, "frames out", *per_second, "dropped")
    return [
        make_table(f"{name}: drops", ("reason", "packets", *per_second), drops),
        make_table(
            f"{name}: packets of jobs, as they arrive",
            ("job", "stream", "gen", "port", "member", "packets", *per_second, "bytes"),
            jobs,
        ),
        make_table(f"{name}: behind the furthest member", ("job", "stream", "member", "ack", "credit"), lags),
        *([make_table(f"{name}: rails", _RAIL_COLUMNS, rails)] if rails else []),
        make_table(f"{name}: ports", columns, plugged),
    ]


def _port(port: Mapping[str, Any] | None, before: Mapping[str, Any] | None, rate: Any) -> list[Any]:
    if port is None:
        return []
    cells: list[Any] = ["up" if port["up"] else "down"]
    for way in ("rx_packets", "tx_packets"):
        cells += [port[way], *rate(port[way], before[way] if before else None)]
    dropped = {cause: frames for cause, frames in port["drops"].items() if frames and cause != CONSUMED}
    return [*cells, " ".join(f"{cause}: {frames}" for cause, frames in dropped.items())]
