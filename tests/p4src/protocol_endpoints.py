"""Small endpoints that follow docs/explanation/protocol.md to the letter, to run the switch model under a bad network.

An endpoint never sees the network: it gets frames' headers and payloads, and says what to send.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frame_builder import pack_values

from catchment.wire.generated.constants import DataType, Flag, Header, PacketType

M32 = 1 << 32


def ahead(a: int, b: int) -> bool:
    return 0 < (a - b) % M32 < 1 << 31


@dataclass(frozen=True)
class StreamSpec:
    """One stream of a job: `count` vectors from `first` on, consumers of depth `window`."""

    gen: int
    first: int
    count: int
    window: int
    lanes: int

    @property
    def end(self) -> int:
        return (self.first + self.count) % M32


def contribution(gen: int, wid: int, seq: int, lanes: int) -> tuple[int, ...]:
    """Different for every generation, worker, vector and lane; spread over all 32 bits."""
    state = gen * 0x9E3779B1 ^ wid * 0x85EBCA77 ^ seq * 0xC2B2AE3D
    return tuple(((state + lane * 0x27D4EB2F) * 0x165667B1 ^ (state >> 7)) % M32 for lane in range(lanes))


def next_exponent(wid: int, seq: int) -> int:
    return (seq * 7 + wid * 53) % 256 - 128


def has_exponent(wid: int, seq: int) -> bool:
    return (seq + wid) % 5 != 0


def saturates(wid: int, seq: int) -> bool:
    return (seq * 3 + wid) % 7 == 0


def parameters(gen: int, seq: int) -> bytes:
    """A PARAM payload whose length varies."""
    return b"".join(((gen * 31 + seq * 1009 + i) % M32).to_bytes(4, "big") for i in range(seq % 9)) + b"x" * (seq % 4)


class Sender:
    """Sends `spec.count` frames made by `make(seq)`, while credit lasts; resends from the last merged ack."""

    def __init__(self, spec: StreamSpec, make: Callable[[int, bool], tuple[Header, bytes]]) -> None:
        self.spec = spec
        self.make = make
        self.next = spec.first
        self.ma = spec.first
        self.mc = (spec.first + spec.window) % M32
        self.moved = False

    @property
    def done(self) -> bool:
        return self.ma == self.spec.end

    def heard(self, header: Header) -> None:
        if header.gen != self.spec.gen or not header.flags & Flag.ACKV:
            return
        if ahead(header.ack, self.ma):
            self.ma, self.moved = header.ack, True
        if ahead(header.credit, self.mc):
            self.mc = header.credit
        assert not ahead(self.ma, self.next), "acknowledged what was never sent"

    def pump(self) -> list[tuple[Header, bytes]]:
        out = []
        while self.next != self.spec.end and ahead(self.mc, self.next):
            out.append(self.make(self.next, False))
            self.next = (self.next + 1) % M32
        return out

    def resend(self) -> list[tuple[Header, bytes]]:
        """What the timer sends: nothing when there was progress since it last fired."""
        moved, self.moved = self.moved, False
        if moved:
            return []
        return [self.make((self.ma + i) % M32, True) for i in range((self.next - self.ma) % M32)]


class Consumer:
    """Takes each sequence number once, in order, and checks it with `check(seq, header, payload)`."""

    def __init__(self, spec: StreamSpec, check: Callable[[int, Header, bytes], None]) -> None:
        self.spec = spec
        self.check = check
        self.ack = spec.first
        self.consumed = spec.first
        self.held: dict[int, tuple[Header, bytes]] = {}

    @property
    def done(self) -> bool:
        return self.consumed == self.spec.end

    @property
    def credit(self) -> int:
        return (self.consumed + self.spec.window) % M32

    def take(self, header: Header, payload: bytes) -> None:
        seq = header.seq
        room = (self.credit - self.ack) % M32
        if header.gen != self.spec.gen or (seq - self.ack) % M32 >= room or seq in self.held:
            return
        self.held[seq] = (header, payload)
        while self.ack in self.held:
            self.ack = (self.ack + 1) % M32

    def drain(self, limit: int) -> None:
        for _ in range(limit):
            if self.consumed == self.ack:
                return
            header, payload = self.held.pop(self.consumed)
            self.check(self.consumed, header, payload)
            self.consumed = (self.consumed + 1) % M32

    def heartbeat(self) -> tuple[Header, bytes]:
        header = Header(
            type=PacketType.HB, flags=Flag.ACKV, gen=self.spec.gen, wid=77, ack=self.ack, credit=self.credit
        )
        return header, b""


class ClockedSender(Sender):
    """An all-reduce without acknowledgements: what was received says what may be sent.  Needs T >= 2 Ws slots."""

    def __init__(
        self, spec: StreamSpec, make: Callable[[int, bool], tuple[Header, bytes]], consumer: Consumer, window: int
    ) -> None:
        super().__init__(spec, make)
        self.consumer = consumer
        self.ws = window

    @property
    def done(self) -> bool:
        return self.next == self.spec.end

    def heard(self, header: Header) -> None:
        assert not header.flags & Flag.ACKV, "nobody acknowledges in this mode"

    def pump(self) -> list[tuple[Header, bytes]]:
        self.mc = (self.consumer.consumed + self.ws) % M32
        return super().pump()

    def resend(self) -> list[tuple[Header, bytes]]:
        behind = min(self.ws, (self.consumer.ack - self.spec.first) % M32)
        self.ma = (self.consumer.ack - behind) % M32
        return super().resend()


def partial(spec: StreamSpec, wid: int, seq: int, again: bool, consumer: Consumer | None) -> tuple[Header, bytes]:
    """A worker's PA; `wid` in the header is a lie, since the switch must not believe it."""
    flags = Flag.RETX if again else Flag(0)
    flags |= Flag.EXPV if has_exponent(wid, seq) else Flag(0)
    flags |= Flag.SAT if saturates(wid, seq) else Flag(0)
    flags |= Flag.ACKV if consumer is not None else Flag(0)
    header = Header(
        type=PacketType.PA,
        flags=flags,
        gen=spec.gen,
        wid=200 - wid,
        dtype=DataType.FP32,
        lanes=spec.lanes,
        exp=5,
        next_exp=next_exponent(wid, seq),
        seq=seq,
        ack=consumer.ack if consumer else 0,
        credit=consumer.credit if consumer else 0,
    )
    return header, pack_values(contribution(spec.gen, wid, seq, spec.lanes))


def check_sum(spec: StreamSpec, wids: list[int]) -> Callable[[int, Header, bytes], None]:
    """A consumer's check that a FA is the sum of exactly `wids`, and carries their merged fields."""

    def check(seq: int, header: Header, payload: bytes) -> None:
        expected = [sum(lane) for lane in zip(*(contribution(spec.gen, w, seq, spec.lanes) for w in wids), strict=True)]
        assert payload == pack_values(expected), f"gen {spec.gen} seq {seq}: wrong sum"
        assert bool(header.flags & Flag.SAT) == any(saturates(w, seq) for w in wids)
        assert bool(header.flags & Flag.EXPV) == all(has_exponent(w, seq) for w in wids)
        assert header.next_exp == max(next_exponent(w, seq) for w in wids)

    return check


def check_parameters(spec: StreamSpec) -> Callable[[int, Header, bytes], None]:
    def check(seq: int, _header: Header, payload: bytes) -> None:
        assert payload == parameters(spec.gen, seq), f"gen {spec.gen} seq {seq}: wrong parameters"

    return check
