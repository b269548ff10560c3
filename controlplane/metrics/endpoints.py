"""What a program's endpoints count, for Prometheus.

endpoints = EndpointCollector()
prometheus_client.REGISTRY.register(endpoints)
with membership.endpoint() as end:
    endpoints.watch(membership.description.job, "w0", end, epoch=lambda: membership.epoch)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from catchment.controlplane.metrics import definitions as d
from catchment.controlplane.metrics.exporter import add_histogram, families


class Counted(Protocol):
    """An endpoint or all-reducer."""

    def stats(self) -> dict[str, Any]:
        """Give its counters, as docs/reference/endpoint.md has them."""


@dataclass(frozen=True, slots=True)
class _Watched:
    endpoint: Counted
    epoch: Callable[[], int]


def _first_epoch() -> int:
    return 1


class EndpointCollector(Collector):
    """Gives Prometheus what endpoints of this process count: it asks no other process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watched: dict[tuple[str, str], _Watched] = {}

    def watch(self, job: str, host: str, endpoint: Counted, *, epoch: Callable[[], int] = _first_epoch) -> None:
        """Show an endpoint from now on, in the place of an earlier one of the same job and host.

        Args:
            job: name of its job.
            host: name of its host.
            endpoint: whose counters are read at every scrape.
            epoch: gives the epoch that it works in.
        """
        with self._lock:
            self._watched[job, host] = _Watched(endpoint, epoch)

    def describe(self) -> Iterable[Family]:
        """The metrics without values."""
        return families(d.ENDPOINT_METRICS).values()

    def collect(self) -> Iterator[Family]:
        """Every metric of every endpoint."""
        found: dict[d.Metric, Any] = families(d.ENDPOINT_METRICS)
        with self._lock:
            watched = list(self._watched.items())
        for (job, host), one in watched:
            stats, labels = one.endpoint.stats(), [job, host]
            found[d.ROUND_TRIP].add_metric(labels, stats["round_trip"])
            trips = stats["round_trips"]
            add_histogram(found[d.ROUND_TRIP_TIMES], labels, trips["buckets"], trips["count"], trips["total"])
            found[d.PUSHES].add_metric(labels, stats["push_latency"]["count"])
            found[d.PUSH_SECONDS].add_metric(labels, stats["push_latency"]["total"])
            for metric, name in _COUNTERS.items():
                found[metric].add_metric(labels, stats[name])
            for reason, frames in stats["rejects"].items():
                found[d.REJECTS].add_metric([*labels, reason], frames)
            found[d.EPOCHS].add_metric(labels, one.epoch())
        yield from found.values()


_COUNTERS = {
    d.RETRANSMISSIONS: "retransmissions",
    d.TIMEOUTS: "timeouts",
    d.SENT: "frames_sent",
    d.RECEIVED: "frames_received",
}
