"""What a peer that runs the program sends to itself: it lies beside the ring, at its place among the ring's frames."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shm_ports import PATIENCE, inside, take, until

from catchment.controlplane.client import MulticastGroup, SwitchClient
from catchment.softswitch.process import SwitchProcess

if TYPE_CHECKING:
    from inside_switch import Launch

pytest_plugins = ["shm_switch", "inside_switch"]

# Beside the ring are 512 KiB: 53 frames of the longest cells, as many as a ring of two cells has, 248 of 2112 bytes.
OPTIONS = ("", ",cells=2,bytes=2112", ",cells=512,bytes=2112")

Start = Callable[..., tuple[Any, Any]]

# Attaches to a port, takes all memory that a large block could come from when it is told so, and sends three frames:
# the second asks for such a block, in the middle of the program, as it is the first that the sender has for itself.
POOR = """
import ctypes, resource, sys
from catchment.softswitch import native

malloc = ctypes.CDLL(None).malloc
malloc.restype, malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
port = native.runtime().InsidePort(sys.argv[1], 60_000)
frames = [bytes.fromhex(text) for text in sys.argv[3:]]
port.send(frames[:1])
print("ready", flush=True)
sys.stdin.readline()
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), resource.RLIM_INFINITY))
while malloc(1 << 16):
    pass
try:
    if sys.argv[2] == "send":
        port.send(frames[1:])
    else:
        port.queue(frames[1:])
        port.flush_if_free()
    said = "nothing"
except RuntimeError as error:
    said = str(error)
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(said, flush=True)
sys.stdin.readline()
while not port.flush_if_free():
    pass
port.send(frames[:1])
sys.stdin.readline()
"""


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


def asleep(thread: threading.Thread) -> bool:
    """Whether it waits for a wake-up, and does not look by itself."""
    stat = Path(f"/proc/self/task/{thread.native_id}/stat")
    return stat.read_text().rpartition(") ")[2].split()[0] == "S"


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


@pytest.mark.parametrize("how", ["send", "flush_if_free"])
def test_what_left_before_memory_ended_in_the_program_comes_and_nothing_comes_twice(
    launch_inside: Launch, folder: Path, wires: tuple[Path, Path], how: str
) -> None:
    switch = launch_inside()
    with SwitchClient.connect(switch.address, p4info=wires[1]) as client:
        client.insert(MulticastGroup.of_ports(1, [1, 2]))
    two = inside(folder / "2")
    frames = [to_other(1), to_other(2), to_all(3), to_other(4)]
    command = [sys.executable, "-c", POOR, str(folder / "1"), how, *(frame.hex() for frame in frames)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as poor:
        assert poor.stdin is not None and poor.stdout is not None
        try:
            assert poor.stdout.readline() == "ready\n"
            assert take(two, 1) == [to_other(1)]
            woken: list[bool] = []
            waiting = threading.Thread(target=lambda: woken.append(two.waits(-1.0)), daemon=True)  # for ever
            waiting.start()
            until(lambda: asleep(waiting))
            poor.stdin.write("go\n")
            waiting.join(PATIENCE)
            assert woken == [True]
            assert two.receive(0.0) == [to_other(2)]
            assert "bad_alloc" in poor.stdout.readline()
            poor.stdin.write("go on\n")
            assert take(two, 1) == [to_other(1)]
            assert two.receive(0.0) == []
        finally:
            poor.kill()
