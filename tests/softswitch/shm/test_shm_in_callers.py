"""Ports whose peers run the program themselves: the same frames and counters as through the switch's process."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from shm_ports import PATIENCE, PORTS, inside, take, until

from catchment.controlplane.client import MulticastGroup, SwitchClient, SwitchError
from catchment.softswitch.admin import SwitchAdmin
from catchment.softswitch.process import SwitchProcess
from catchment.softswitch.shm import Port

if TYPE_CHECKING:
    from inside_switch import Launch

pytest_plugins = ["shm_switch", "inside_switch"]

SENDER = """
import sys
from catchment.softswitch import native
port = native.runtime().InsidePort(sys.argv[1], 60_000)
frames = [bytes([i]) * 12 + b"\\x88\\xb7" + bytes([i]) * 1000 for i in range(32)]
print("ready", flush=True)
while True:
    port.send(frames)
    port.receive(0.0)
"""


# Has the names of all places for switches' memory, of which one is given, whatever program it becomes.
TAKER = """
import os, socket, sys
taken = [socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(64)]
for number, one in enumerate(taken):
    one.bind("\\0" + sys.argv[1].rpartition("-")[0] + f"-{number}")
    one.set_inheritable(True)
os.execv(sys.argv[2], sys.argv[2:])
"""


def frame(rng: random.Random, most: int = 1500) -> bytes:
    """One in four goes to all ports."""
    return rng.randbytes(12) + rng.choice((b"\x08\x00",) * 3 + (b"\x88\xb7",)) + rng.randbytes(rng.randrange(most - 13))


def crosses(one: Any, two: Any) -> bool:
    """Whether a frame of port 1 comes to port 2, and back."""
    there = b"there-" * 2 + b"\x08\x00"
    one.send([there])
    two.send([there])
    return take(two, 1) == [there] == take(one, 1)


@contextlib.contextmanager
def another(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs frames of its own without a pause, in a caller of its own."""
    sender = subprocess.Popen([sys.executable, "-c", SENDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert sender.stdout is not None
    assert sender.stdout.readline() == "ready\n"
    try:
        yield sender
    finally:
        sender.kill()
        sender.wait(PATIENCE)
        sender.stdout.close()


def named_with_a_number(pid: int) -> list[str]:
    """The abstract sockets of a process whose names end with a number of one or two digits."""
    links = [str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()]
    inodes = {link.removeprefix("socket:[").removesuffix("]") for link in links if link.startswith("socket:")}
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    names = [row[7].removeprefix("@") for row in rows if len(row) > 7 and row[6] in inodes and row[7].startswith("@")]
    return [name for name in names if re.fullmatch(r".*-\d{1,2}", name)]


def counted(admin: SwitchAdmin, port: int) -> dict[str, Any]:
    """What a switch has counted at a port."""
    said = admin.port(port)
    return {number: said[number] for number in ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "drops")}


class Stopped:
    """A process that does not run."""

    def __init__(self, process: SwitchProcess | subprocess.Popen[str]) -> None:
        self._pid = process.pid

    def __enter__(self) -> None:
        os.kill(self._pid, signal.SIGSTOP)
        tasks = Path(f"/proc/{self._pid}/task")
        while {task.joinpath("stat").read_text().rpartition(") ")[2][0] for task in tasks.iterdir()} != {"T"}:
            pass

    def __exit__(self, *_: object) -> None:
        os.kill(self._pid, signal.SIGCONT)


def test_frames_pass_between_callers_while_the_switch_does_not_run(
    launch_inside: Launch, folder: Path, rng: random.Random
) -> None:
    switch = launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    with Stopped(switch):
        for _ in range(50):
            sent = [frame(rng, 400)[:12] + b"\x08\x00x" for _ in range(rng.randrange(1, 100))]
            one.send(sent)
            assert take(two, len(sent)) == sent
            two.send(sent[::-1])
            assert take(one, len(sent)) == sent[::-1]


def test_a_receiver_that_sleeps_is_woken_by_another_caller(launch_inside: Launch, folder: Path) -> None:
    switch = launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    sent = b"wake-" * 3 + b"\x08\x00"
    with Stopped(switch):
        for _ in range(20):
            got: list[list[bytes]] = []
            waiting = threading.Thread(target=lambda got=got: got.append(two.receive(PATIENCE)))
            waiting.start()
            fields = ""
            while fields != "S":  # asleep, not looking
                tasks = [path for path in Path("/proc/self/task").iterdir() if int(path.name) == waiting.native_id]
                fields = tasks[0].joinpath("stat").read_text().rpartition(") ")[2].split()[0] if tasks else "S"
            one.send([sent])
            waiting.join(PATIENCE)
            assert got == [[sent]]


@pytest.mark.parametrize("options", ["", ",cells=8,bytes=2112"])
def test_ports_agree_frame_by_frame_with_those_of_the_switch(
    options: str, launch_inside: Launch, folder: Path, rng: random.Random
) -> None:
    launch_inside(options=options)
    launch_inside("alone-", options=options, in_callers=False)
    # Port 4 has a peer that knows nothing of it, port 3 has none.
    mixed = {port: inside(folder / str(port)) for port in (1, 2)} | {4: Port.attach(folder / "4", timeout=PATIENCE)}
    alone = {port: inside(folder / f"alone-{port}") for port in (1, 2)}
    alone |= {4: Port.attach(folder / "alone-4", timeout=PATIENCE)}
    came = dict.fromkeys(PORTS, 0)
    with mixed[4], alone[4]:
        for _ in range(300):
            port, sent = rng.choice((1, 2, 4)), frame(rng)
            came[port] += 1
            everywhere = sent[12:14] == b"\x88\xb7"
            receivers = () if everywhere else {1: (2,), 2: (1,), 4: ()}[port]  # no group is made: no copy
            for ports in (mixed, alone):
                until(lambda ports=ports, port=port, sent=sent: ports[port].send([sent]) == 1)
                for receiver in receivers:
                    assert take(ports[receiver], 1) == [sent]
        one = SwitchAdmin(folder / "admin")
        two = SwitchAdmin(folder / "alone-admin")
        with one, two:
            for port in PORTS:
                for admin in (one, two):  # a ring is read a little after it is written
                    until(lambda admin=admin, port=port: counted(admin, port)["rx_packets"] == came[port])
                # What a program sends to a port without a peer is counted a little later.
                until(lambda one=one, two=two, port=port: counted(one, port) == counted(two, port))


def test_long_bursts_come_once_and_in_order_while_another_runs_frames(
    launch_inside: Launch, folder: Path, rng: random.Random
) -> None:
    """Who finds another one at it queues on, up to 256 KiB: shorter bursts and longer ones, of 32 KiB and more."""
    launch_inside(options=",cells=512,bytes=2112")
    one, two = inside(folder / "1"), inside(folder / "2")
    with another(folder / "3"):
        for _ in range(100):
            sent = [frame(rng)[:12] + b"\x08\x00" + rng.randbytes(1480) for _ in range(rng.randrange(1, 300))]
            one.send(sent)
            assert take(two, len(sent)) == sent
    assert two.receive(0.0) == []


def test_thousands_of_short_frames_are_taken_at_once(launch_inside: Launch, folder: Path, rng: random.Random) -> None:
    """Each takes a line of the peer's memory, however short it is."""
    launch_inside(options=",cells=8192,bytes=128")
    one, two = inside(folder / "1"), inside(folder / "2")
    for _ in range(4):
        sent = [rng.randbytes(12) + b"\x08\x00" + rng.randbytes(rng.randrange(1, 4)) for _ in range(8000)]
        one.send(sent)
        assert take(two, len(sent)) == sent


def test_who_does_not_wait_for_another_one_keeps_its_frames(
    launch_inside: Launch, wires: tuple[Path, Path], folder: Path
) -> None:
    """A sender that is stopped, which has frames for itself alone, may have the program just then, or not."""
    switch = launch_inside()
    with SwitchClient.connect(switch.address, p4info=wires[1]) as client:
        client.insert(MulticastGroup.of_ports(1, [3]))
    one, two = inside(folder / "1"), inside(folder / "2")
    seen = {True: 0, False: 0}
    ends = time.monotonic() + PATIENCE
    with another(folder / "3") as sender:
        while min(seen.values()) < 3:
            assert time.monotonic() < ends, seen
            sent = [b"0123456789ab\x08\x00" + bytes([i, seen[True] % 256]) for i in range(3)]
            with Stopped(sender):
                assert one.queue(sent) == len(sent)
                free = one.flush_if_free()
                assert one.flush_if_free() == free
                assert free or two.receive(0.0) == []
            seen[free] += 1
            until(one.flush_if_free)
            assert take(two, len(sent)) == sent
    assert two.receive(0.0) == []


def test_frames_wait_for_those_before_them_that_were_left_to_the_switch(launch_inside: Launch, folder: Path) -> None:
    """A peer leaves what it has to the switch while another one stops with the lock; the lock is free again then."""
    switch = launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    head = b"0123456789ab\x08\x00"
    ends = time.monotonic() + PATIENCE
    with another(folder / "3") as sender:
        for _ in range(5):
            with Stopped(switch):
                left = False
                while not left:
                    assert time.monotonic() < ends
                    with Stopped(sender):
                        one.send([head])
                    left = not two.receive(0.0)
                burst = [head + bytes([number]) * 1400 for number in range(30)]  # from 32 KiB on it looks for the lock
                assert one.queue(burst) == len(burst)
                assert two.receive(0.0) == []
            until(one.flush_if_free)
            assert take(two, 1 + len(burst)) == [head, *burst]


def test_a_switch_ends_while_a_peer_is_stopped_in_the_data_plane(
    launch_inside: Launch, wires: tuple[Path, Path], folder: Path
) -> None:
    """Who has the lock does not go on: control calls wait for it, and so does all that an orderly end does."""
    switch = launch_inside()
    ends = time.monotonic() + PATIENCE
    group = 1
    with SwitchClient.connect(switch.address, p4info=wires[1], timeout=0.5) as client, another(folder / "1") as sender:
        caught = False
        while not caught:
            assert time.monotonic() < ends
            with Stopped(sender):
                try:
                    client.insert(MulticastGroup.of_ports(group, [3]))
                except SwitchError:
                    caught = True
                    assert switch.stop(grace=PATIENCE) == 0
            group += 1
    assert "a peer that has stopped in the data plane" in switch.output


def test_a_port_without_room_among_the_callers_has_rings_of_its_own(launch_inside: Launch, folder: Path) -> None:
    """The memory of all callers has 16 GiB of addresses, of which each of these ports takes more than half."""
    switch = launch_inside(options=",cells=65536,bytes=65536")
    one, two = inside(folder / "1"), inside(folder / "2")
    assert one.inside
    assert not two.inside
    assert crosses(one, two)
    until(lambda: "no room for its rings" in switch.output)
    assert switch.is_alive()


def test_a_process_is_let_in_by_several_switches_at_once(launch_inside: Launch, folder: Path) -> None:
    """The memory of each lies at the same address in all processes, and no two of them overlap."""
    switches = 8
    ports = []
    for number in range(switches):
        launch_inside(f"of{number}-")
        ports.append((inside(folder / f"of{number}-1"), inside(folder / f"of{number}-2")))
    assert [one.inside and two.inside for one, two in ports] == [True] * switches
    assert all(crosses(one, two) for one, two in ports)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: it has a network namespace, and so names, of its own")
def test_a_switch_starts_where_others_have_all_places_for_its_memory(launch_inside: Launch, folder: Path) -> None:
    (name,) = named_with_a_number(launch_inside("first-").pid)
    switch = launch_inside(prefix=("unshare", "--net", sys.executable, "-c", TAKER, name))
    one, two = inside(folder / "1"), inside(folder / "2")
    assert not one.inside  # it has no way to wake a process of another network namespace
    assert crosses(one, two)
    assert switch.is_alive()


def test_a_frame_waits_for_those_that_were_left_to_the_switch(launch_inside: Launch, folder: Path) -> None:
    switch = launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    assert crosses(one, two)
    longer_than_any = b"0123456789ab\x08\x00".ljust(9760, b"x")
    with Stopped(switch):
        one.send([longer_than_any])
        one.send([b"afterwards--\x08\x00"])
        assert two.receive(0.2) == []
    assert take(two, 1) == [b"afterwards--\x08\x00"]
    with SwitchAdmin(folder / "admin") as admin:
        assert admin.port(1)["drops"]["frame too long"] == 1


def test_a_port_with_faults_keeps_to_the_switch(launch_inside: Launch, folder: Path, rng: random.Random) -> None:
    launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    with SwitchAdmin(folder / "admin") as admin:
        assert crosses(one, two)
        admin.set_faults(2, "out.loss=1,seed=1")
        sent = [frame(rng)[:12] + b"\x08\x00" + bytes([i]) for i in range(40)]
        one.send(sent)
        two.send(sent)
        assert take(one, len(sent)) == sent
        until(lambda: admin.port(2)["faults_out"]["lost"] >= len(sent))
        admin.set_faults(2, "off")
        one.send(sent)
        assert take(two, len(sent)) == sent  # and in order


def test_a_ring_goes_over_from_a_caller_to_the_switch(launch_inside: Launch, folder: Path) -> None:
    launch_inside(options=",cells=16,bytes=2112")
    one, two = inside(folder / "1"), inside(folder / "2")
    with SwitchAdmin(folder / "admin") as admin:
        for turn in range(20):
            assert crosses(one, two)
            admin.set_faults(2, f"out.dup=1,seed={turn}")
            sent = b"by-the-switch" + bytes([turn])
            one.send([sent[:12] + b"\x08\x00" + sent])
            assert take(two, 2) == [sent[:12] + b"\x08\x00" + sent] * 2
            admin.set_faults(2, "off")


def test_callers_and_the_switch_fill_one_ring(
    launch_inside: Launch, wires: tuple[Path, Path], folder: Path, rng: random.Random
) -> None:
    """Frames to all go to port 2 alone: from ports 1 and 3 by their callers, from port 4 by the switch."""
    switch = launch_inside()
    with SwitchClient.connect(switch.address, p4info=wires[1]) as client:
        client.insert(MulticastGroup.of_ports(1, [2]))
    receiver = inside(folder / "2")
    with Port.attach(folder / "4", timeout=PATIENCE) as plain:
        senders = [inside(folder / "1"), inside(folder / "3"), plain]
        for turn in range(60):
            sent = rng.randbytes(12) + b"\x88\xb7" + bytes([turn])
            rng.choice(senders).send([sent])
            assert take(receiver, 1) == [sent]


def test_a_receiver_that_does_not_read_keeps_nobody_waiting(
    launch_inside: Launch, folder: Path, rng: random.Random
) -> None:
    launch_inside(options=",cells=16,bytes=2112")
    one, two = inside(folder / "1"), inside(folder / "2")
    three, four = inside(folder / "3"), inside(folder / "4")
    sent = [b"0123456789ab\x08\x00" + i.to_bytes(4, "big") for i in range(400)]
    for piece in range(0, len(sent), 8):
        left = sent[piece : piece + 8]
        while left := left[one.send(left) :]:
            pass  # the switch empties the ring
        three.send(sent[:8])
        assert take(four, 8) == sent[:8]
    got = take(two, 16)
    assert got == sent[:16]  # what came first, and the switch keeps the next ones for it
    assert take(two, 16)[0] in sent[16:]


def test_peers_killed_at_any_moment_leave_a_switch_that_goes_on(
    launch_inside: Launch, folder: Path, rng: random.Random
) -> None:
    launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    for _ in range(8):
        with another(folder / "3"):
            for _ in range(rng.randrange(50)):
                assert crosses(one, two)
        assert crosses(one, two)


def test_a_killed_switch_is_noticed_and_the_next_one_attached_to(launch_inside: Launch, folder: Path) -> None:
    switch = launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    assert crosses(one, two)
    switch.kill()
    launch_inside()
    while one.attachments() == 1 or two.attachments() == 1:
        for port in (one, two):
            with contextlib.suppress(RuntimeError):  # the switch is gone
                port.receive(0.02)
                port.send([b"anybody-there\x08\x00"])
    while one.receive(0.5) or two.receive(0.5):
        pass
    assert crosses(one, two)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_who_waits_knows_whether_another_was_last_seen_on_the_same_processor(
    launch_inside: Launch, folder: Path
) -> None:
    launch_inside()
    one, two = inside(folder / "1"), inside(folder / "2")
    processors = os.sched_getaffinity(0)
    here, there, *_ = sorted(processors)
    try:
        os.sched_setaffinity(0, {here})
        assert not one.shares_processor()  # nothing has gone to anybody yet
        assert crosses(one, two)
        assert one.shares_processor()
        assert two.shares_processor()
        os.sched_setaffinity(0, {there})
        assert not one.shares_processor()
        assert two.shares_processor()  # and the first one has looked from here
    finally:
        os.sched_setaffinity(0, processors)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is one processor")
def test_who_waits_goes_to_the_processor_where_fewest_others_were_seen(
    launch_inside: Launch, folder: Path, wires: tuple[Path, Path]
) -> None:
    switch = launch_inside()
    with SwitchClient.connect(switch.address, p4info=wires[1]) as client:
        client.insert(MulticastGroup.of_ports(1, [1, 2, 3]))
    one, two, three = (inside(folder / str(number)) for number in (1, 2, 3))
    processors = os.sched_getaffinity(0)
    here, there, *_ = sorted(processors)

    def show(port: Any, processor: int) -> None:
        os.sched_setaffinity(0, {processor})
        port.send([b"for-allports\x88\xb7"])

    def moves(processor: int) -> bool:
        """Whether the first one is moved from there to the other processor if it may go to both."""
        for _ in range(100):
            show(one, processor)
            os.sched_setaffinity(0, {here, there})
            before, moved, after = one.move_apart()
            assert os.sched_getaffinity(0) == {here, there}
            if before == processor and moved == (after != processor):  # else the kernel has moved it, too
                return bool(moved)
        raise AssertionError("who is said to be moved stays where it was")

    try:
        os.sched_setaffinity(0, {here})
        assert one.move_apart() == (here, False, here)  # nothing has gone to anybody yet
        show(two, here)
        show(three, here)
        show(one, here)
        assert one.move_apart() == (here, False, here)  # it may not go anywhere else
        assert moves(here)
        assert not moves(there)
        show(three, there)
        assert not moves(here)  # as many others here as there
        assert not moves(there)
        show(two, there)
        assert moves(there)
        os.sched_setaffinity(0, {there})
        assert two.shares_processor()  # with the third one
        show(three, here)
        os.sched_setaffinity(0, {there})
        assert not two.shares_processor()  # the first one has said where it went
    finally:
        os.sched_setaffinity(0, processors)


OTHER_USER = """
import os, sys
from catchment.softswitch import native
runtime = native.runtime()
os.setuid(65534)
port = runtime.InsidePort(sys.argv[1], 60_000)
port.send([b"0123456789ab\\x08\\x00"])
print("sent", flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_users_process_gets_rings_of_its_own(launch_inside: Launch, folder: Path) -> None:
    launch_inside(options=",mode=0666")
    one = inside(folder / "1")
    peer = subprocess.Popen(
        [sys.executable, "-c", OTHER_USER, str(folder / "2")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert peer.stdout is not None
    try:
        assert peer.stdout.readline() == "sent\n"
        assert take(one, 1) == [b"0123456789ab\x08\x00"]
        mapped = Path(f"/proc/{peer.pid}/maps").read_text()
        assert "catchment-shm" in mapped
        assert "catchment-state" not in mapped
        assert "catchment-state" in Path("/proc/self/maps").read_text()
    finally:
        peer.communicate()
