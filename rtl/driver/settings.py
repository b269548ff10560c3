"""The settings that the driver gives a NIC before its streams begin."""

from __future__ import annotations

from dataclasses import dataclass, field

from catchment.wire.generated.constants import MAX_WORKERS, UDP_PORT

CLOCK_HZ = 250_000_000


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """A stream of a job, the same values at every member (docs/explanation/protocol.md).

    Attributes:
        gen: incarnation, 1..65535, never used again.
        base_seq: the first sequence number.
        slots: T, the entries the job has in the switch.
        window: frames in flight or held; 0: as many as the NIC holds and the slots allow.
        key: under which its frames carry tags, 16 bytes: a secret; empty without tags.
    """

    gen: int
    base_seq: int = 0
    slots: int = 64
    window: int = 0
    key: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class NicSettings:
    """All of a NIC's settings.

    Attributes:
        tx: the stream it sends: gradients (WorkerNIC), parameters (AggNIC).
        rx: the stream it receives; in all-reduce the same as `tx`.
        workers: of the job; fixes h = ceil(log2 workers).
        packed: gradients and sums have packed lanes, two 16-bit numbers in each; floats only.
        wid: worker index, for people reading a capture.
        rto, rto_most, resend_delay, heartbeat_interval: in clocks.
    """

    tx: StreamSettings
    rx: StreamSettings
    workers: int
    local_mac: int
    local_ip: int
    peer_mac: int
    peer_ip: int
    local_port: int = UDP_PORT
    peer_port: int = UDP_PORT
    wid: int = 0
    all_reduce: bool = False
    packed: bool = False
    rto: int = 25_000
    rto_most: int = 2_500_000
    resend_delay: int = 0
    heartbeat_interval: int = 6_250

    @property
    def headroom(self) -> int:
        """h.

        Raises:
            ValueError: no such number of workers.
        """
        if not 1 <= self.workers <= MAX_WORKERS:
            raise ValueError(f"{self.workers} workers; a job has 1..{MAX_WORKERS}")
        return (self.workers - 1).bit_length()

    @property
    def full(self) -> bool:
        """Whether the workers are 2^h: the largest number of a packed lane is then one less than 2^(15-h).

        Raises:
            ValueError: no such number of workers.
        """
        return self.workers == 1 << self.headroom
