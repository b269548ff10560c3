"""Runs inside the simulator: P4SGD's worker as a core that AXI4-Lite configures, amid memories and a switch."""

from __future__ import annotations

import os
import random
from collections import deque
from dataclasses import dataclass
from typing import Any

import cocotb
import numpy as np
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp
from glm_case import Case
from numpy.typing import NDArray

from catchment.host.glm.numbers import Loss
from catchment.rtl.generated import glm_regs as regs
from catchment.rtl.regmap.model import Register
from catchment.sim.cosim.glm.network import SlotJob, model_switch
from catchment.sim.cosim.glm.training import hardware_training
from catchment.sim.world.star import Inject

SEED = int(os.environ["CATCHMENT_SEED"])
BASE, LABELS = 0x12_0000_0400, 0x7_0000_0040
PATIENCE = 40_000
BEAT = 64


class Core:
    """The device behind its registers."""

    def __init__(self, dut: Any) -> None:
        self.dut = dut
        self.bus = AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)
        self.errors = 0

    async def write(self, register: Register, value: int = 1, *, refused: bool = False) -> None:
        answer = await self.bus.write(register.address, value.to_bytes(4 * register.words, "little"))
        assert answer.resp == (AxiResp.SLVERR if refused else AxiResp.OKAY), register.name
        self.errors += refused * register.words

    async def read(self, register: Register) -> int:
        answer = await self.bus.read(register.address, 4 * register.words)
        assert answer.resp == AxiResp.OKAY, register.name
        return int.from_bytes(answer.data, "little")

    async def field(self, register: Register, name: str) -> int:
        return register.unpack(await self.read(register))[name]

    async def interrupt(self) -> None:
        for _ in range(PATIENCE):
            if self.dut.irq.value:
                return
            await RisingEdge(self.dut.clk)
        raise AssertionError(f"no interrupt in {PATIENCE} clocks")

    async def put(self, weights: NDArray[np.int64]) -> None:
        await self.write(regs.MODEL_SEEK, 0)
        for weight in weights.reshape(-1):
            await self.write(regs.MODEL_IN, int(weight) & 0xFFFF_FFFF)

    async def weights(self, count: int) -> list[int]:
        await self.write(regs.MODEL_SEEK, 0)
        found = []
        for _ in range(count):
            while not await self.field(regs.STATE, "model_ready"):
                pass
            value = await self.read(regs.MODEL_OUT)
            found.append(value - (value >> 31 << 32))
            await self.write(regs.MODEL_NEXT)
        return found


async def memory(dut: Any, prefix: str, base: int, content: bytes, rng: random.Random) -> None:
    """An AXI4 memory that stalls now and then."""
    ports = {
        name: getattr(dut, f"{prefix}_{name}")
        for name in ("araddr", "arlen", "arvalid", "arready", "rdata", "rresp", "rlast", "rvalid", "rready")
    }
    beats: deque[tuple[int, bool]] = deque()
    ports["rresp"].value = 0
    while True:
        await FallingEdge(dut.clk)
        ready, valid = rng.random() < 0.7, bool(beats) and rng.random() < 0.8
        ports["arready"].value, ports["rvalid"].value = ready, valid
        if valid:
            ports["rdata"].value, ports["rlast"].value = beats[0]
        asked = ready and bool(ports["arvalid"].value)
        address, count = int(ports["araddr"].value) - base, int(ports["arlen"].value) + 1
        await RisingEdge(dut.clk)
        if valid:
            beats.popleft()
        if asked:
            assert address >= 0 and address + BEAT * count <= len(content), "read outside of the memory"
            for i in range(count):
                place = address + BEAT * i
                beats.append((int.from_bytes(content[place : place + BEAT], "little"), i == count - 1))


@dataclass
class Peer:
    """What answers the frames; nothing does while it is dead."""

    inject: Inject | None


async def switch(dut: Any, peer: Peer, rng: random.Random) -> None:
    """The MAC's other side: frames to the slot model, its answers back, one in ten lost on either way."""
    answers, frame = deque[tuple[int, int, bool]](), bytearray()
    while True:
        await FallingEdge(dut.clk)
        ready = rng.random() < 0.8
        dut.m_axis_tx_tready.value = ready
        dut.s_axis_rx_tvalid.value = bool(answers)
        if answers:
            dut.s_axis_rx_tdata.value, dut.s_axis_rx_tkeep.value, dut.s_axis_rx_tlast.value = answers.popleft()
        if not (ready and dut.m_axis_tx_tvalid.value):
            continue
        keep = int(dut.m_axis_tx_tkeep.value)
        frame += int(dut.m_axis_tx_tdata.value).to_bytes(BEAT, "little")[: keep.bit_length()]
        if not dut.m_axis_tx_tlast.value:
            continue
        for _, answer in peer.inject(0, bytes(frame)) if peer.inject and rng.random() >= 0.1 else []:
            parts = [answer[i : i + BEAT] for i in range(0, len(answer), BEAT)] if rng.random() >= 0.1 else []
            answers += [
                (int.from_bytes(part, "little"), (1 << len(part)) - 1, i == len(parts) - 1)
                for i, part in enumerate(parts)
            ]
        frame.clear()


def samples(dut: Any, case: Case, rng: random.Random) -> None:
    """The case's samples and labels in memories."""
    beats = np.zeros((len(case.rows), 16), np.int32)
    beats[:, :8] = case.rows
    cocotb.start_soon(memory(dut, "m_axi", BASE, np.ascontiguousarray(case.golden[0].words).tobytes(), rng))
    cocotb.start_soon(memory(dut, "m_axi_label", LABELS, beats.tobytes(), rng))


async def begin(dut: Any) -> Core:
    """A clock, a reset, every input at rest."""
    for name in (
        "m_axi_arready", "m_axi_rvalid", "m_axi_rdata", "m_axi_rlast", "m_axi_rresp", "m_axi_label_arready",
        "m_axi_label_rvalid", "m_axi_label_rdata", "m_axi_label_rlast", "m_axi_label_rresp", "m_axis_tx_tready",
        "s_axis_rx_tvalid", "s_axis_rx_tdata", "s_axis_rx_tkeep", "s_axis_rx_tlast", "s_axis_rx_tuser",
    ):  # fmt: skip
        getattr(dut, name).value = 0
    Clock(dut.clk, 4, "ns").start()
    dut.rst.value = 1
    for _ in range(4):
        await RisingEdge(dut.clk)
    dut.rst.value = 0
    return Core(dut)


async def join(core: Core, job: SlotJob) -> None:
    rounds = job.rounds(0)
    for register, value in (
        (regs.GEN, rounds.gen), (regs.BASE_SEQ, rounds.base_seq), (regs.SLOTS, rounds.slots), (regs.RTO, rounds.rto),
        (regs.WID, rounds.wid), (regs.LOCAL_MAC, rounds.local_mac), (regs.PEER_MAC, rounds.switch_mac),
        (regs.LOCAL_IP, rounds.local_ip), (regs.PEER_IP, rounds.switch_ip),
    ):  # fmt: skip
        await core.write(register, value)
    await core.write(regs.CONTROL, regs.CONTROL.pack(rounds=1))


async def tell(core: Core, case: Case) -> dict[Register, int]:
    """The training's registers."""
    training = hardware_training(case.numbers, case.step, case.loss, case.epochs)
    words = case.golden[0].words
    settings = {
        regs.BITS: training.bits, regs.CHUNKS: words.shape[2], regs.MICRO_BATCHES: words.shape[1],
        regs.BATCH: training.batch, regs.EPOCHS: training.epochs, regs.LOSS: int(training.loss),
        regs.FORWARD_SHIFT: training.forward_shift, regs.MULTIPLIER: training.multiplier,
        regs.UPDATE_SHIFT: training.update_shift, regs.LABEL_BASE: LABELS, regs.BASE_0: BASE,
    }  # fmt: skip
    for register, value in settings.items():
        await core.write(register, value)
    return settings


@cocotb.test()
async def a_training_by_registers(dut: Any) -> None:
    """Its model is that of the golden model; settings are locked meanwhile; its end raises the interrupt."""
    rng = random.Random(SEED)
    case = Case(rng, rng.randrange(1, 9), rng.choice(list(Loss)), features=100, samples=24, batch=16, epochs=2)
    job = SlotJob(1, slots=8, rto=600)
    core = await begin(dut)
    samples(dut, case, rng)
    cocotb.start_soon(switch(dut, Peer(model_switch(job)), rng))
    assert await core.read(regs.ID) == int.from_bytes(b"CGLM", "little")
    assert await core.field(regs.BUILD, "engines") == 1
    await join(core, job)
    await tell(core, case)
    await core.put(case.start[0])
    assert await core.weights(case.start[0].size) == case.start[0].reshape(-1).tolist()
    await core.write(regs.IRQ_ENABLE, 1)
    await core.write(regs.START)
    await core.write(regs.BITS, 3, refused=True)
    await core.write(regs.GEN, 3, refused=True)
    await core.write(regs.START)
    assert await core.field(regs.FAULTS, "busy") == 1
    await core.interrupt()
    assert regs.IRQ.unpack(await core.read(regs.IRQ)) == {"done": 1, "refused": 1, "stopped": 0}
    await core.write(regs.IRQ, 3)
    assert await core.read(regs.IRQ) == 0 and not dut.irq.value
    assert await core.field(regs.STATE, "busy") == 0
    expected = case.expected()[0].reshape(-1).tolist()
    assert await core.weights(len(expected)) == expected
    micro_batches = case.epochs * len(case.rows)
    assert [await core.read(r) for r in (regs.BEGUN, regs.SUMS, regs.CONFIRMED)] == [micro_batches] * 3
    assert await core.read(regs.CLOCKS) > micro_batches and await core.read(regs.MEMORY_ERROR) == 0
    assert await core.read(regs.REGISTER_ERRORS) == core.errors == 2


@cocotb.test()
async def a_stop_at_any_time(dut: Any) -> None:
    """The peers are dead or living: what is under way ends whole, what happened can be read, and the next training's
    model is that of the golden model."""
    rng = random.Random(SEED)
    case = Case(rng, rng.randrange(1, 9), rng.choice(list(Loss)), features=100, samples=24, batch=16)
    core, peer = await begin(dut), Peer(None)
    samples(dut, case, rng)
    cocotb.start_soon(switch(dut, peer, rng))
    await tell(core, case)
    await core.write(regs.IRQ_ENABLE, regs.IRQ.pack(done=0, refused=0, stopped=1))
    for gen, alive in enumerate((False, True, True)):
        job = SlotJob(1, gen=gen, slots=8, rto=300)
        peer.inject = model_switch(job) if alive else None
        await join(core, job)
        await core.write(regs.START)
        for _ in range(rng.randrange(400)):
            await RisingEdge(dut.clk)
        while not alive and not await core.read(regs.REPEATED):
            assert await core.field(regs.STATE, "busy") == 1
        await core.write(regs.STOP)
        await core.interrupt()
        assert regs.STATE.unpack(await core.read(regs.STATE)) | {"model_ready": 0} == dict.fromkeys(
            ("busy", "model_ready", "stopping"), 0
        )
        assert await core.read(regs.CONTROL) == 0 and await core.field(regs.IRQ, "stopped") == 1
        begun, sums = await core.read(regs.BEGUN), await core.read(regs.SUMS)
        assert begun >= sums and (alive or (begun and not sums)) and await core.read(regs.CLOCKS)
        await core.write(regs.IRQ, 7)
        await core.write(regs.START)
        assert await core.field(regs.FAULTS, "rounds_off") == 1
    job = SlotJob(1, gen=9, slots=8, rto=600)
    peer.inject = model_switch(job)
    await join(core, job)
    await core.put(case.start[0])
    await core.write(regs.IRQ, 7)
    await core.write(regs.IRQ_ENABLE, regs.IRQ.pack(done=1, refused=0, stopped=0))
    before = await core.read(regs.CONFIRMED)
    await core.write(regs.START)
    await core.interrupt()
    expected = case.expected()[0].reshape(-1).tolist()
    assert await core.weights(len(expected)) == expected
    assert await core.read(regs.CONFIRMED) - before == len(case.rows)
    assert await core.read(regs.REGISTER_ERRORS) == 0


@cocotb.test()
async def what_cannot_be_is_refused(dut: Any) -> None:
    """Each wrong setting has its fault; nothing begins."""
    rng = random.Random(SEED)
    case = Case(rng, 4, features=64, samples=8, batch=8)
    core = await begin(dut)
    settings = await tell(core, case)
    await core.write(regs.START)
    assert regs.FAULTS.unpack(await core.read(regs.FAULTS)) == {
        field.name: int(field.name == "rounds_off") for field in regs.FAULTS.fields
    }
    await core.write(regs.SLOTS, 0)
    await core.write(regs.CONTROL, 1)
    await core.write(regs.START)
    assert await core.field(regs.FAULTS, "rounds_off") == 1, "no round would ever begin"
    await core.write(regs.CONTROL, 0)
    await join(core, SlotJob(1, slots=8))
    for register, value, fault in (
        (regs.BITS, 0, "bits"), (regs.BITS, rng.randrange(17, 32), "bits"), (regs.CHUNKS, 0, "chunks"),
        (regs.CHUNKS, 17, "chunks"), (regs.MICRO_BATCHES, 0, "counts"), (regs.BATCH, 0, "counts"),
        (regs.EPOCHS, 0, "counts"), (regs.LOSS, 3, "loss"), (regs.FORWARD_SHIFT, rng.choice([0, 25]), "shifts"),
        (regs.UPDATE_SHIFT, rng.randrange(48, 64), "shifts"), (regs.BASE_0, BASE + 512, "bases"),
        (regs.LABEL_BASE, LABELS + 4, "bases"),
    ):  # fmt: skip
        await core.write(register, value)
        await core.write(regs.START)
        faults = regs.FAULTS.unpack(await core.read(regs.FAULTS))
        assert faults == {name: int(name == fault) for name in faults}, (register.name, value)
        assert await core.field(regs.STATE, "busy") == 0
        await core.write(register, settings[register])
    await core.write(regs.MODEL_SEEK, 1 << 18)
    assert await core.read(regs.MODEL_OUT) == 0
    assert (await core.bus.read(0x0FF0 & ~3, 4)).resp == AxiResp.SLVERR
    assert await core.read(regs.REGISTER_ERRORS) == 1
