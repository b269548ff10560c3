"""A cable: port 2 of one switch is shm:PATH, port 1 of another is the other end of it; a host stands behind each."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from server_programs import EXECUTABLE, Program, compiled
from waiting import wait_for

from catchment.softswitch.admin import SwitchAdmin
from catchment.softswitch.process import SwitchProcess
from catchment.softswitch.shm import Port

LONGEST = 1500


@dataclass(frozen=True, slots=True)
class Bench:
    """Starts the switches; a host behind each, on its own port."""

    folder: Path
    program: Program
    started: list[SwitchProcess] = field(default_factory=list)

    def near(self, options: str = "") -> SwitchProcess:
        """The switch that has the memory of the cable."""
        return self._switch("near", {1: f"shm:{self.folder}/host", 2: f"shm:{self.folder}/cable{options}"})

    def far(self) -> SwitchProcess:
        """The switch at the other end."""
        return self._switch("far", {1: f"cable:{self.folder}/cable", 2: f"shm:{self.folder}/other"})

    def admin(self, name: str) -> SwitchAdmin:
        """Admin socket of the switch `near` or `far`."""
        return SwitchAdmin(self.folder / f"{name}.admin")

    def host(self, name: str) -> Port:
        """Port of `host`, behind near, or `other`, behind far."""
        return Port.attach(self.folder / name, timeout=60.0)

    def _switch(self, name: str, ports: dict[int, str]) -> SwitchProcess:
        switch = SwitchProcess(
            ports=ports,
            program=self.program.shared_object,
            p4info=self.program.p4info_file,
            extra=("--admin", str(self.folder / f"{name}.admin")),
            executable=EXECUTABLE,
        )
        self.started.append(switch)
        return switch


@pytest.fixture(scope="session")
def wires(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """wires.p4: port 1 to 2 and back."""
    return compiled("wires", tmp_path_factory.mktemp("wires"))


@pytest.fixture
def bench(wires: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    bench = Bench(tmp_path_factory.mktemp("c"), wires)
    yield bench
    codes = {switch.stop(grace=60) for switch in bench.started}
    assert codes <= {0, -signal.SIGKILL}, bench.started[0].output


def random_frames(rng: random.Random, count: int) -> list[bytes]:
    """Frames of any length and contents that wires.p4 sends on."""
    return [rng.randbytes(12) + b"\x88\xb5" + rng.randbytes(rng.randrange(LONGEST - 14)) for _ in range(count)]


def passed(sender: Port, receiver: Port, frames: list[bytes]) -> list[bytes]:
    """What comes out when frames are sent, a few at a time, so that no queue fills."""
    came: list[bytes] = []
    for at in range(0, len(frames), 32):
        some = frames[at : at + 32]
        sender.send(some, timeout=60.0)
        end = len(came) + len(some)
        while len(came) < end:
            got = receiver.receive(timeout=60.0)
            assert got, f"{len(came)} of {end} frames came"
            came += got
    return came


def test_frames_pass_both_ways_as_they_are(bench: Bench, rng: random.Random) -> None:
    bench.near()
    bench.far()
    with bench.admin("far") as far, bench.host("host") as host, bench.host("other") as other:
        wait_for(lambda: bool(far.port(1)["up"]), "the cable up")
        there, back = random_frames(rng, 1000), random_frames(rng, 1000)
        assert passed(host, other, there) == there
        assert passed(other, host, back) == back
        assert (far.port(1)["rx_packets"], far.port(1)["tx_packets"]) == (1000, 1000)


def test_who_is_there_first_waits_for_the_other_switch_and_for_its_return(bench: Bench, rng: random.Random) -> None:
    far_switch = bench.far()
    with bench.admin("far") as far, bench.host("other") as other:
        assert not far.port(1)["up"]
        wait_for(lambda: "is a switch running with --port N=shm:PATH?" in far_switch.output, "what is missing, said")
        near = bench.near()
        wait_for(lambda: bool(far.port(1)["up"]), "the cable up")
        near.kill()
        wait_for(lambda: not far.port(1)["up"], "the killed switch missed")
        other.send(random_frames(rng, 1), timeout=60.0)
        wait_for(lambda: far.port(1)["drops"]["no such port"] == 1, "the frame for nobody counted")
        bench.near()
        wait_for(lambda: bool(far.port(1)["up"]), "the cable back")
        with bench.host("host") as host:
            frames = random_frames(rng, 100)
            assert passed(host, other, frames) == frames
    assert "the other switch is gone" in far_switch.output


def test_a_port_that_another_process_has_is_asked_for_until_it_is_free(bench: Bench, rng: random.Random) -> None:
    bench.near()
    with bench.host("cable") as holder:
        far_switch = bench.far()
        with bench.admin("far") as far:
            wait_for(lambda: "port 2 belongs to process" in far_switch.output, "who has the port, said")
            assert not far.port(1)["up"]
            holder.close()
            wait_for(lambda: bool(far.port(1)["up"]), "the cable up")
    assert far_switch.output.count("belongs to process") == 1
    assert "is at the other end" in far_switch.output


def test_what_a_full_cable_does_not_take_is_counted(bench: Bench, rng: random.Random) -> None:
    bench.near(",cells=64")
    bench.far()
    frames = random_frames(rng, 6000)
    with bench.admin("near") as near, bench.admin("far") as far, bench.host("host") as host:
        wait_for(lambda: bool(far.port(1)["up"]), "the cable up")
        other = bench.host("other")  # receives nothing: its ring, both queues and the cable fill
        host.send(frames, timeout=60.0)

        came: list[bytes] = []

        def all_accounted_for() -> bool:
            came.extend(other.receive(timeout=0.05))
            lost = near.port(2)["drops"]["transmit queue full"] + far.port(2)["drops"]["transmit queue full"]
            passed = far.port(2)["tx_packets"]
            return lost + passed == len(frames) and len(came) == passed

        wait_for(all_accounted_for, "each frame passed or counted as lost")
        other.close()
        assert len(came) == far.port(2)["tx_packets"]
        places = {frame: place for place, frame in enumerate(frames)}
        order = [places[frame] for frame in came]
        assert order == sorted(order)
        assert len(came) < len(frames)
