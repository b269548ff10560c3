"""The builder of what lies around a frame, against Scapy's."""

from __future__ import annotations

import random

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from catchment.wire.udp_frame import UdpPeer, internet_checksum, udp_frame


def test_frames_are_those_of_scapy(rng: random.Random) -> None:
    for size in (0, 1, 20, 1400):
        source, target = (UdpPeer(rng.getrandbits(48), rng.getrandbits(32), rng.getrandbits(16)) for _ in range(2))
        ttl, number, checksum = rng.randint(1, 255), rng.getrandbits(16), rng.getrandbits(16)
        payload = rng.randbytes(size)
        built = udp_frame(payload, source, target, ttl=ttl, identification=number, udp_checksum=checksum)
        mac = [":".join(f"{byte:02x}" for byte in peer.mac.to_bytes(6, "big")) for peer in (source, target)]
        ip = [".".join(map(str, peer.ip.to_bytes(4, "big"))) for peer in (source, target)]
        scapy = (
            Ether(src=mac[0], dst=mac[1])
            / IP(src=ip[0], dst=ip[1], ttl=ttl, id=number, flags="DF")
            / UDP(sport=source.port, dport=target.port, chksum=checksum)
            / payload
        )
        assert built == bytes(scapy)
        assert internet_checksum(built[14:34]) == 0
        without = udp_frame(payload, source, target)
        assert without[40:42] == b"\0\0"
        assert without[42:] == payload


def test_a_checksum_folds_every_carry() -> None:
    assert internet_checksum(bytes.fromhex("0001f203f4f5f6f7")) == 0xFFFF - 0xDDF2  # RFC 1071, section 3
    assert internet_checksum(b"\xff\xff" * 3) == 0
    assert internet_checksum(b"\xff\xff" * 2 + b"\x00\x03") == 0xFFFC
    assert internet_checksum(b"\x80\x00" * 3 + b"\x7f\xff") == 0xFFFF - 1
