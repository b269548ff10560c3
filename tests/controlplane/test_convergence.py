"""The controller keeps switches as they should be while it is connected, and leaves the jobs of others alone."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from fake_switch import RunningFake
from running_controller import PATIENT, SWITCHES, Place, RunningController, request, until

from catchment.checkout import ROOT
from catchment.controlplane.client import SwitchClient
from catchment.controlplane.client.election import HIGHEST
from catchment.controlplane.controller.errors import ControllerError
from catchment.controlplane.deployment import lifecycle
from catchment.controlplane.jobs import JobError
from catchment.controlplane.programs.pipeline_config import PipelineConfig

pytestmark = pytest.mark.parametrize("timing", [PATIENT], ids=["patient"])


def connect(place: Place, switch: str) -> SwitchClient:
    """A client of somebody else who may write."""
    device = place.topology.switch(switch).device_id
    return SwitchClient.connect(place.fakes[switch].address, device, name=switch, timeout=60.0)


def test_what_somebody_deletes_or_changes_comes_back(place: Place, rng: random.Random) -> None:
    with place.controller.operator() as operator:
        operator.create(request("one"))
        operator.create(request("two", workers=("w0", "w3")))
    before = place.all_contents()

    def is_as_it_was(switch: str) -> bool:
        return bool(place.contents(switch) == before[switch])

    for table in ("jobs", "receivers", "l2", "bindings"):
        switch = rng.choice(SWITCHES)
        with connect(place, switch) as client:
            client.delete(*client.read(table))
        until(partial(is_as_it_was, switch), f"{table} of {switch} is whole again")
    with connect(place, "r1") as client:
        entry = rng.choice(client.read("receivers"))
        client.modify(type(entry)(entry.table, entry.match, entry.action, {**entry.params, "dst_udp": 1}))
        (group, ports), *_ = [(g, p) for g, p in client.groups().items() if g > 1]
        client.set_group(group, ports[:1])
    until(lambda: place.contents("r1") == before["r1"], "the changed entry and group are right again")
    with place.controller.operator() as operator:  # counts a repair once it is made
        until(lambda: sum(switch.repairs for switch in operator.switches()) >= 5, "every repair is counted")


def test_it_is_repaired_while_the_other_client_is_still_there(place: Place) -> None:
    with place.controller.operator() as operator:
        operator.create(request())
        before = place.contents("r1")
        with connect(place, "r1") as client:
            for _ in range(3):
                client.delete(*client.read("jobs"))
                until(lambda: place.contents("r1") == before, "its entries are back")


def test_whoever_takes_the_highest_id_is_named_and_the_switch_is_repaired_when_he_leaves(place: Place) -> None:
    with place.controller.operator() as operator:
        operator.create(request())
        before = place.contents("r1")
        with connect(place, "r1") as client:
            client._exchanges.candidate.election_id = HIGHEST
            client._session._become_primary(client._exchanges.candidate.bid)
            client.delete(*client.read("jobs"))

            def down() -> list[str]:
                return [s.detail for s in operator.switches() if s.name == "r1" and s.state == "down"]

            # Its control stream may be seen to end before the next one is refused.
            until(
                lambda: any("2^128-1" in said and "End that client" in said for said in down()), "r1 is down, and why"
            )
        until(lambda: place.contents("r1") == before, "r1 is as it was")
        until(lambda: all(s.state == "up" for s in operator.switches()), "and up")


def test_another_program_is_replaced(place: Place, tmp_path: Path) -> None:
    with place.controller.operator() as operator:
        operator.create(request())
        before = place.contents("r1")
        other = tmp_path / "other.so"
        other.write_bytes(b"another program")
        p4info = ROOT / "p4src" / "p4info" / "p4sgd_64.p4info.txtpb"
        with connect(place, "r1") as client:
            client.push_pipeline(PipelineConfig(p4info, other))
            until(lambda: place.fakes["r1"].switch.config == b"program", "r1 runs its own program")
        until(lambda: place.contents("r1") == before, "with all it had")
        until(lambda: all(s.state == "up" for s in operator.switches()), "r1 is up")


@pytest.fixture
def second(place: Place, tmp_path: Path) -> RunningController:
    """Another controller of the same switches, with a job file of its own; it is not started yet."""
    addresses = {name: fake.address for name, fake in place.fakes.items()}
    return RunningController(place.topology, addresses, tmp_path / "second", PATIENT)


def jobs_on(place: Place, switch: str) -> set[int]:
    """Generations on a switch."""
    fake: RunningFake = place.fakes[switch]
    with SwitchClient.connect(
        fake.address, place.topology.switch(switch).device_id, read_only=True, timeout=60.0
    ) as client:
        return {int(entry.match["gen"]) for entry in client.read("jobs")}


def compared(controller: RunningController, looks: int = 2) -> None:
    """Wait until a controller has compared every switch so many times more."""
    with controller.operator() as operator:
        begin = {switch.name: switch.comparisons for switch in operator.switches()}
        until(
            lambda: all(s.state == "up" and s.comparisons >= begin[s.name] + looks for s in operator.switches()),
            "every switch is compared",
        )


@pytest.mark.sampled(4)
def test_a_controller_with_a_new_job_file_deletes_nobodys_jobs(place: Place, second: RunningController) -> None:
    with place.controller.operator() as operator:
        operator.create(request("first"))
    before = place.all_contents()
    with second, second.operator() as other:
        compared(second)
        compared(place.controller)
        assert place.all_contents() == before
        assert all("left alone" in switch.remark for switch in other.switches())
        mine = other.create(request("first")).job  # a name of its own realm
        assert jobs_on(place, "r1") > set()
        compared(place.controller)  # it knows what the other holds from then on
        with place.controller.operator() as operator:
            operator.create(request("later"))
            compared(second)
            compared(place.controller)
            held = jobs_on(place, "r1")
            assert len(held) == 6, "two jobs of one, one of the other, two streams each"
            assert {stream.gen for stream in mine.members[0].description.streams} < held
            rows = [(entry.match["gen"], entry.params["job"]) for entry in connect(place, "r1").read("jobs")]
            assert len({row for _, row in rows}) == len({gen for gen, _ in rows}), "no row of registers is shared"
            other.remove("first")
            compared(place.controller)
            assert len(jobs_on(place, "r1")) == 4


@pytest.mark.sampled(4)
def test_two_controllers_that_create_at_the_same_time_share_nothing(place: Place, second: RunningController) -> None:
    """Neither knows of the other's job when it plans its own."""
    together = threading.Barrier(2)

    def create(controller: RunningController, name: str) -> None:
        with controller.operator() as operator:
            together.wait(60)
            for number in range(4):
                operator.create(request(f"{name}{number}"))

    with second, ThreadPoolExecutor(2) as threads:
        compared(second)
        made = [
            threads.submit(create, place.controller, "first"),
            threads.submit(create, second, "second"),
        ]
        for one in made:
            one.result(120)
        compared(place.controller)
        compared(second)
        for switch in SWITCHES:
            held: dict[str, set[tuple[int, int]]] = {"row": set(), "group": set()}
            slots: list[tuple[int, int]] = []
            device = place.topology.switch(switch).device_id
            with SwitchClient.connect(place.fakes[switch].address, device, read_only=True, timeout=60.0) as client:
                for entry in client.read("jobs"):
                    gen = int(entry.match["gen"])
                    held["row"].add((int(entry.params["job"]), gen))
                    if entry.action.endswith("worker") and int(entry.params["mask"]):
                        held["group"].add((int(entry.params["group"]), gen))
                        base = int(entry.params["base"])
                        slots += [(slot, gen) for slot in range(base, base + int(entry.params["mask"]) + 1)]
                groups = client.groups()
            for kind, pairs in (*held.items(), ("slot", set(slots))):
                assert len({number for number, _ in pairs}) == len(pairs), f"two jobs have a {kind} of {switch}"
            assert all(groups[group] for group, _ in held["group"])


def test_a_controller_that_lost_its_job_file_leaves_living_jobs_alone(place: Place) -> None:
    with place.controller.operator() as operator:
        operator.create(request())
    before = place.all_contents()
    place.controller.stop()
    for path in place.controller.settings.folder.glob("lab.jobs.sqlite*"):
        path.unlink()
    place.controller.start()
    place.until_up()
    compared(place.controller)
    assert place.all_contents() == before
    with place.controller.operator() as operator:
        assert operator.jobs() == []


def test_a_job_whose_removal_fails_stays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with place.controller.operator() as operator:
        operator.create(request())
        before = place.all_contents()

        def refuse(*_: object) -> None:
            raise JobError("cannot write the job file: its disk is full")

        with monkeypatch.context() as patch:
            patch.setattr(lifecycle, "remove_job_where_possible", refuse)
            with pytest.raises(ControllerError, match="disk is full"):
                operator.remove("train")
        assert [job.state for job in operator.jobs()] == ["up"]
        assert place.all_contents() == before
        operator.remove("train")
        assert operator.jobs() == []
