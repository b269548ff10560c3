"""Endpoints of TCP, as people write them."""

from __future__ import annotations

import pytest

from catchment.wire.host_port import host_and_port


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("127.0.0.1:9600", ("127.0.0.1", 9600)),
        ("h0:0", ("h0", 0)),
        ("h0:65535", ("h0", 65535)),
        ("[::1]:80", ("::1", 80)),
        ("9464", ("", 9464)),
        (":80", ("", 80)),
    ],
)
def test_parts_of_an_endpoint(text: str, parts: tuple[str, int]) -> None:
    assert host_and_port(text) == parts


@pytest.mark.parametrize("text", ["", "web", "h0:", "h0:65536", "h0:99999999999999999999", "h0:-1", "h0:٣", "h0:8 "])
def test_what_ends_with_no_port_is_none(text: str) -> None:
    assert host_and_port(text) is None
