"""Rates and weights as large as the control plane can say."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from catchment.softswitch.build import build
from catchment.softswitch.inprocess import Switch

MOST = (1 << 63) - 1
GREEN = 0


def extras() -> Switch:
    return Switch(build(Path(__file__).parents[1] / "server" / "extras.p4"), seed=1)


def left(switch: Switch, source: int = 0) -> tuple[int, int]:
    """Group and colour that a probe of flow 1 brings back."""
    head = bytes(6) + source.to_bytes(6, "big") + b"\x88\xb5"
    ((_, frame),) = switch.inject(1, head + (1).to_bytes(2, "big") + bytes(8))
    return int.from_bytes(frame[18:20], "big"), frame[20]


def test_a_meter_without_limits_stays_green() -> None:
    """What it grants in two seconds is more than 64 bits hold."""
    switch = extras()
    switch.write_meter("flow_meter", 1, cir=MOST, cburst=4, pir=MOST, pburst=4)
    for _ in range(2):
        assert [left(switch)[1] for _ in range(12)] == [GREEN] * 12
        time.sleep(2.2)


def test_weights_keep_their_shares() -> None:
    switch = extras()
    for number in (1, 2):
        switch.insert_member("groups", number, "set_group", value=number)
    switch.insert_group("groups", 9, [(1, 1 << 24), (2, 1)])
    switch.insert("group_t", {"hdr.probe.flow": 1}, ("group", 9))
    shares = Counter(left(switch, source)[0] for source in range(256))
    assert shares[1] > 240
