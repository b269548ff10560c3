"""An endpoint with a key, against a switch of the test's own that knows it and an attacker who does not."""

from __future__ import annotations

import random
import socket
from dataclasses import replace

import numpy as np
import pytest
from cluster import LOCAL, PATIENCE, wait_until

from catchment.host import Endpoint, EndpointError, Stream
from catchment.host.collectives import CollectiveError, Communicator
from catchment.host.collectives.opening import WAYS, Timing, config_of
from catchment.sim.golden import tags
from catchment.wire.generated.constants import HEADER_BYTES, Header, PacketType

STREAM = Stream(gen=9, workers=1, lanes=8, slots=4, key="00112233445566778899aabbccddeeff")
KEY = bytes.fromhex(STREAM.key)


def forgeries(header: Header, payload: bytes) -> list[bytes]:
    """Answers of somebody who saw the job's frames and has no key; each would be a sum of nines."""
    nines = (9).to_bytes(4, "big") * STREAM.lanes
    good = tags.tagged(KEY, header, payload)
    return [
        header._replace(version=1).pack() + nines,
        header._replace(version=1).pack() + nines + good[-8:],
        good[:HEADER_BYTES] + nines + good[-8:],
        tags.tagged(bytes(16), header, nines),
        tags.tagged(KEY, header, nines)[:-1] + b"?" + b"x",
        tags.tagged(KEY, header, nines)[:-1],
        good[:20],
        b"",
    ]


def _answer(switch: socket.socket) -> int:
    """Answer a frame as the switch of a job of one would, forged answers first; gives how many of these there were."""
    try:
        data, address = switch.recvfrom(2048)
    except TimeoutError:
        return 0
    read = tags.opened(KEY, data)
    assert read is not None, data.hex()
    header, payload = read
    answer = header._replace(type=PacketType.FA if header.type == PacketType.PA else PacketType.MH)
    forged = forgeries(answer, payload) if answer.type == PacketType.FA else []
    for one in forged:
        switch.sendto(one, address)
    switch.sendto(tags.tagged(KEY, answer, payload), address)
    return len(forged)


def test_forged_sums_are_counted_and_change_nothing(rng: random.Random) -> None:
    """Every answer comes after forged ones; the sums are those of the switch, the frames up have right tags."""
    values = np.array([rng.randrange(-(1 << 31), 1 << 31) for _ in range(100)], np.int32)
    into, sent = np.zeros_like(values), 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(("127.0.0.1", 0))
        switch.settimeout(0.05)
        with Endpoint.peer(stream=STREAM, wid=0, local=LOCAL, switch=switch.getsockname(), timeout=PATIENCE) as peer:
            push, pull = peer.push(values), peer.pull(into)
            while not (push.done() and pull.done()):
                sent += _answer(switch)
            push.wait(PATIENCE)
            pull.wait(PATIENCE)
            assert sent >= len(forgeries(Header(), b""))
            wait_until(lambda: peer.stats()["rejects"]["tag"] == sent)  # some may come after the last sum
    np.testing.assert_array_equal(into, values)


def test_forged_sums_of_a_rank_are_counted_and_change_nothing(rng: random.Random) -> None:
    """The same for a communicator: of one rank, so that the sums are its own vectors."""
    values = np.array([rng.randrange(-(1 << 31), 1 << 31) for _ in range(100)], np.int32)
    result = np.zeros_like(values)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(("127.0.0.1", 0))
        switch.settimeout(0.05)
        with Communicator(STREAM, rank=0, local=LOCAL, switch=switch.getsockname(), timeout=PATIENCE) as rank:
            work, sent = rank.all_reduce(values, result), 0
            while not work.done():
                sent += _answer(switch)
            work.wait(PATIENCE)
            assert sent >= len(forgeries(Header(), b""))
            wait_until(lambda: rank.stats()["forged"] == sent)
    np.testing.assert_array_equal(result, values)


def test_an_endpoint_refuses_what_its_key_does_not_serve_for(rng: random.Random) -> None:
    """Eight frames go, the ninth is refused by name before a part of its message is sent; half of them is told."""
    short = replace(STREAM, key_frames=8)
    values = np.array([rng.randrange(-(1 << 31), 1 << 31) for _ in range(32)], np.int32)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(("127.0.0.1", 0))
        switch.settimeout(0.05)
        with Endpoint.peer(stream=short, wid=0, local=LOCAL, switch=switch.getsockname(), timeout=PATIENCE) as peer:
            for wants in (False, True):
                assert peer.wants_keys is wants
                into = np.zeros_like(values)
                push, pull = peer.push(values), peer.pull(into)
                while not (push.done() and pull.done()):
                    _answer(switch)
                push.wait(PATIENCE)
                pull.wait(PATIENCE)
                np.testing.assert_array_equal(into, values)
            with pytest.raises(EndpointError, match="catchment job renew") as caught:
                peer.push(values).wait(PATIENCE)
            assert caught.value.kind == "spent" and "stream gen 9" in caught.value.stream
            assert peer.stats()["numbers_used"] == short.key_frames


def test_a_stream_without_a_key_has_no_end(rng: random.Random) -> None:
    with Endpoint.peer(
        stream=replace(STREAM, key="", key_frames=1), wid=0, local=LOCAL, switch=("127.0.0.1", 9), timeout=PATIENCE
    ) as peer:
        peer.push(np.zeros(100, np.int32))
        assert not peer.wants_keys
        assert peer.error is None


def test_a_key_is_not_shown_and_is_a_key() -> None:
    assert STREAM.key not in repr(STREAM)
    for wrong in ("00", "x" * 32, STREAM.key + "0", b"0" * 32, None):
        with pytest.raises(EndpointError) as caught:
            replace(STREAM, key=wrong)  # type: ignore[arg-type]
        assert str(wrong) not in str(caught.value) or wrong == "00"


def test_what_has_no_tags_takes_no_key() -> None:
    """A stream with a key never runs without tags."""
    where = {"local": LOCAL, "switch": ("127.0.0.1", 9)}
    with pytest.raises(CollectiveError, match="a ring with tags"):
        config_of(STREAM, rank=0, path=None, timing=Timing(1.0, 0.0, None), window=None, way=WAYS["tcp"], **where)


def test_an_untagged_endpoint_refuses_tags_by_their_version() -> None:
    plain = replace(STREAM, key="")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as switch:
        switch.bind(("127.0.0.1", 0))
        switch.settimeout(PATIENCE)
        with Endpoint.peer(stream=plain, wid=0, local=LOCAL, switch=switch.getsockname(), timeout=PATIENCE) as peer:
            values = np.arange(8, dtype=np.int32)
            pull = peer.pull(np.zeros_like(values))
            peer.push(values)
            data, address = switch.recvfrom(2048)
            header = Header.unpack(data)
            while header.type != PacketType.PA:
                header = Header.unpack(data := switch.recvfrom(2048)[0])
            assert header.version == 1 and len(data) == HEADER_BYTES + 4 * plain.lanes
            switch.sendto(tags.tagged(KEY, header._replace(type=PacketType.FA), data[HEADER_BYTES:]), address)
            switch.sendto(header._replace(type=PacketType.FA).pack() + data[HEADER_BYTES:], address)
            pull.wait(PATIENCE)
            assert peer.stats()["rejects"]["version"] == 1
