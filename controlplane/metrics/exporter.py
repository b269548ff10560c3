"""The Prometheus endpoint: answers from the latest look at each switch, whatever is dead."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from catchment.controlplane.diagnosis.stats import CONSUMED, SwitchStats
from catchment.controlplane.metrics import definitions as d
from catchment.controlplane.metrics.poller import Poll
from catchment.controlplane.metrics.scrape_server import CONNECTION_SECONDS, ScrapeServer
from catchment.wire.generated.constants import DropReason

_FAMILIES = {
    d.MetricKind.GAUGE: GaugeMetricFamily,
    d.MetricKind.COUNTER: CounterMetricFamily,
    d.MetricKind.HISTOGRAM: HistogramMetricFamily,
}
Ports = Iterable[Mapping[str, Any]]
"""Port statistics as `catchment.softswitch.admin.SwitchAdmin.ports` gives them."""


class SwitchCollector(Collector):
    """Gives Prometheus what the latest looks have found.

    Args:
        latest: switch name -> the latest look: its statistics and those of its ports.
    """

    def __init__(self, latest: Callable[[], Mapping[str, Poll[tuple[SwitchStats, list[dict[str, Any]]]]]]) -> None:
        self._latest = latest

    def describe(self) -> Iterable[Family]:
        """The metrics without values, so that registering one asks no switch."""
        return families((*d.METRICS, *d.RAIL_METRICS)).values()

    def collect(self) -> Iterator[Family]:
        """Every metric of every switch."""
        found = families((*d.METRICS, *d.RAIL_METRICS))
        for switch, poll in self._latest().items():
            found[d.UP].add_metric([switch], 0 if poll.seen is None else 1)
            found[d.POLL_AGE].add_metric([switch], time.monotonic() - poll.at)
            found[d.POLL_SECONDS].add_metric([switch], poll.seconds)
            if poll.seen is not None:
                _add_program(found, poll.seen[0])
                _add_rails(found, poll.seen[0])
                _add_ports(found, *poll.seen)
                _add_clients(found, poll.seen[0])
        yield from found.values()


@dataclass(frozen=True, slots=True)
class Serving:
    """An endpoint that answers.

    Attributes:
        port: of it.
        end: ends it.
    """

    port: int
    end: Callable[[], None]


def serve(collector: Collector, address: str, port: int, *, seconds: float = CONNECTION_SECONDS) -> Serving:
    """Answer Prometheus at http://ADDRESS:PORT/metrics from a thread, at a port of its choice when it is 0.

    A connection lasts for `seconds` at most.

    Raises:
        OSError: the address is in use, or not one of this machine.
    """
    registry = CollectorRegistry()
    registry.register(collector)
    server = ScrapeServer(address, port, make_wsgi_app(registry), seconds=seconds)
    thread = threading.Thread(target=server.serve_forever, name="metrics", daemon=True)
    thread.start()

    def end() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Serving(int(server.server_port), end)


def families(metrics: Iterable[d.Metric]) -> dict[d.Metric, Any]:
    """Metrics without values."""
    return {metric: _FAMILIES[metric.kind](metric.name, metric.help, labels=metric.labels) for metric in metrics}


def add_histogram(
    family: Any, labels: Sequence[str], buckets: Sequence[tuple[float, int]], count: int, total: float
) -> None:
    """Add one histogram.

    Args:
        family: of its metric.
        labels: values of the metric's labels.
        buckets: a bound, and how many values do not exceed it; bounds and numbers grow.
        count: of all values.
        total: their sum.
    """
    cells = [(repr(float(bound)), at_most) for bound, at_most in buckets]
    family.add_metric(labels, [*cells, ("+Inf", count)], total)


def _add_program(families: Mapping[d.Metric, Any], stats: SwitchStats) -> None:
    for traffic in stats.jobs:
        labels = [
            stats.switch, traffic.job, traffic.stream, str(traffic.gen), traffic.member, str(traffic.port)
        ]  # fmt: skip
        families[d.JOB_FRAMES].add_metric(labels, traffic.packets)
        families[d.JOB_BYTES].add_metric(labels, traffic.bytes)
    # A reason that has not happened yet is shown, too: a rate needs a value to begin from.
    reasons = dict.fromkeys((reason.name for reason in DropReason if reason is not DropReason.NONE), 0)
    for reason, packets in (reasons | stats.drops).items():
        families[d.DROPS].add_metric([stats.switch, reason], packets)
    for lag in stats.lags:
        labels = [stats.switch, lag.job, lag.stream, lag.member]
        families[d.ACK_LAG].add_metric(labels, lag.ack)
        families[d.CREDIT_LAG].add_metric(labels, lag.credit)


def _add_rails(families: Mapping[d.Metric, Any], stats: SwitchStats) -> None:
    for use in stats.rails:
        rail, labels = use.report, [stats.switch, use.job, use.report.name]
        families[d.RAIL_UP].add_metric(labels, 1 if rail.state == "up" else 0)
        families[d.RAIL_BYTES].add_metric(labels, rail.bytes)
        families[d.RAIL_RATE].add_metric(labels, rail.rate)
        families[d.RAIL_START].add_metric(labels, rail.start)
        families[d.RAIL_INCIDENTS].add_metric(labels, rail.incidents)
        families[d.RAIL_LAST].add_metric(labels, rail.last_incident)


def _add_clients(families: Mapping[d.Metric, Any], stats: SwitchStats) -> None:
    for metric, name in ((d.FAILED_HANDSHAKES, "failed_handshakes"), (d.CUT_OFF, "cut_off")):
        if name in stats.clients:
            families[metric].add_metric([stats.switch], stats.clients[name])


def _add_ports(families: Mapping[d.Metric, Any], stats: SwitchStats, ports: Ports) -> None:
    for port in ports:
        labels = [stats.switch, str(port["port"]), stats.ports.get(port["port"], "")]
        families[d.PORT_UP].add_metric(labels, 1 if port["up"] else 0)
        for direction, way in (("in", "rx"), ("out", "tx")):
            families[d.PORT_FRAMES].add_metric([*labels, direction], port[f"{way}_packets"])
            families[d.PORT_BYTES].add_metric([*labels, direction], port[f"{way}_bytes"])
        for cause, frames in port["drops"].items():
            if cause == CONSUMED:
                families[d.PORT_CONSUMED].add_metric(labels, frames)
            else:
                families[d.PORT_DROPS].add_metric([*labels, cause], frames)
