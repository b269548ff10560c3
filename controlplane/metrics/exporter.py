"""The Prometheus endpoint: asks the switches when it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from catchment.controlplane.diagnosis.stats import SwitchStats
from catchment.controlplane.metrics import definitions as d

Ports = Iterable[Mapping[str, Any]]
"""Port statistics as `catchment.softswitch.admin.SwitchAdmin.ports` gives them."""


class SwitchCollector(Collector):
    """Gives Prometheus what `look` finds.

    Args:
        look: switch name -> its statistics and those of its ports; None for a switch that does not answer.
    """

    def __init__(self, look: Callable[[], Mapping[str, tuple[SwitchStats, Ports] | None]]) -> None:
        self._look = look

    def describe(self) -> Iterable[Family]:
        """The metrics without values, so that registering one asks no switch."""
        return _families().values()

    def collect(self) -> Iterator[Family]:
        """Every metric of every switch."""
        families = _families()
        for switch, found in self._look().items():
            families[d.UP].add_metric([switch], 0 if found is None else 1)
            if found is not None:
                _add_program(families, found[0])
                _add_ports(families, found[0], found[1])
        yield from families.values()


def serve(collector: SwitchCollector, address: str, port: int) -> int:
    """Answer Prometheus at http://ADDRESS:PORT/metrics from a thread; returns the port, chosen when it was 0.

    Raises:
        OSError: the address is in use, or not one of this machine.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    server, _ = start_http_server(port, addr=address, registry=registry)
    return int(server.server_port)


def _families() -> dict[d.Metric, Any]:
    return {
        metric: (CounterMetricFamily if metric.is_counter else GaugeMetricFamily)(
            metric.name, metric.help, labels=metric.labels
        )
        for metric in d.METRICS
    }


def _add_program(families: Mapping[d.Metric, Any], stats: SwitchStats) -> None:
    for traffic in stats.jobs:
        labels = [
            stats.switch, traffic.job, traffic.stream, str(traffic.gen), traffic.member, str(traffic.port)
        ]  # fmt: skip
        families[d.JOB_FRAMES].add_metric(labels, traffic.packets)
        families[d.JOB_BYTES].add_metric(labels, traffic.bytes)
    for reason, packets in stats.drops.items():
        families[d.DROPS].add_metric([stats.switch, reason], packets)
    for lag in stats.lags:
        labels = [stats.switch, lag.job, lag.stream, lag.member]
        families[d.ACK_LAG].add_metric(labels, lag.ack)
        families[d.CREDIT_LAG].add_metric(labels, lag.credit)


def _add_ports(families: Mapping[d.Metric, Any], stats: SwitchStats, ports: Ports) -> None:
    for port in ports:
        labels = [stats.switch, str(port["port"]), stats.ports.get(port["port"], "")]
        families[d.PORT_UP].add_metric(labels, 1 if port["up"] else 0)
        for direction, way in (("in", "rx"), ("out", "tx")):
            families[d.PORT_FRAMES].add_metric([*labels, direction], port[f"{way}_packets"])
            families[d.PORT_BYTES].add_metric([*labels, direction], port[f"{way}_bytes"])
        for cause, frames in port["drops"].items():
            families[d.PORT_DROPS].add_metric([*labels, cause], frames)
