"""Runs inside the simulator: the ports of a worker's transport as AXI-Streams, frames by scapy, gaps on every port."""

from __future__ import annotations

import itertools
import logging
import os
import random
from collections import Counter
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiStreamBus, AxiStreamFrame, AxiStreamSink, AxiStreamSource
from transport_frames import LANES, M32, merged_frame, parsed, sum_frame
from transport_nic import VECTOR_BYTES, Meta, Settings, StreamSettings

from catchment.wire.generated.constants import Flag, PacketType

BASE = 0xFFFF_FFFE
STREAM = StreamSettings(gen=5, base_seq=BASE, window=16, slots=16)
SETTINGS = Settings(STREAM, STREAM, all_reduce=True, rto=1 << 20, rto_most=1 << 20, heartbeat_interval=600)
COVERED: Counter[str] = Counter()


def pauses(rng: random.Random, of8: int) -> Any:
    """An endless pattern in which a port waits in about `of8` of 8 clocks."""
    return itertools.cycle([rng.randrange(8) < of8 for _ in range(997)])


class Bench:
    """The four streams of the device."""

    def __init__(self, dut: Any, rng: random.Random, idle: int, stall: int) -> None:
        for name in ("s_axis_tx", "m_axis_rx", "s_axis_net", "m_axis_net"):
            logging.getLogger(f"cocotb.{dut._name}.{name}").setLevel(logging.WARNING)
        self.dut = dut
        make = {"clock": dut.clk, "reset": dut.rst}
        self.tx = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_tx"), *make.values())
        self.rx = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_rx"), *make.values())
        self.net_in = AxiStreamSource(AxiStreamBus.from_prefix(dut, "s_axis_net"), *make.values())
        self.net_out = AxiStreamSink(AxiStreamBus.from_prefix(dut, "m_axis_net"), *make.values())
        for port, share in ((self.tx, idle), (self.net_in, idle), (self.rx, stall), (self.net_out, stall)):
            port.set_pause_generator(pauses(rng, share))
        cocotb.start_soon(Clock(dut.clk, 4, "ns").start())

    async def start(self) -> None:
        self.dut.stat_index.value = 0
        self.dut.settings.value = sum(word << 32 * i for i, word in enumerate(SETTINGS.words()))
        self.dut.rst.value = 1
        await ClockCycles(self.dut.clk, 4)
        self.dut.rst.value = 0
        await ClockCycles(self.dut.clk, 1100)
        while not self.net_out.empty():
            self.net_out.recv_nowait()

    async def push(self, vector: bytes, meta: Meta) -> None:
        await self.tx.send(AxiStreamFrame(vector, tuser=meta.word()))

    async def frame(self) -> bytes:
        received = await with_timeout(self.net_out.recv(), 40, "us")
        return bytes(received.tdata)

    async def data(self) -> tuple[Any, Any]:
        """The next frame that is no heartbeat."""
        while True:
            header, payload = parsed(await self.frame())
            if header.type == PacketType.PA:
                return header, payload
            assert header.type == PacketType.HB
            COVERED["heartbeats"] += 1

    async def vector(self) -> tuple[bytes, Meta]:
        received = await with_timeout(self.rx.recv(), 40, "us")
        user = received.tuser if isinstance(received.tuser, int) else received.tuser[0]
        return bytes(received.tdata), Meta.of(int(user))


@cocotb.test()
@cocotb.parametrize(idle=[0, 3, 6], stall=[0, 3, 6])
async def vectors_out_and_sums_back(dut: Any, idle: int, stall: int) -> None:
    rng = random.Random(f"{os.environ['CATCHMENT_SEED']}:{idle}:{stall}")
    bench = Bench(dut, rng, idle, stall)
    await bench.start()
    for index in range(24):
        seq = (BASE + index) % M32
        meta = Meta(exp=rng.randrange(-128, 128), sat=rng.random() < 0.5, last=index % 5 == 4)
        vector = rng.randbytes(VECTOR_BYTES)
        await bench.push(vector, meta)
        header, lanes = await bench.data()
        assert header.seq == seq and header.exp == meta.exp
        assert lanes == [int.from_bytes(vector[4 * i : 4 * i + 4], "little") for i in range(LANES)]
        assert bool(int(header.flags) & Flag.SAT) == meta.sat and bool(int(header.flags) & Flag.LAST) == meta.last
        COVERED["sat" if meta.sat else "exact"] += 1
        COVERED["last" if meta.last else "middle"] += 1
        # Half of the sums come before their turn.
        doubled = [2 * lane % M32 for lane in lanes]
        pair = {"flags": int(header.flags) & ~Flag.ACKV | Flag.ACKV, "ack": seq, "credit": (seq + 16) % M32}
        frame = sum_frame(SETTINGS, seq, doubled, exp=meta.exp, **pair)
        await bench.net_in.send(AxiStreamFrame(frame, tuser=0))
        if rng.random() < 0.3:
            await bench.net_in.send(AxiStreamFrame(frame, tuser=0))
            COVERED["duplicates"] += 1
        if rng.random() < 0.3:
            await bench.net_in.send(AxiStreamFrame(frame[:-1] + b"!", tuser=1))
            COVERED["damaged"] += 1
        got, back = await bench.vector()
        assert got == b"".join(lane.to_bytes(4, "little") for lane in doubled)
        assert (back.exp, back.sat, back.last) == (meta.exp, meta.sat, meta.last)
        await bench.net_in.send(AxiStreamFrame(merged_frame(SETTINGS, seq + 1, seq + 17), tuser=0))
    await RisingEdge(dut.clk)
    assert bench.rx.empty(), "a vector came twice"
    dut._log.info("covered: %s", dict(COVERED))
