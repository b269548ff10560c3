"""Not a test: who has cut into a cable; `cut_cable.py PERIOD SEED` changes every PERIOD-th payload on its way.

It runs in a network namespace of its own between interfaces `member` and `cable`: prints a line when it may be given
them, begins at a line on its input, and at the next one stops to change any and prints, as JSON, how many frames it
changed towards the switch (`up`) and towards the member (`down`). What it does not change it passes on, to the end.
"""

from __future__ import annotations

import json
import random
import select
import socket
import sys

from catchment.wire.generated.constants import HEADER_BYTES, HEADER_OFFSET, UDP_PORT, Header, PacketType

_ETH_P_ALL = 3
_OUTGOING = 4
_PAYLOAD = HEADER_OFFSET + HEADER_BYTES
_WITH_PAYLOAD = (PacketType.PA, PacketType.FA, PacketType.PARAM)


class Changer:
    """Changes one bit of every `period`-th payload of one direction."""

    def __init__(self, period: int, rng: random.Random) -> None:
        self.changed, self.at_work = 0, True
        self._period, self._rng, self._seen = period, rng, 0

    def __call__(self, frame: bytes) -> bytes:
        if not self.at_work or not _has_payload(frame):
            return frame
        self._seen += 1
        if self._seen % self._period:
            return frame
        self.changed += 1
        changed = bytearray(frame)
        changed[40:42] = b"\0\0"  # no UDP checksum: a receiver would see the change by it
        changed[self._rng.randrange(_PAYLOAD, _PAYLOAD + 4)] ^= 1 << self._rng.randrange(8)
        return bytes(changed)


def _has_payload(frame: bytes) -> bool:
    """Whether this is a vector, a sum or a part of parameters, of any version."""
    if len(frame) < _PAYLOAD + 4 or frame[12:14] != b"\x08\x00" or frame[23] != socket.IPPROTO_UDP:
        return False
    ports = {int.from_bytes(frame[at : at + 2], "big") for at in (34, 36)}
    return UDP_PORT in ports and Header.unpack(frame, HEADER_OFFSET).type in _WITH_PAYLOAD


def opened(interface: str) -> socket.socket:
    """A packet socket on an interface."""
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    port.bind((interface, _ETH_P_ALL))
    return port


def main() -> None:
    period, seed = int(sys.argv[1]), sys.argv[2]
    print("ready", flush=True)
    sys.stdin.readline()
    up, down = (Changer(period, random.Random(f"{way} {seed}")) for way in ("up", "down"))
    with opened("member") as member, opened("cable") as cable:
        print("between", flush=True)
        ways = {member: (cable, up), cable: (member, down)}
        while True:
            readable, _, _ = select.select([member, cable, sys.stdin], [], [])
            for source in readable:
                if source is sys.stdin:
                    if not sys.stdin.readline():
                        return
                    up.at_work = down.at_work = False
                    print(json.dumps({"up": up.changed, "down": down.changed}), flush=True)
                    continue
                frame, address = source.recvfrom(65535)
                if address[2] != _OUTGOING:
                    target, changer = ways[source]
                    target.send(changer(frame))


if __name__ == "__main__":
    main()
