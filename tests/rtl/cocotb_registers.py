"""Runs inside the simulator: nic_registers behind a master of cocotbext-axi."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import RisingEdge
from cocotbext.axi import AxiLiteBus, AxiLiteMaster, AxiResp

from catchment.rtl.generated import nic_regs as regs
from catchment.rtl.regmap.model import Register

SETTINGS = [register for register in regs.REGISTERS if register.access == "rw" and register is not regs.CONTROL]


def locked(register: Register, control: int) -> bool:
    tx, rx = bool(control & 1), bool(control & 2)
    return {"": False, "tx": tx, "rx": rx, "any": tx or rx}[register.lock]


def kept(register: Register, word: int, value: int) -> int:
    """What a word of a setting holds after `value` was written to it."""
    mask = 0
    for field in register.fields:
        mask |= ((1 << field.bits) - 1) << field.lsb
    return value & (mask >> 32 * word) & 0xFFFF_FFFF


async def anything(bus: AxiLiteMaster, rng: random.Random, words: dict[int, int], seen: Counter[str]) -> int:
    """Writes and reads of all kinds; how many must have been refused. `words`: what the settings hold."""
    control, refused = 0, 0
    for _ in range(400):
        kind = rng.choices(("control", "setting", "read only", "nowhere"), (1, 7, 1, 1))[0]
        if kind == "control":
            control = rng.randrange(8)
            assert (await bus.write(regs.CONTROL.address, bytes([control, 0, 0, 0]))).resp == AxiResp.OKAY
        elif kind == "setting":
            register = rng.choice(SETTINGS)
            word = rng.randrange(register.words)
            address = register.address + 4 * word
            value = rng.choice([0, 0xFFFF_FFFF, rng.getrandbits(32)])
            answer = await bus.write(address, value.to_bytes(4, "little"))
            kind = "locked" if locked(register, control) else "written"
            assert answer.resp == (AxiResp.SLVERR if kind == "locked" else AxiResp.OKAY), register.name
            if kind == "written":
                words[address] = kept(register, word, value)
            refused += kind == "locked"
            got = await bus.read(address, 4)
            assert got.resp == AxiResp.OKAY
            assert int.from_bytes(got.data, "little") == words[address], f"{register.name}: {value:#x}"
        elif kind == "read only":
            refused += 1
            address = rng.choice([regs.ID, regs.STATE, regs.PUSH_FREE]).address
            assert (await bus.write(address, b"\1\0\0\0")).resp == AxiResp.SLVERR
        else:
            refused += 2
            address = rng.choice([0x02C, 0x3FC, 0xFFC])
            assert (await bus.read(address, 4)).resp == AxiResp.SLVERR
            assert (await bus.write(address, bytes(4))).resp == AxiResp.SLVERR
        seen[kind] += 1
    return refused


async def reset(dut: Any) -> None:
    """Start the clock, and reset the registers."""
    for name in ("core_rst", "status", "interrupt_set", "stat_value", "host_stat_value"):
        getattr(dut, name).value = 0
    Clock(dut.clk, 4, "ns").start()
    dut.rst.value = 1
    for _ in range(3):
        await RisingEdge(dut.clk)
    dut.rst.value = 0


async def out_of_reset(dut: Any) -> AxiLiteMaster:
    """Reset the registers, and give the bus that reaches them."""
    await reset(dut)
    return AxiLiteMaster(AxiLiteBus.from_prefix(dut, "s_axil"), dut.clk, dut.rst)


@cocotb.test()
async def settings_hold_and_refusals_count(dut: Any) -> None:
    """Any value to any register, streams on and off: it is kept, or refused with SLVERR and changes nothing."""
    rng = random.Random(int(os.environ["CATCHMENT_SEED"]))
    bus = await out_of_reset(dut)
    counted = 0
    seen: Counter[str] = Counter()

    async def count() -> None:
        nonlocal counted
        while True:
            await RisingEdge(dut.clk)
            counted += bool(dut.refused.value)

    cocotb.start_soon(count())
    words: dict[int, int] = {}
    for register in SETTINGS:
        for word in range(register.words):
            words[register.address + 4 * word] = int.from_bytes(
                (await bus.read(register.address + 4 * word, 4)).data, "little"
            )
    refused = await anything(bus, rng, words, seen)
    for _ in range(4):
        await RisingEdge(dut.clk)
    assert counted == refused
    assert all(seen[what] > 10 for what in ("locked", "written", "read only", "nowhere")), seen
    # A soft reset ends the streams, and so unlocks; settings stay.
    await bus.write(regs.CONTROL.address, b"\3\0\0\0")
    dut.core_rst.value = 1
    await RisingEdge(dut.clk)
    dut.core_rst.value = 0
    assert (await bus.read(regs.CONTROL.address, 4)).data[0] & 3 == 0
    assert (await bus.write(regs.TX_GEN.address, b"\7\0\0\0")).resp == AxiResp.OKAY
    assert int.from_bytes((await bus.read(regs.RTO.address, 4)).data, "little") == words[regs.RTO.address]
    dut._log.info("coverage: %s", dict(seen))


@cocotb.test()
async def counters_are_read_in_two_words(dut: Any) -> None:
    """The low word holds the high one, which does not move with what is counted in between."""
    rng = random.Random(int(os.environ["CATCHMENT_SEED"]))
    bus = await out_of_reset(dut)
    for table, value in ((regs.STATISTICS, dut.stat_value), (regs.HOST_STATISTICS, dut.host_stat_value)):
        for _ in range(4):
            count = rng.getrandbits(48) | 1 << 47
            address = table.address + 8 * rng.randrange(table.count)
            value.value = count
            low = int.from_bytes((await bus.read(address, 4)).data, "little")
            value.value = rng.getrandbits(48)
            high = int.from_bytes((await bus.read(address + 4, 4)).data, "little")
            assert high << 32 | low == count, table.name


@cocotb.test()
async def bytes_that_are_not_selected_do_nothing(dut: Any) -> None:
    """Commands and events heed the byte strobes as settings do, whatever lies on the bus beside them."""
    for name in ("awvalid", "wvalid", "arvalid", "rready", "awprot", "arprot"):
        getattr(dut, f"s_axil_{name}").value = 0
    dut.s_axil_bready.value = 1
    await reset(dut)

    async def write(register: Register, value: int, strobes: int) -> int:
        """Write a word; what `strobe` was in the clocks after it."""
        dut.s_axil_awaddr.value, dut.s_axil_wdata.value, dut.s_axil_wstrb.value = register.address, value, strobes
        dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = 1
        await RisingEdge(dut.clk)
        dut.s_axil_awvalid.value = dut.s_axil_wvalid.value = 0
        seen = 0
        for _ in range(5):
            await RisingEdge(dut.clk)
            seen |= int(dut.strobe.value)
        return seen

    commands = [register for register in regs.REGISTERS if register.access in ("wo", "w1c")]
    for register in commands:
        assert await write(register, 0xFFFF_FFFF, 0) == 0, f"{register.name}: a write of no byte"
        assert (await write(register, 0xFFFF_FFFF, 0xF)).bit_count() == 1, register.name
    dut.interrupt_set.value = 0x3F
    await RisingEdge(dut.clk)
    dut.interrupt_set.value = 0
    await write(regs.IRQ_ENABLE, 0x3F, 0xF)
    await write(regs.IRQ, 0xFFFF_FFFF, 0b1110)
    assert dut.irq.value == 1
    await write(regs.IRQ, 0xFFFF_FFFF, 0b0001)
    assert dut.irq.value == 0
