"""What a transport sends scapy can read; what it refuses, it refuses for the reason that the protocol gives."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest
from transport_frames import LANES, Judge, frame_to, merged_frame, parameter_frame, parsed, sum_frame
from transport_nic import VECTOR_BYTES, Gaps, Meta, Nic, Settings, StreamSettings

from catchment.rtl.generated.nic_regs import Role
from catchment.wire.generated.constants import DataType, Flag, PacketType

pytestmark = pytest.mark.sampled(4)  # what it builds takes half a minute

BASE = 0xFFFF_FFFD
UP = StreamSettings(gen=0x1234, base_seq=BASE, window=16, slots=64)
DOWN = StreamSettings(gen=0x4321, base_seq=77, window=16, slots=64)
SHARED = Settings(UP, UP, all_reduce=True)
WORKER = Settings(UP, DOWN)
ROOT = Settings(DOWN, UP)
ROLES = {
    "worker": (Role.WORKER, WORKER),
    "all_reduce": (Role.WORKER, SHARED),
    "agg": (Role.ROOT, ROOT),
}


def started(role: str, rng: random.Random, **changes: int) -> Nic:
    end, settings = ROLES[role]
    nic = Nic(end, replace(settings, **changes), rng.getrandbits(32))  # type: ignore[arg-type]
    nic.start()
    return nic


def data_frame(role: str, settings: Settings, seq: int, **fields: int) -> bytes:
    if role == "worker":
        return parameter_frame(settings, seq, b"p" * 100, **fields)
    return sum_frame(settings, seq, **fields)


@pytest.mark.parametrize("role", ROLES)
def test_scapy_reads_what_is_sent(role: str, rng: random.Random) -> None:
    with started(role, rng) as nic:
        nic.gaps(Gaps(60, 0, 0, 90))
        sent = []
        for index in range(16):
            meta = Meta(
                rng.choice([DataType.FP32, DataType.INT32, DataType.BF16]), rng.randrange(-128, 128),
                rng.randrange(-128, 128), rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.5,
                rng.randrange(1, VECTOR_BYTES + 1) if role == "agg" and index % 3 else VECTOR_BYTES,
            )  # fmt: skip
            sent.append((rng.randbytes(VECTOR_BYTES), meta))
            nic.push(*sent[-1])
        nic.run(2000)
        frames = [parsed(frame) for _, frame in nic.frames()]
        beats = [header for header, _ in frames if header.type == PacketType.HB]
        data = [(header, payload) for header, payload in frames if header.type != PacketType.HB]
        assert beats and len(data) == len(sent)
        for beat in beats:
            assert beat.gen == nic.settings.rx.gen and int(beat.flags) == Flag.ACKV and beat.wid == nic.settings.wid
            assert beat.ack == nic.settings.rx.base_seq and beat.credit == (beat.ack + 16) % (1 << 32)
            assert (beat.lanes, beat.dtype, beat.exp, beat.next_exp) == (0, 0, 0, 0)
        for index, ((header, payload), (vector, meta)) in enumerate(zip(data, sent, strict=True)):
            assert header.seq == (nic.settings.tx.base_seq + index) % (1 << 32) and header.gen == nic.settings.tx.gen
            flags = (meta.expv and Flag.EXPV) | (meta.sat and Flag.SAT) | (meta.last and Flag.LAST)
            flags |= Flag.ACKV if role == "all_reduce" else 0
            assert int(header.flags) == flags
            assert header.next_exp == (meta.next_exp if meta.expv else 0)
            if role == "agg":
                assert header.type == PacketType.PARAM and payload == vector[: meta.bytes]
                assert (header.lanes, header.dtype, header.exp) == (meta.bytes, DataType.BYTES, 0)
            else:
                lanes = [int.from_bytes(vector[4 * i : 4 * i + 4], "little") for i in range(LANES)]
                assert header.type == PacketType.PA and payload == lanes
                assert (header.lanes, header.dtype, header.exp) == (LANES, meta.dtype, meta.exp)


def broken_frames(role: str, settings: Settings) -> dict[str, list[bytes]]:
    """Frames that are wrong in one thing each, by the reason."""
    seq = settings.rx.base_seq
    data = data_frame(role, settings, seq)
    beat = merged_frame(settings, settings.tx.base_seq, settings.tx.base_seq + 20)

    def changed(frame: bytes, at: int, value: int) -> bytes:
        return frame[:at] + bytes([value]) + frame[at + 1 :]

    def resummed(frame: bytes, at: int, value: int) -> bytes:
        from catchment.wire.udp_frame import internet_checksum

        head = bytearray(changed(frame, at, value))
        head[24:26] = b"\0\0"
        head[24:26] = internet_checksum(bytes(head[14:34])).to_bytes(2, "big")
        return bytes(head)

    end = settings.tx.base_seq
    return {
        "DESTINATION": [
            b"\xff" * 6 + data[6:], changed(data, 12, 0x86), changed(data, 23, 6), changed(data, 29, 1),
            changed(data, 33, 9), changed(beat, 35, 1), changed(beat, 37, 1), b"\0" * 60, bytes(range(14)), b"\x01",
        ],
        "IPV4": [
            changed(data, 24, data[24] ^ 1), resummed(data, 14, 0x46), resummed(data, 20, 0x20), changed(data, 16, 9),
        ],
        "SHORT": [beat[:63], data[:42], data[:50]],
        "VERSION": [changed(data, 42, 0x20 | data[42] & 15), changed(beat, 42, 0x04)],
        "FLAGS": [
            *(parameter_frame(settings, seq, b"p" * 100, flags=flags) for flags in (Flag.PACKED, Flag.MIXED)),
            merged_frame(settings, end, end + 20, flags=0x81),
            *(merged_frame(settings, end, end + 20, flags=Flag.ACKV | flag) for flag in (Flag.PACKED, Flag.MIXED)),
            merged_frame(settings, end, end + 20, flags=0), merged_frame(settings, end, end + 20, flags=Flag.RETX),
        ],
        "GENERATION": [data_frame(role, settings, seq, gen=g) for g in (0, 1, 0x1235, 0xFFFF)],
        "TYPE": [
            data_frame(role, settings, seq, type=t) for t in (0, PacketType.PA, PacketType.HB, PacketType.ACK, 15)
        ],
        "DTYPE": [data_frame(role, settings, seq, dtype=d) for d in (9, 5, 255)],
        "LANES": [
            data_frame(role, settings, seq, lanes=0), data_frame(role, settings, seq, lanes=VECTOR_BYTES + 1),
            data_frame(role, settings, seq, lanes=0xFFFF), merged_frame(settings, end, end + 20, lanes=1),
        ],
        "LENGTH": [
            data[:-1], data + b"\0", data[:64], data + b"\0" * 64, data + b"\0" * 9000, beat + b"\0",
            data + b"\0" * (256 * 64),  # as many beats more as an index of 8 bits counts
            resummed(data, 17, data[17] ^ 1), changed(data, 39, data[39] ^ 1), changed(beat, 38, 1),
        ],
        "ACK": [
            merged_frame(settings, end + 1, end + 20), merged_frame(settings, end, end + settings.tx.slots + 1),
            merged_frame(settings, end, end - 1), merged_frame(settings, end + 0x7FFF_FFFF, end),
        ],
        "WINDOW": [data_frame(role, settings, (seq + d) % (1 << 32)) for d in (16, 17, 1024, 0x7FFF_FFFF)],
        "DUPLICATE": [data_frame(role, settings, (seq - d) % (1 << 32)) for d in (1, 2, 1024, 0x7FFF_FFFF)],
    }  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_each_malformed_frame_is_refused_for_its_reason(role: str, rng: random.Random) -> None:
    with started(role, rng) as nic:
        everything = broken_frames(role, nic.settings)
        before = nic.status()
        for reason, frames in everything.items():
            seen = nic.rejects()
            for frame in frames:
                nic.receive(frame)
                nic.run(200 + len(frame) // 64)
            counted = Counter(nic.rejects()) - Counter(seen)
            assert counted == {reason: len(frames)}, f"{reason}: {counted}"
            assert nic.status() == before, f"{reason} moved something"
        nic.receive(data_frame(role, nic.settings, nic.settings.rx.base_seq), damaged=True)
        nic.receive(merged_frame(nic.settings, nic.settings.tx.base_seq, nic.settings.tx.base_seq + 40), damaged=True)
        assert nic.rejects()["FCS"] == 2
        assert nic.status() == before
        assert nic.vectors() == []
        nic.receive(data_frame(role, nic.settings, nic.settings.rx.base_seq))
        nic.run(100)
        assert len(nic.vectors()) == 1, "a good frame after all the bad ones"


def mutated(frame: bytes, rng: random.Random) -> bytes:
    out = bytearray(frame)
    for _ in range(rng.choice([0, 1, 1, 2])):
        kind = rng.randrange(5)
        if kind <= 1 and out:
            out[rng.randrange(min(64, len(out)))] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[rng.randrange(len(out)) + 1 :]
        elif kind == 3:
            out += rng.randbytes(rng.choice([1, 3, 64, 200]))
        else:
            out[42:64] = rng.randbytes(22)
    return bytes(out)


@pytest.mark.parametrize("role", ROLES)
def test_random_frames_are_judged_as_the_protocol_says(role: str, rng: random.Random) -> None:
    """Each frame alone against the slow judge, in any order, with and without gaps."""
    from scapy.layers.inet import IP
    from scapy.layers.l2 import Ether

    with started(role, rng, heartbeat_interval=1 << 20) as nic:
        for _ in range(5):
            nic.push(rng.randbytes(VECTOR_BYTES), Meta())
        nic.run(200)
        nic.frames()
        end = (nic.settings.tx.base_seq + 5) % (1 << 32)
        ack = first = nic.settings.rx.base_seq
        held: set[int] = set()
        expected: Counter[str] = Counter()
        handed = 0
        for _ in range(1500):
            nic.gaps(Gaps(net_idle=rng.choice([0, 100])))
            seq = (ack + rng.randrange(-3, 20)) % (1 << 32)
            pair = {"flags": rng.choice([0, Flag.ACKV]), "ack": (end - rng.randrange(-1, 5)) % (1 << 32)}
            pair["credit"] = (pair["ack"] + rng.randrange(66)) % (1 << 32)
            good = rng.choice([
                data_frame(role, nic.settings, seq, **pair),
                merged_frame(nic.settings, pair["ack"], pair["credit"]),
                frame_to(nic.settings, gen=rng.choice([UP.gen, DOWN.gen]), type=rng.randrange(8), seq=seq),
            ])  # fmt: skip
            frame = mutated(good, rng)
            if len(frame) >= 34 and rng.random() < 0.5:  # so that the checks behind the checksum are reached
                packet = Ether(frame)
                if IP in packet and len(frame) >= 64:
                    rest = frame[34:]
                    del packet[IP].chksum
                    frame = bytes(packet)[:34] + rest
            damaged = rng.random() < 0.02
            judge = Judge(nic.settings, role != "worker", ack, (first + handed + 16) % (1 << 32), frozenset(held), end)
            reason = judge.reason(frame, damaged)
            nic.receive(frame, damaged)
            nic.run(40 if len(frame) < 400 else 400)
            if len(frame) < 64 and reason in ("SHORT", "IPV4", "DESTINATION"):
                expected["short"] += 1
            elif reason != "NONE":
                expected[reason] += 1
            elif Ether(frame)[IP].payload.payload.type != PacketType.MH:
                held.add(int.from_bytes(frame[52:56], "big"))
            while ack in held:
                held.remove(ack)
                ack = (ack + 1) % (1 << 32)
            handed += len(nic.vectors())
            if (first + handed) % (1 << 32) != ack:  # a gap was filled: those behind it come out one after the other
                nic.run(400)
                handed += len(nic.vectors())
            assert nic.status().rx_ack == ack
            assert nic.status().tx_next == end
        counted = Counter(nic.rejects())
        # What lies behind a short frame's end is noise: which of three reasons applies first depends on it.
        short = sum(counted.pop(name, 0) for name in ("SHORT", "IPV4", "DESTINATION"))
        assert short == sum(expected.pop(name, 0) for name in ("short", "SHORT", "IPV4", "DESTINATION"))
        assert counted == expected
        assert (first + handed) % (1 << 32) == ack
