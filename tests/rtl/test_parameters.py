"""Builds at the ends of what parameters.svh and the modules say of their parameters, and refusals beyond them."""

from __future__ import annotations

import pytest

from catchment.rtl.verilate import RtlError, lint


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("top", "parameters"),
    [
        ("nic", {"BURST_BEATS": 1, "READ_BEATS": 2, "WRITE_BEATS": 2, "QUEUE_DEPTH": 2}),
        ("nic", {"BURST_BEATS": 64, "READ_BEATS": 64, "WRITE_BEATS": 64, "QUEUE_DEPTH": 128}),
        ("sync_node", {"ENTRIES": 2, "WINDOW": 2}),
        ("sync_node", {"ENTRIES": 512, "WINDOW": 512}),
        ("round_client", {"SLOTS": 2}),
        ("round_client", {"SLOTS": 32768}),
    ],
)
def test_the_ends_of_the_ranges_are_built(top: str, parameters: dict[str, int]) -> None:
    lint(top, parameters)


@pytest.mark.parametrize(
    ("top", "parameters", "complaint"),
    [
        ("nic", {"QUEUE_DEPTH": 256}, "QUEUE_DEPTH must be a power of two, 2..128"),
        ("nic", {"QUEUE_DEPTH": 1}, "QUEUE_DEPTH must be a power of two, 2..128"),
        ("nic", {"VECTOR_BYTES": 32}, "transport: VECTOR_BYTES must be 64, 128, .. 8192"),
        ("round_client", {"SLOTS": 65536}, "SLOTS must be a power of two, 2..32768"),
        ("sync_node", {"ENTRIES": 1024}, "DATA_ROOM and MESSAGE_ROOM must be less than what credits count"),
    ],
)
def test_what_lies_beyond_is_refused(top: str, parameters: dict[str, int], complaint: str) -> None:
    with pytest.raises(RtlError, match=complaint):
        lint(top, parameters)
