"""The externs of bloom.p4 for the interpreter."""

from __future__ import annotations


def fold(value: int, rounds: int) -> tuple[int, int, bool]:
    return (value >> 16) ^ value, rounds + 1, value % 2 != 0


class Seen:
    def __init__(self, size: int, name: str) -> None:
        self.size = size
        self.second = name == "second"
        self.keys: list[int] = []

    def add(self, key: int) -> bool:
        """Whether the key was there; the oldest makes room."""
        known = key in self.keys
        if not known:
            self.keys = [*self.keys, key][-self.size :]
        return known

    def most(self, offset: int) -> int:
        return max(self.keys, default=0) + offset + self.second
