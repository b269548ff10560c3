"""What a peer that runs the program sends to itself: it lies beside the ring, at its place among the ring's frames."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shm_ports import PATIENCE, inside, take

from catchment.controlplane.client import MulticastGroup, SwitchClient
from catchment.softswitch.process import SwitchProcess

if TYPE_CHECKING:
    from inside_switch import Launch

pytest_plugins = ["shm_switch", "inside_switch"]

# Beside the ring are 512 KiB: 53 frames of the longest cells, as many as a ring of two cells has, 248 of 2112 bytes.
OPTIONS = ("", ",cells=2,bytes=2112", ",cells=512,bytes=2112")

Start = Callable[..., tuple[Any, Any]]


@pytest.fixture
def switches() -> list[SwitchProcess]:
    """Those that were started."""
    return []


@pytest.fixture
def start(launch_inside: Launch, switches: list[SwitchProcess], folder: Path, wires: tuple[Path, Path]) -> Start:
    """Peers of ports 1 and 2, to both of which frames to all go, and to no other."""

    def started(options: str = "") -> tuple[Any, Any]:
        switch = launch_inside(options=options)
        switches.append(switch)
        with SwitchClient.connect(switch.address, p4info=wires[1]) as client:
            client.insert(MulticastGroup.of_ports(1, [1, 2]))
        return inside(folder / "1"), inside(folder / "2")

    return started


def to_all(number: int, length: int = 16) -> bytes:
    """A frame that comes back to who has sent it."""
    return b"to-all-ports\x88\xb7" + number.to_bytes(4, "big") + bytes(length)


def to_other(number: int, length: int = 16) -> bytes:
    """A frame that goes to the other port alone."""
    return b"to-the-other\x08\x00" + number.to_bytes(4, "big") + bytes(length)


@pytest.mark.parametrize("options", OPTIONS)
def test_frames_have_one_order_whoever_has_sent_them(start: Start, options: str, rng: random.Random) -> None:
    """And each comes once, however many wait: in rings of two cells the switch keeps the rest."""
    ports = start(options)
    sent: list[list[bytes]] = [[], []]
    got: list[list[bytes]] = [[], []]
    for number in range(400):
        sender = rng.randrange(2)
        burst = [rng.choice((to_all, to_other))(number, rng.randrange(1800)) for _ in range(rng.choice((1, 2, 5, 40)))]
        if options == OPTIONS[1]:
            burst = burst[:1]  # what the switch sends for others may come later than what is run meanwhile
        for frame in burst:
            while ports[sender].send([frame]) == 0:
                pass
        for frame in burst:
            sent[1 - sender].append(frame)
            if frame.startswith(b"to-all"):
                sent[sender].append(frame)
        for receiver in (0, 1):
            if rng.random() < 0.1 or len(sent[receiver]) - len(got[receiver]) > 150 or options == OPTIONS[1]:
                got[receiver] += take(ports[receiver], len(sent[receiver]) - len(got[receiver]))
    for receiver in (0, 1):
        got[receiver] += take(ports[receiver], len(sent[receiver]) - len(got[receiver]))
    assert got == sent
    assert all(port.receive(0.0) == [] for port in ports)


def test_own_frames_may_be_taken_before_those_of_others(start: Start, rng: random.Random) -> None:
    one, two = start()
    for number in range(200):
        own = [to_all(8 * number + i, rng.randrange(1400)) for i in range(rng.randrange(1, 6))]
        others = [to_other(number, rng.randrange(1400)) for _ in range(rng.randrange(6))]
        order = [(one, frame) for frame in own] + [(two, frame) for frame in others]
        rng.shuffle(order)
        for port, frame in order:
            port.send([frame])
        own = [frame for port, frame in order if port is one]
        early = rng.randrange(len(own) + 1)
        assert one.receive_own(early) == own[:early]
        left = [frame for _, frame in order if frame not in own[:early]]
        assert take(one, len(left)) == left
        assert one.receive_own(1) == one.receive(0.0) == []
        assert take(two, len(own)) == own


def test_a_peer_that_has_sent_something_to_itself_does_not_wait(start: Start) -> None:
    one, _ = start()
    one.send([to_all(1)])
    assert one.waits(PATIENCE)
    assert one.receive_own(2) == [to_all(1)]
    assert not one.waits(0.0)


def test_a_peer_knows_of_its_own_frames_once_they_have_run(start: Start) -> None:
    """Some 32 KiB of what it queues run at once."""
    one, two = start()
    for _ in range(3):
        sent = [to_all(number, 1500) for number in range(40)]
        known = one.queue_in_place(sent)
        ran = known.index(True) + 1
        assert 32 * 1024 // 1600 <= ran <= 32 * 1024 // 1500 + 1
        assert known == [number + 1 >= ran for number in range(40)]
        assert one.receive_own(40) == sent[:ran]
        assert one.flush_if_free()
        assert one.receive_own(40) == sent[ran:]
        assert not any(one.queue_in_place([to_other(number, 1500) for number in range(25)]))
        assert one.flush_if_free()
        assert len(take(two, 65)) == 65


@pytest.mark.parametrize("early", [False, True])
def test_frames_stay_while_their_peer_sends_to_itself(start: Start, early: bool) -> None:
    """Also while it takes some of those early."""
    one, _ = start()
    first = [to_all(number) for number in range(3)]
    then = [to_all(number) for number in range(10, 50)]  # twice as many do not fit beside the ring
    one.send(first)

    def work() -> None:
        one.send(then)
        if early:
            assert one.receive_own(5) == then[:5]
            one.send(then)

    assert one.look_on(work) == first
    left = then[5:] + then if early else then
    assert take(one, len(left)) == left


def test_frames_stay_when_the_switch_goes(start: Start, switches: list[SwitchProcess]) -> None:
    """What their peer looks at does; what it has not looked at is gone with the switch."""
    one, _ = start()
    sent = [to_all(number) for number in range(70)]
    one.send(sent)

    def work() -> None:
        switches[0].kill()
        with contextlib.suppress(RuntimeError):  # the switch is gone
            while True:
                one.send([to_other(1)])

    assert one.look_on(work) == sent[:64]
    assert one.receive_own(1) == []
