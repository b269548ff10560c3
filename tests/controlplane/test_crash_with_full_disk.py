"""What a controller gave out while its disk was full counts no more after a crash: nobody works with it unnoticed."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from running_controller import SWITCHES, Place, request, until, vanish
from test_controller import generations
from test_live_store import full_disk

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.records import JobRecord
from catchment.controlplane.deployment.store import read_store
from catchment.controlplane.jobs import JobRequest

GROUP = JobRequest("train", "allreduce", ("w0", "w1", "w2", "w3"), None, 8, grid=(("half", 2),))


def on_switch(place: Place, switch: str) -> set[int]:
    """Generations that a switch lets in."""
    device = place.topology.switch(switch).device_id
    with SwitchClient.connect(place.fakes[switch].address, device, read_only=True, timeout=60.0) as client:
        return {int(entry.match["gen"]) for entry in client.read("jobs")}


def wanted_on(record: JobRecord, switch: str) -> set[int]:
    """Generations of a job's streams there."""
    streams = [stream for plan in record.group.plans for stream in plan.streams]
    return {stream.gen for stream in streams if any(share.switch == switch for share in stream.shares)}


@pytest.mark.parametrize("asked", [request(), GROUP], ids=["job", "group"])
def test_generations_that_the_file_does_not_know_are_replaced(
    place: Place, monkeypatch: pytest.MonkeyPatch, asked: JobRequest
) -> None:
    def stored() -> JobRecord:
        return read_store(place.topology, place.controller.settings.folder).record("train")

    with place.controller.operator() as operator:
        token = operator.create(asked).token
    with ExitStack() as exits:
        member = exits.enter_context(place.controller.join("train", "w0", token))
        other = place.controller.join("train", "w1", token)
        member.endpoint()
        other.endpoint()
        first = generations(member)
        with full_disk(monkeypatch):
            vanish(other)
            assert member.superseded(60)
            second = generations(member)
            assert not first & second
            until(lambda: second <= on_switch(place, "r1"), "the switch has the second generations")
            place.controller.stop()
        assert stored().epoch == 1
        place.controller.start()

        def is_new_everywhere() -> bool:
            third, record = generations(member), stored()
            return (
                not third & (first | second)
                and record.epoch == member.epoch
                and all(on_switch(place, name) == wanted_on(record, name) for name in SWITCHES)
            )

        until(is_new_everywhere, "member, switches and job file have third generations")
