"""Runs inside the simulator: what gives frames their tags, and what takes these off, beside the golden model."""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_start import start

from catchment.sim.golden import tags
from catchment.wire.generated.constants import DataType, Flag, Header, PacketType
from catchment.wire.udp_frame import UdpPeer, udp_frame

TOP = os.environ["TOP"]
VECTOR = 256
BEAT = 64
GEN_TX, GEN_RX, GEN_OTHER = 0x1234, 0xFEDC, 0x1235
NO_PAUSES = (0.0, 0.0)
LINE_RATE = 7.04
"""Clocks of 4 ns that 100 Gb/s leave for a tagged frame of 328 bytes with FCS, preamble and gap."""
SIZES = (*range(18), *range(32, 42), *range(55, 74), *range(119, 137), *range(183, 201), *range(247, VECTOR + 1))
"""Payloads that end around a beat's end, or a tag does, or a row of eight words."""


@dataclass(frozen=True)
class Sent:
    """A frame that goes in, and whether the MAC says that it is damaged."""

    data: bytes
    damaged: bool = False


@dataclass(frozen=True)
class Got:
    """A frame that came out, its flags, and the clocks of its first and last beat."""

    data: bytes
    damaged: bool
    forged: bool
    first: int
    last: int


def some_frame(rng: random.Random, gen: int, size: int | None = None) -> bytes:
    """A frame without a tag: a heartbeat, a vector or parameters, with numbers that mean nothing."""
    kind = rng.choice((PacketType.HB, PacketType.MH, PacketType.PA, PacketType.FA, PacketType.PARAM))
    if size is None:
        whole = {PacketType.PA: VECTOR, PacketType.FA: VECTOR, PacketType.PARAM: rng.randint(1, VECTOR)}
        size = whole.get(kind, 0)
    header = Header.unpack(rng.randbytes(22))._replace(
        version=1, type=kind, flags=int(Flag.ACKV), gen=gen, dtype=DataType.FP32, lanes=size
    )
    ends = [UdpPeer(rng.getrandbits(48), rng.getrandbits(32), rng.getrandbits(16)) for _ in range(2)]
    return udp_frame(header.pack() + rng.randbytes(size), *ends, ttl=rng.randrange(256))


async def through(
    dut: Any, rng: random.Random, frames: Iterable[Sent], pauses: tuple[float, float], idle: int = 400
) -> tuple[list[Got], int]:
    """What comes out until nothing did for `idle` clocks, and how many frames were lost."""
    gaps, stall = pauses
    waiting = [
        (frame.data[at : at + BEAT], at + BEAT >= len(frame.data), frame.damaged)
        for frame in frames
        for at in range(0, len(frame.data), BEAT)
    ][::-1]
    reads, got, current, lost = TOP == "tag_reader", list[Got](), b"", 0
    clock, first, quiet, offers = 0, 0, 0, False
    while quiet < idle:
        offers = offers or (bool(waiting) and rng.random() >= gaps)
        beat, last, damaged = waiting[-1] if waiting else (b"", False, False)
        dut.s_axis_tvalid.value = offers
        dut.s_axis_tdata.value = int.from_bytes(beat + rng.randbytes(BEAT - len(beat)), "little")
        dut.s_axis_tkeep.value = (1 << len(beat)) - 1
        dut.s_axis_tlast.value = last
        if reads:
            dut.s_axis_tuser.value = last and damaged
        dut.m_axis_tready.value = reads or rng.random() >= stall
        await ReadOnly()
        if offers and dut.s_axis_tready.value:
            waiting.pop()
            offers = False
        lost += reads and int(dut.lost.value)
        quiet += 1
        if dut.m_axis_tvalid.value and dut.m_axis_tready.value:
            quiet = 0
            first = first if current else clock
            kept = int(dut.m_axis_tkeep.value)
            assert kept and kept & (kept + 1) == 0, "a hole in tkeep"
            current += int(dut.m_axis_tdata.value).to_bytes(BEAT, "little")[: kept.bit_length()]
            if dut.m_axis_tlast.value:
                flags = (bool(dut.m_axis_tuser.value), bool(dut.m_forged.value)) if reads else (False, False)
                got.append(Got(current, *flags, first, clock))
                current = b""
            else:
                assert kept.bit_length() == BEAT
        elif current and not reads and dut.m_axis_tready.value:
            raise AssertionError(f"a gap inside frame {len(got)}, and a MAC cannot wait")
        await RisingEdge(dut.clk)
        clock += 1
    assert not current and not waiting
    return got, lost


async def begin(dut: Any, *, tx_on: bool = True, rx_on: bool = True) -> tuple[random.Random, dict[int, bytes]]:
    """Start with keys of both streams; gives those that are on by generation."""
    rng = await start(dut, s_axis_tvalid=0, s_axis_tlast=0, m_axis_tready=0, tx_gen=GEN_TX, rx_gen=GEN_RX, keys=0)
    keys = [rng.randbytes(16) for _ in range(2)]
    tx, rx = (on << 128 | int.from_bytes(key, "little") for on, key in zip((tx_on, rx_on), keys, strict=True))
    dut.keys.value = tx << 129 | rx
    return rng, {gen: key for gen, key, on in zip((GEN_TX, GEN_RX), keys, (tx_on, rx_on), strict=True) if on}


# ---- leaving ----------------------------------------------------------------------------------------------------


def written(frame: bytes, keys: dict[int, bytes]) -> bytes:
    """What the model makes of a frame that leaves."""
    key = keys.get(Header.unpack(frame, 42).gen)
    return frame if key is None else tags.signed_frame(frame, key)


async def leaves_as_the_model_says(dut: Any, tx_on: bool, rx_on: bool, pauses: tuple[float, float], count: int) -> None:
    rng, keys = await begin(dut, tx_on=tx_on, rx_on=rx_on)
    frames = [some_frame(rng, rng.choice((GEN_TX, GEN_TX, GEN_RX, GEN_OTHER))) for _ in range(count)]
    got, _ = await through(dut, rng, map(Sent, frames), pauses)
    for number, (frame, out) in enumerate(zip(frames, got, strict=True)):
        assert out.data == written(frame, keys), f"frame {number} of {len(frame)} bytes"


@cocotb.test(skip=TOP != "tag_writer")
async def leaving(dut: Any) -> None:
    await leaves_as_the_model_says(dut, tx_on=True, rx_on=True, pauses=NO_PAUSES, count=30)
    await leaves_as_the_model_says(dut, tx_on=True, rx_on=True, pauses=(0.6, 0.5), count=30)
    await leaves_as_the_model_says(dut, tx_on=True, rx_on=False, pauses=(0.1, 0.2), count=20)
    await leaves_as_the_model_says(dut, tx_on=False, rx_on=False, pauses=(0.1, 0.2), count=20)


@cocotb.test(skip=TOP != "tag_writer")
async def leaving_with_parameters_of_many_lengths(dut: Any) -> None:
    rng, keys = await begin(dut)
    frames = [some_frame(rng, GEN_TX, size) for size in SIZES]
    got, _ = await through(dut, rng, map(Sent, frames), NO_PAUSES)
    for size, frame, out in zip(SIZES, frames, got, strict=True):
        assert out.data == written(frame, keys), f"{size} bytes"


@cocotb.test(skip=TOP != "tag_writer")
async def leaving_as_fast_as_the_units_hash(dut: Any) -> None:
    """A unit has a vector for 104 clocks at most; where there are many, a frame takes no more than its six beats."""
    units = int(os.environ["TAG_UNITS"])
    rng, _ = await begin(dut)
    got, _ = await through(dut, rng, [Sent(some_frame(rng, GEN_TX, VECTOR)) for _ in range(3 * units + 15)], NO_PAUSES)
    each = (got[-1].first - got[units].first) / (len(got) - 1 - units)
    dut._log.info("%d units: %.2f clocks a frame, %.0f %% of 100 Gb/s", units, each, min(1, LINE_RATE / each) * 100)
    assert each <= max(6.0, 104 / units)


# ---- arriving ---------------------------------------------------------------------------------------------------


def arrived(frame: bytes, keys: dict[int, bytes]) -> bytes | None:
    """What the model makes of a frame that arrives; None: it is forged."""
    key = keys.get(Header.unpack(frame, 42).gen) if len(frame) >= BEAT else None
    if key is None:
        return frame
    udp_length = int.from_bytes(frame[38:40], "big")
    if udp_length != len(frame) - 34 or udp_length - 38 > VECTOR:
        return None
    return tags.opened_frame(frame, key)


def attacked(rng: random.Random, frame: bytes) -> bytes:
    """The frame as somebody without the key may change it: what is under the tag, the tag, or the length."""
    data = bytearray(frame)
    what = rng.randrange(6)
    if what == 0:
        data[rng.choice((42, 43, 46, 47, 48, 52, 59, 63))] ^= 1 << rng.randrange(4)
    elif what == 1:
        data[-1 - rng.randrange(8)] ^= 1 << rng.randrange(8)
    elif what == 2:
        data[rng.randrange(50, len(data))] ^= 1 << rng.randrange(8)
    elif what == 3:
        data += rng.randbytes(rng.randint(1, 80))
    elif what == 4:
        del data[rng.randrange(BEAT, len(data)) :]
    else:
        data[38:40] = rng.randrange(400).to_bytes(2, "big")
    return bytes(data)


def that_go_on(rng: random.Random, key: bytes) -> list[Sent]:
    """Frames that are right up to the ends of their tags, anywhere in a beat, and go on for some bytes or beats."""
    sent = []
    for size in SIZES:
        right = tags.signed_frame(some_frame(rng, GEN_RX, size), key)
        sent += [Sent(right + rng.randbytes(more)) for more in (1, rng.randint(2, BEAT), rng.randint(BEAT, 3 * BEAT))]
    return sent


def with_wrong_tags(rng: random.Random, frame: bytes) -> list[Sent]:
    """A tagged frame eight times, with a bit of another byte of its tag changed each time."""
    changed = []
    for at in range(len(frame) - 8, len(frame)):
        data = bytearray(frame)
        data[at] ^= 1 << rng.randrange(8)
        changed.append(Sent(bytes(data)))
    return changed


def some_arrival(rng: random.Random, keys: dict[int, bytes]) -> Sent:
    gen = rng.choice((GEN_TX, GEN_RX, GEN_RX, GEN_OTHER))
    plain = some_frame(rng, gen)
    right = tags.signed_frame(plain, keys.get(gen, bytes(16)))
    kind = rng.randrange(8)
    if kind == 0:
        return Sent(plain)
    if kind == 1:
        return Sent(tags.signed_frame(plain, rng.randbytes(16)))
    if kind == 2:
        return Sent(attacked(rng, right))
    if kind == 3:
        return Sent(rng.randbytes(rng.randint(1, 200)))
    if kind == 4:
        return Sent(tags.signed_frame(some_frame(rng, gen, rng.randint(VECTOR + 1, 600)), keys.get(gen, bytes(16))))
    return Sent(right, damaged=kind == 5)


def compare(sent: list[Sent], got: list[Got], keys: dict[int, bytes]) -> Counter[str]:
    seen: Counter[str] = Counter()
    for number, (frame, out) in enumerate(zip(sent, got, strict=True)):
        wanted = arrived(frame.data, keys)
        kind = "forged" if wanted is None else "as it was" if wanted == frame.data else "opened"
        assert out.forged == (wanted is None), f"frame {number}, {kind}"
        assert out.damaged == frame.damaged
        if wanted is not None:
            assert out.data == wanted, f"frame {number}, {kind}"
        seen[kind] += 1
    return seen


@cocotb.test(skip=TOP != "tag_reader")
async def arriving(dut: Any) -> None:
    seen: Counter[str] = Counter()
    for gaps, tx_on, rx_on in ((0.0, True, True), (0.6, True, True), (0.1, False, True), (0.1, False, False)):
        rng, keys = await begin(dut, tx_on=tx_on, rx_on=rx_on)
        sent = [some_arrival(rng, keys) for _ in range(60)]
        sent += with_wrong_tags(rng, tags.signed_frame(some_frame(rng, GEN_RX), keys.get(GEN_RX, bytes(16))))
        got, lost = await through(dut, rng, sent, (gaps, 0.0))
        assert lost == 0
        seen += compare(sent, got, keys)
    assert all(seen[kind] > 10 for kind in ("forged", "as it was", "opened")), seen


@cocotb.test(skip=TOP != "tag_reader")
async def arriving_with_parameters_of_many_lengths(dut: Any) -> None:
    rng, keys = await begin(dut)
    sent = [Sent(tags.signed_frame(some_frame(rng, GEN_RX, size), keys[GEN_RX])) for size in SIZES]
    got, lost = await through(dut, rng, sent, (0.3, 0.0))
    assert lost == 0 and compare(sent, got, keys) == {"opened": len(SIZES)}


@cocotb.test(skip=TOP != "tag_reader")
async def arriving_with_more_behind_the_tag(dut: Any) -> None:
    """A forged frame is a frame as well: whole beats, and one last."""
    rng, keys = await begin(dut)
    sent = that_go_on(rng, keys[GEN_RX])
    got, lost = await through(dut, rng, sent, (0.7, 0.0))
    assert lost == 0 and compare(sent, got, keys) == {"forged": len(sent)}


@cocotb.test(skip=TOP != "tag_reader")
async def arriving_faster_than_units_hash(dut: Any) -> None:
    """Whole frames are lost and counted, and what follows them is as it was."""
    rng, keys = await begin(dut)
    sent = [Sent(tags.signed_frame(some_frame(rng, GEN_RX, VECTOR), keys[GEN_RX])) for _ in range(300)]
    got, lost = await through(dut, rng, sent, NO_PAUSES)
    assert lost > 0 and len(got) == len(sent) - lost
    opened = [arrived(frame.data, keys) for frame in sent]
    at = 0
    for out in got:
        at = opened.index(out.data, at) + 1
        assert not out.forged
    after = [some_arrival(rng, keys) for _ in range(20)]
    got, lost = await through(dut, rng, after, NO_PAUSES)
    assert lost == 0
    compare(after, got, keys)
