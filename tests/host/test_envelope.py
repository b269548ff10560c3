"""Ethernet, IPv4 and UDP around the frames of ports without a kernel: what is written, and what is taken."""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from catchment.host import _machines

HOST, SWITCH = ("10.0.0.1", 9000), ("10.0.0.254", 9001)
SWITCH_MAC, BROADCAST = "02:00:0a:00:00:fe", "ff:ff:ff:ff:ff:ff"
FIXED = 14 + 20 + 8
PAYLOAD = b"a vector's lanes"


def envelope() -> _machines.Envelope:
    return _machines.Envelope(*HOST, *SWITCH)


@dataclass(frozen=True)
class Sent:
    """A frame as the switch sends it, but for what a test changes."""

    payload: bytes = PAYLOAD
    ident: int = 0
    ttl: int = 64
    behind: bytes = b""  # what Ethernet fills short frames up with

    def bytes(self) -> bytes:
        frame = (
            Ether(src=SWITCH_MAC, dst="02:00:0a:00:00:01")
            / IP(src=SWITCH[0], dst=HOST[0], id=self.ident, ttl=self.ttl)
            / UDP(sport=SWITCH[1], dport=HOST[1], chksum=0)
            / self.payload
        )
        return bytes(frame) + self.behind


def taken(frame: bytes) -> bytes | None:
    """What there is to take from a frame: a slow reference that looks at each frame alone."""
    if len(frame) < FIXED:
        return None
    kind, version, total, fragment, protocol = struct.unpack_from("!12x H B x H 2x H x B", frame)
    source, target = (ipaddress.IPv4Address(frame[at : at + 4]) for at in (26, 30))
    ports = struct.unpack_from("!HH", frame, 34)
    (datagram,) = struct.unpack_from("!H", frame, 38)
    words = sum(struct.unpack_from("!10H", frame, 14))
    while words >> 16:
        words = (words & 0xFFFF) + (words >> 16)
    whole = kind == 0x0800 and version == 0x45 and not fragment & 0x3FFF and protocol == 17 and words == 0xFFFF
    ours = (str(source), ports[0]) == SWITCH and (str(target), ports[1]) == HOST
    fits = datagram >= 8 and total == 20 + datagram and 34 + datagram <= len(frame)
    return frame[FIXED : 34 + datagram] if whole and ours and fits else None


def test_the_reference_takes_what_the_switch_sends() -> None:
    assert taken(Sent().bytes()) == PAYLOAD
    assert taken(Sent(payload=b"", behind=bytes(18)).bytes()) == b""


def frames() -> st.SearchStrategy[bytes]:
    """Frames of the switch, whole, cut short, or with some bytes changed."""
    sent = st.builds(
        Sent,
        payload=st.sampled_from([PAYLOAD, b"", PAYLOAD * 3]),
        ident=st.sampled_from([0, 1]),
        ttl=st.sampled_from([64, 63]),
        behind=st.sampled_from([b"", bytes(18)]),
    ).map(Sent.bytes)

    def changed(frame: bytes, changes: list[tuple[int, int]]) -> bytes:
        copy = bytearray(frame)
        for at, bits in changes:
            copy[at % len(copy)] ^= bits
        return bytes(copy)

    spoilt = st.builds(changed, sent, st.lists(st.tuples(st.integers(0, FIXED), st.integers(1, 255)), max_size=2))
    short = st.builds(lambda frame, length: frame[:length], sent, st.integers(0, FIXED + len(PAYLOAD)))
    return st.one_of(sent, spoilt, short, st.integers(0, 80).map(bytes))


@given(st.lists(frames(), max_size=12))
def test_each_frame_is_taken_or_refused_whatever_came_before_it(coming: list[bytes]) -> None:
    own = envelope()
    for frame in coming:
        assert own.open(frame) == taken(frame)


def test_a_frame_of_zeros_is_refused_by_one_that_has_taken_none() -> None:
    assert envelope().open(bytes(FIXED)) is None
    assert envelope().open(bytes(200)) is None


def test_a_frame_that_is_shorter_than_the_last_one_and_says_the_same_is_refused() -> None:
    own, whole = envelope(), Sent().bytes()
    assert own.open(whole) == PAYLOAD
    assert own.open(whole[:-1]) is None
    assert own.open(whole) == PAYLOAD


@given(st.binary(max_size=64))
def test_what_is_sent_is_a_datagram_to_the_switch_with_a_good_checksum(payload: bytes) -> None:
    sent = Ether(envelope().put(payload))
    assert (sent[IP].src, sent[UDP].sport, sent[IP].dst, sent[UDP].dport) == (*HOST, *SWITCH)
    assert bytes(sent[UDP].payload)[: len(payload)] == payload
    assert (sent[IP].len, sent[UDP].len) == (28 + len(payload), 8 + len(payload))
    good = sent[IP].copy()
    del good.chksum
    assert sent[IP].chksum == IP(bytes(good)).chksum


def test_frames_go_to_all_until_the_switch_has_shown_its_address() -> None:
    own = envelope()
    assert Ether(own.put(PAYLOAD)).dst == BROADCAST
    assert own.open(Sent().bytes()) == PAYLOAD
    assert Ether(own.put(PAYLOAD)).dst == SWITCH_MAC
    assert own.open(bytes(64)) is None
    assert Ether(own.put(PAYLOAD)).dst == SWITCH_MAC
