"""What a controller knows of its switches, jobs and members, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client.core import Metric as Family
from prometheus_client.registry import Collector

from catchment.controlplane.controller.core import Controller
from catchment.controlplane.controller.door import Door
from catchment.controlplane.controller.roster import Presence
from catchment.controlplane.controller.switches import SwitchState
from catchment.controlplane.metrics import definitions as d
from catchment.controlplane.metrics.exporter import add_histogram, families


class ControllerCollector(Collector):
    """Gives Prometheus what a controller has in memory: it asks nobody.

    Args:
        controller: that runs.
        door: of its TCP addresses, if it has any.
    """

    def __init__(self, controller: Controller, door: Door | None = None) -> None:
        self._controller = controller
        self._door = door

    def describe(self) -> Iterable[Family]:
        """The metrics without values."""
        return families(d.CONTROLLER_METRICS).values()

    def collect(self) -> Iterator[Family]:
        """Every metric of every switch and job."""
        found: dict[d.Metric, Any] = families(d.CONTROLLER_METRICS)
        for name, agent in list(self._controller.switches.items()):
            found[d.SWITCH_KEPT].add_metric([name], 1 if agent.state is SwitchState.UP else 0)
            found[d.RESTORES].add_metric([name], agent.restores)
            found[d.RESTORE_SECONDS].add_metric([name], agent.restore_seconds)
            for metric, times in (
                (d.RESTORE_TIMES, agent.restore_times),
                (d.COMPARE_TIMES, agent.compare_times),
            ):
                add_histogram(found[metric], [name], times.buckets(), times.count, times.total)
            found[d.COMPARISONS].add_metric([name], agent.comparisons)
            found[d.REPAIRS].add_metric([name], agent.repairs)
        for name, watch in list(self._controller.jobs.items()):
            lasted = watch.epoch_times
            add_histogram(found[d.EPOCH_TIMES], [name], lasted.buckets(), lasted.count, lasted.total)
            found[d.EPOCH].add_metric([name], watch.record.epoch)
            present = Counter(seat.presence for seat in watch.roster.seats.values())
            for presence in Presence:
                found[d.MEMBERS].add_metric([name, str(presence)], present[presence])
        if self._door is not None:
            for how, count in list(self._door.ended.items()):
                found[d.REFUSED_CONNECTIONS].add_metric([str(how)], count)
        found[d.FILE_BEHIND].add_metric([], 1 if self._controller.store.trouble else 0)
        yield from found.values()
