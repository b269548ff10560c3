"""Two-rate three-colour markers (RFC 2698) as BMv2 runs them: colour-blind, the peak bucket first."""

from __future__ import annotations

from dataclasses import dataclass, field

GREEN, YELLOW, RED = 0, 1, 2


@dataclass(slots=True)
class Bucket:
    """Fills with `rate` tokens a second up to `burst`, and begins full."""

    rate: int
    burst: int
    tokens: int
    granted: int = 0

    def take(self, elapsed_us: int, units: int) -> bool:
        """Whether there are tokens for `units`; takes them if so."""
        granted = elapsed_us * self.rate // 1_000_000
        self.tokens = min(self.tokens + granted - self.granted, self.burst)
        self.granted = granted
        if self.tokens < units:
            return False
        self.tokens -= units
        return True


@dataclass(slots=True)
class MeterCell:
    """One meter; green until it is configured."""

    by_bytes: bool
    since_us: int = 0
    buckets: list[Bucket] = field(default_factory=list)

    def configure(self, now_us: int, *, cir: int, cburst: int, pir: int, pburst: int) -> None:
        self.since_us = now_us
        self.buckets = [Bucket(pir, pburst, pburst), Bucket(cir, cburst, cburst)]

    def execute(self, now_us: int, length: int) -> int:
        """The colour of a packet of `length` bytes."""
        units = length if self.by_bytes else 1
        for bucket, color in zip(self.buckets, (RED, YELLOW), strict=False):
            if not bucket.take(now_us - self.since_us, units):
                return color
        return GREEN
