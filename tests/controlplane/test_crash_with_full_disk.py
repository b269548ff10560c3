"""What a controller gave out while its disk was full counts no more after a crash: nobody works with it unnoticed."""

from __future__ import annotations

from contextlib import ExitStack

import pytest
from running_controller import SWITCHES, Place, request, until
from test_controller import generations
from test_live_store import full_disk

from catchment.controlplane.client import SwitchClient
from catchment.controlplane.deployment.store import read_store


def on_switch(place: Place, switch: str) -> set[int]:
    """Generations that a switch lets in."""
    device = place.topology.switch(switch).device_id
    with SwitchClient.connect(place.fakes[switch].address, device, read_only=True, timeout=60.0) as client:
        return {int(entry.match["gen"]) for entry in client.read("jobs")}


def test_generations_that_the_file_does_not_know_are_replaced(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.controller.operator() as operator:
        token = operator.create(request()).token
    with ExitStack() as exits:
        member = exits.enter_context(place.controller.join("train", "w0", token))
        other = place.controller.join("train", "w1", token)
        member.endpoint()
        other.endpoint()
        first = generations(member)
        with full_disk(monkeypatch):
            other._end()  # as when its process dies
            assert member.superseded(60)
            second = generations(member)
            assert not first & second
            until(lambda: on_switch(place, "r1") == second, "the switch has the second generations")
            place.controller.stop()
        assert read_store(place.topology, place.controller.settings.folder).record("train").epoch == 1
        place.controller.start()

        def is_new_everywhere() -> bool:
            third = generations(member)
            stored = read_store(place.topology, place.controller.settings.folder).record("train")
            return (
                not third & (first | second)
                and stored.epoch == member.epoch
                and all(on_switch(place, name) == third for name in SWITCHES)
            )

        until(is_new_everywhere, "member, switches and job file have third generations")
