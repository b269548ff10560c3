"""A stream that ends and begins again with another generation, while something of the old one is under way."""

from __future__ import annotations

from dataclasses import replace

import pytest
from transport_frames import LANES, sum_frame
from transport_nic import Gaps, Nic, Settings, StreamSettings

from catchment.rtl.generated.nic_regs import Role

BASE = 100
STREAM = StreamSettings(gen=9, base_seq=BASE, window=8, slots=1024)
FRESH = replace(STREAM, gen=77)
QUIET = 1 << 24  # clocks: no timer runs out meanwhile
OLD = Settings(STREAM, STREAM, all_reduce=True, rto=QUIET, rto_most=QUIET, heartbeat_interval=QUIET)
NEW = replace(OLD, tx=FRESH, rx=FRESH)
SWEEP = 1024  # clocks that a stream takes to begin when nothing else keeps it: one for each place of the ring


def payload(value: int) -> bytes:
    return value.to_bytes(4, "little") * LANES


def restart(nic: Nic) -> None:
    nic.configure(OLD.without())
    nic.run(10)
    nic.configure(NEW)


# Both vectors in turn: the host has taken none, some or most of its beats.
@pytest.mark.parametrize("clocks", [7, 8, 9, 12, 13, 14])
def test_a_stream_does_not_begin_while_the_host_is_in_the_middle_of_a_vector(clocks: int) -> None:
    """The host stands still for longer than a stream takes to begin."""
    with Nic(Role.WORKER, OLD) as nic:
        nic.start()
        nic.run(50)
        for index in range(2):
            nic.receive(sum_frame(OLD, BASE + index, [5 + index] * LANES))
        nic.run(clocks)
        nic.gaps(Gaps(host_stall=256))
        nic.run(3)
        restart(nic)
        nic.run(SWEEP + 500)
        assert not nic.status().rx_ready
        nic.gaps(Gaps())
        nic.run(100)
        assert nic.status().rx_ready
        assert {data for _, data, _ in nic.vectors()} <= {payload(5), payload(6)}
        for index in range(3):
            nic.receive(sum_frame(NEW, BASE + index, [10 + index] * LANES))
        nic.run(200)
        assert [data for _, data, _ in nic.vectors()] == [payload(10), payload(11), payload(12)]
        assert nic.status().rx_consumed == nic.status().rx_ack == BASE + 3
        assert nic.rejects() == {}


@pytest.mark.parametrize("beats", [1, 2, 3, 4])
def test_a_frame_under_way_when_its_stream_ends_is_refused(beats: int) -> None:
    """The link stands still after the frame's first `beats` beats of five until the stream has begun again."""
    with Nic(Role.WORKER, OLD) as nic:
        nic.start()
        nic.run(50)
        nic.receive(sum_frame(OLD, BASE))
        nic.run(beats)
        nic.gaps(Gaps(net_idle=256))
        restart(nic)
        nic.start()
        nic.run(5)
        nic.gaps(Gaps())
        nic.run(200)
        assert nic.rejects() == {"GENERATION": 1}
        assert nic.vectors() == [] and nic.stat("RX_VECTORS") == 0
        assert nic.status().rx_ack == BASE
        nic.receive(sum_frame(NEW, BASE, [10] * LANES))
        nic.run(200)
        assert [data for _, data, _ in nic.vectors()] == [payload(10)]
