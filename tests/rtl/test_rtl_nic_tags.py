"""An AggNIC with tags: what it sends, and what it refuses, against who lacks its streams' keys."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import transport_nic
from transport_frames import merged_frame, sum_frame
from transport_network import ROOT_PORT, SWITCH_IP, SWITCH_MAC, ip_of, mac_of, settings_of

from catchment.rtl.driver.bus import BusError
from catchment.rtl.driver.memory import PAGE, PinnedMemory
from catchment.rtl.driver.nic import Nic
from catchment.rtl.driver.request import Request
from catchment.rtl.driver.settings import NicSettings, StreamSettings
from catchment.rtl.generated import nic_regs as regs
from catchment.rtl.generated.nic_regs import Role
from catchment.rtl.harness.verilated_nic import VerilatedNic
from catchment.sim.golden import tags
from catchment.wire.generated.constants import DataType, Flag, Header, PacketType

pytestmark = pytest.mark.sampled(2)  # what it builds takes a minute

UP, DOWN = 7, 8
VIRTUAL = 0x7F00_0000_0000


@dataclass
class Root:
    """An AggNIC, its driver, its host's memory, and the keys of what it receives and sends."""

    nic: VerilatedNic
    driver: Nic
    memory: PinnedMemory
    up: bytes
    down: bytes

    def begin(self, *, tagged: bool = True) -> None:
        self.driver.configure(
            NicSettings(
                StreamSettings(DOWN, slots=64, key=self.down if tagged else b""),
                StreamSettings(UP, slots=64, key=self.up if tagged else b""), 2,
                local_mac=mac_of(ROOT_PORT), local_ip=ip_of(ROOT_PORT), peer_mac=SWITCH_MAC, peer_ip=SWITCH_IP,
                heartbeat_interval=400,
            )
        )  # fmt: skip
        self.driver.start()

    def push(self, raw: bytes) -> Request:
        buffer = self.memory.allocate(len(raw))
        buffer.bytes[:] = np.frombuffer(raw, np.uint8)
        return self.driver.push(buffer, DataType.BYTES)

    def pull(self, vectors: int) -> Request:
        return self.driver.pull(self.memory.allocate(256 * vectors), DataType.INT32)

    def rejects(self) -> dict[str, int]:
        """Why frames were refused, and how many."""
        self.nic.run(200)
        counts = self.driver.statistics().items()
        return {name.removeprefix("rejects."): n for name, n in counts if name.startswith("rejects.") and n}


@pytest.fixture
def root(rng: random.Random) -> Iterator[Root]:
    array = np.zeros(PAGE, np.uint8)
    with VerilatedNic(Role.ROOT, array, parameters={"TAG_UNITS": 2}, seed=rng.getrandbits(32)) as nic:
        memory = PinnedMemory(array, VIRTUAL, (0,))
        made = Root(nic, Nic(nic, memory), memory, rng.randbytes(16), rng.randbytes(16))
        made.begin()
        yield made


def settings() -> transport_nic.Settings:
    return settings_of(ROOT_PORT, transport_nic.StreamSettings(gen=DOWN), transport_nic.StreamSettings(gen=UP))


def lanes_of(seq: int) -> list[int]:
    return [seq * 1000 + lane for lane in range(64)]


def a_sum(seq: int, *, last: bool = False, add: int = 0) -> bytes:
    """A sum without its tag; the worker index is a leaf's."""
    values = [value + add for value in lanes_of(seq)]
    return sum_frame(settings(), seq, values, flags=Flag.LAST if last else 0, wid=seq)


def test_what_leaves_has_the_tag_of_its_stream(root: Root, rng: random.Random) -> None:
    """Parameters under the key of what is sent, heartbeats under that of what is received."""
    raw = rng.randbytes(rng.randrange(1500, 2000))
    root.push(raw)
    root.nic.run(3000)
    sent = [frame.data for frame in root.nic.frames()]
    payloads: dict[int, bytes] = {}
    beats = 0
    for frame in sent:
        header = Header.unpack(frame, 42)
        opened = tags.opened_frame(frame, {UP: root.up, DOWN: root.down}[header.gen])
        assert opened is not None, header
        if header.type == PacketType.PARAM:
            payloads[header.seq] = opened[64:]
        else:
            assert (header.type, header.gen) == (PacketType.HB, UP)
            beats += 1
    assert b"".join(payloads[seq] for seq in sorted(payloads)) == raw
    assert beats > 2


def test_frames_of_who_lacks_the_key_change_no_sum(root: Root, rng: random.Random) -> None:
    """Each attempt is counted as TAG; replayed frames are what they are in a job without tags: duplicates."""
    right = [tags.signed_frame(a_sum(seq, last=seq == 4), root.up) for seq in range(5)]
    forged = []
    for seq in range(5):
        other = a_sum(seq, last=seq == 4, add=1)
        flipped = bytearray(right[seq])
        flipped[rng.randrange(64, len(flipped))] ^= 1 << rng.randrange(8)
        forged += [
            other,  # no tag
            tags.signed_frame(other, rng.randbytes(16)),  # of another key
            tags.signed_frame(other, root.down),  # of the other stream's
            other[:-8] + right[seq][-8:],  # a tag that was seen, behind another payload
            bytes(flipped),  # a cable that somebody cut into
            tags.signed_frame(a_sum(seq), root.up, seq=seq + 1)[:-8] + right[seq][-8:],  # another number
            right[seq] + rng.randbytes(8),  # longer
            right[seq][:-1],  # shorter
        ]
    # It would acknowledge what was never sent.
    beyond = tags.signed_frame(merged_frame(settings(), 900, 950), root.up, gen=DOWN)
    pull = root.pull(5)
    for seq in range(5):
        for frame in rng.sample(forged, len(forged)):
            root.nic.receive(frame)
        root.nic.receive(beyond)
        for again in right[: seq + 1]:
            root.nic.receive(again)
    root.driver.wait(pull)
    pull.check()
    got = pull.buffer.bytes.view(np.int32)
    assert np.array_equal(got, np.concatenate([np.array(lanes_of(seq), np.int32) for seq in range(5)]))
    assert root.driver.statistics()["tags_lost"] == 0
    assert root.rejects() == {"tag": 5 * (len(forged) + 1), "duplicate": 10}


def test_heartbeats_with_a_tag_are_heard(root: Root) -> None:
    """A push goes on with what a merged heartbeat acknowledges and grants, and with no forged one's."""

    def sent() -> set[int]:
        root.nic.run(8000)  # some hundred frames' time
        headers = [Header.unpack(frame.data, 42) for frame in root.nic.frames()]
        return {header.seq for header in headers if header.gen == DOWN}

    root.push(bytes(256 * 100))
    first = sent()
    assert first == set(range(64))
    heartbeat = merged_frame(settings(), 64, 128)
    root.nic.receive(heartbeat)
    assert sent() <= first and root.driver.get(regs.TX_ACKED)["value"] == 0
    root.nic.receive(tags.signed_frame(heartbeat, root.down))
    assert sent() >= set(range(64, 100)) and root.driver.get(regs.TX_ACKED)["value"] == 64
    assert root.rejects() == {"tag": 1}


def test_keys_are_written_and_never_read(root: Root) -> None:
    """And not while their stream is on; a stream without a key takes frames without a tag."""
    for register in (regs.TX_KEY, regs.RX_KEY, regs.TAGS):
        assert root.nic.read(register.address) == 0
        with pytest.raises(BusError, match="error 2"):
            root.nic.write(register.address, 0)
    assert root.driver.get(regs.TAGGED) == {"tx": 1, "rx": 1}
    root.driver.stop()
    root.begin(tagged=False)
    assert root.driver.get(regs.TAGGED) == {"tx": 0, "rx": 0}
    pull = root.pull(1)
    root.nic.receive(a_sum(0, last=True))
    root.driver.wait(pull)
    assert np.array_equal(pull.check() and pull.buffer.bytes.view(np.int32), lanes_of(0))
    assert root.rejects() == {}
