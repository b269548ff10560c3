"""Runs inside the simulator: the counters of a NIC against sums in Python, by the name of the device."""

from __future__ import annotations

import os
import random
from collections import Counter
from typing import Any

import cocotb
from cocotb.triggers import ReadOnly, RisingEdge
from cocotb_start import start

from catchment.rtl.generated import nic_regs as regs
from catchment.rtl.packed import layout

TOP = os.environ["TOP"]
WORD = (1 << 32) - 1
VALUES = ("bytes", "saturated", "nonfinite", "latency")
LATE = 64
"""Clocks that a counter may be late."""


async def read(dut: Any, index: Any, value: Any) -> dict[int, int]:
    """What each index gives two clocks later."""
    await RisingEdge(dut.clk)
    found = {}
    for wanted in range(1 << len(index)):
        index.value = wanted
        await RisingEdge(dut.clk)
        await RisingEdge(dut.clk)
        await ReadOnly()
        found[wanted] = int(value.value)
        await RisingEdge(dut.clk)
    return found


def completion(rng: random.Random) -> dict[str, int]:
    """A record that is in memory, or lost; each number of another size."""
    numbers = {name: rng.randrange(1, 1 << rng.randrange(2, 33)) for name in VALUES}
    return {
        "done": 1,
        "done_lost": int(rng.random() < 0.2),
        "done_is_pull": rng.getrandbits(1),
        "done_status": rng.choice(list(regs.Status)),
        **{f"done_{name}": number for name, number in numbers.items()},
    }


class HostCounts:
    """What the counters of the host's side are by what has happened since a reset."""

    def __init__(self) -> None:
        self.counts = Counter[int]()
        self._latencies: tuple[list[int], list[int]] = ([], [])

    def see(self, events: dict[str, int], stalls: dict[str, int], register_refused: int) -> None:
        """A clock."""
        names = regs.HostStatistic
        for name, value in events.items():
            if not name.startswith("done") and not name.endswith("address"):
                self.counts[names[{"bus_error": "BUS_ERRORS"}.get(name, name.upper().replace("MISSED", "MISSES"))]] += (
                    value
                )
        for name, counter in (
            ("push_memory", names.PUSH_MEMORY_CLOCKS), ("push_transport", names.PUSH_TRANSPORT_CLOCKS),
            ("pull_waits", names.PULL_WAIT_CLOCKS), ("vector_waits", names.VECTOR_WAIT_CLOCKS),
            ("pull_memory", names.PULL_MEMORY_CLOCKS),
        ):  # fmt: skip
            self.counts[counter] += stalls[name]
        self.counts[names.REGISTER_ERRORS] += register_refused
        if not events.get("done"):
            return
        pull = events["done_is_pull"]
        self.counts[names.STATUS + events["done_status"]] += 1
        self.counts[names.PULLS if pull else names.PUSHES] += 1
        self.counts[names.RECORDS_LOST] += events["done_lost"]
        if events["done_lost"]:
            return
        self.counts[names.PULL_BYTES if pull else names.PUSH_BYTES] += events["done_bytes"]
        self.counts[names.PULL_LATENCY_SUM if pull else names.PUSH_LATENCY_SUM] += events["done_latency"]
        if not pull:  # those of pulls are always 0
            self.counts[names.SATURATED] += events["done_saturated"]
            self.counts[names.NONFINITE] += events["done_nonfinite"]
        self._latencies[pull].append(events["done_latency"])

    def expected(self) -> dict[int, int]:
        """Index -> value."""
        names, found = regs.HostStatistic, dict(self.counts)
        for pull, (least, most) in enumerate(
            [(names.PUSH_LATENCY_MIN, names.PUSH_LATENCY_MAX), (names.PULL_LATENCY_MIN, names.PULL_LATENCY_MAX)]
        ):
            found[least] = min(self._latencies[pull], default=WORD)
            found[most] = max(self._latencies[pull], default=0)
        return found


@cocotb.test(skip=TOP != "host_stats")
async def host_stats(dut: Any) -> None:
    """Every event and stall in a counter of its own; of records the sums, least and most, lost ones aside; a reset."""
    rng = await start(dut, events=0, stalls=0, register_refused=0, index=0)
    events_of, stalls_of = layout("hostif_pkg", "host_events_t"), layout("hostif_pkg", "host_stalls_t")
    plain = [m.name for m in events_of.members if m.bits == 1 and not m.name.startswith("done")]
    for part in range(3):
        counts, since = HostCounts(), 0
        for _ in range(part * 600):  # at first nothing happens
            since += 1
            events = {name: int(rng.random() < 0.2) for name in plain}
            events |= {name: rng.getrandbits(64) for name in ("push_missed_address", "pull_missed_address")}
            # A completion takes four clocks.
            if since > 4 and rng.random() < 0.3:
                events |= completion(rng)
                if events["done_is_pull"]:
                    events["done_saturated"] = events["done_nonfinite"] = 0
                since = 0
            else:
                events |= {m.name: 0 for m in events_of.members if m.name.startswith("done")}
            stalls = {m.name: int(rng.random() < 0.4) for m in stalls_of.members}
            refused = int(rng.random() < 0.1)
            dut.events.value, dut.stalls.value = events_of.pack(events), stalls_of.pack(stalls)
            dut.register_refused.value = refused
            counts.see(events, stalls, refused)
            await RisingEdge(dut.clk)
        dut.events.value = dut.stalls.value = dut.register_refused.value = 0
        for _ in range(LATE + 2):
            await RisingEdge(dut.clk)
        expected = counts.expected()
        found = await read(dut, dut.index, dut.value)
        wrong = {str(name): (found[name], expected.get(name, 0)) for name in regs.HostStatistic if name != 0}
        assert all(a == b for a, b in wrong.values()), {
            name: pair for name, pair in wrong.items() if pair[0] != pair[1]
        }
        assert [found[status] for status in regs.Status] == [expected.get(status, 0) for status in regs.Status]
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        for _ in range(LATE):
            await RisingEdge(dut.clk)
    assert all(expected[name] for name in regs.HostStatistic if name != 0), expected


@cocotb.test(skip=TOP != "transport_stats")
async def transport_stats(dut: Any) -> None:
    """Every event and reason in a counter of its own, bytes of what leaves and arrives; a reset."""
    inputs = ("events", "frame_end", "frame_reject", "sent", "sent_bytes", "received_bytes", "tx_run", "first_sent")
    rng = await start(dut, **dict.fromkeys((*inputs, "first_seq", "acked", "timeout", "stat_index"), 0))
    names = regs.Statistic
    for _ in range(2):
        expected = Counter[int]()
        for _ in range(700):
            events, ends, reason = rng.getrandbits(16), rng.random() < 0.5, rng.randrange(16)
            sent, sent_bytes, received = rng.random() < 0.5, rng.getrandbits(16), rng.randrange(65)
            for name, value in zip(inputs, (events, ends, reason, sent, sent_bytes, received), strict=False):
                getattr(dut, name).value = int(value)
            expected.update(place for place in range(16) if events >> place & 1)
            if ends and reason:  # 0: the frame is good
                expected[names.REJECTS + reason] += 1
            expected[names.TX_BYTES] += sent * sent_bytes
            expected[names.RX_BYTES] += received
            await RisingEdge(dut.clk)
        for name in inputs:
            getattr(dut, name).value = 0
        for _ in range(LATE + 2):
            await RisingEdge(dut.clk)
        found = await read(dut, dut.stat_index, dut.stat_value)
        expected[names.ROUND_TRIP_MIN_CLOCKS] = WORD  # none was measured
        assert {index: value for index, value in found.items() if value} == expected
        dut.rst.value = 1
        await RisingEdge(dut.clk)
        dut.rst.value = 0
        for _ in range(LATE):
            await RisingEdge(dut.clk)
