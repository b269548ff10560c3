"""Malformed, spoofed and missing: counted or named, never a crash, a hang or a wrong sum."""

from __future__ import annotations

import os
import pickle
import random
import signal
import socket
import threading
from typing import Any

import numpy as np
import pytest
from cluster import LOCAL, PATIENCE, luwu, ring, wait_until

from catchment.host import Endpoint, EndpointError, Request, Stream
from catchment.wire.generated.constants import MAX_WORKERS, DataType, Flag, Header, PacketType

GRADIENTS, PARAMETERS = 7, 8  # the gens that cluster.luwu uses


def failure_of(request: Request) -> EndpointError:
    with pytest.raises(EndpointError) as caught:
        request.wait(PATIENCE)
    assert request.done()
    assert request.status == str(caught.value)
    return caught.value


def frame(payload: bytes = b"", **fields: int) -> bytes:
    return Header(**fields).pack() + payload


SUM = {"type": PacketType.FA, "gen": GRADIENTS, "dtype": DataType.INT32, "lanes": 64}
BEAT = {"type": PacketType.MH, "gen": PARAMETERS, "flags": Flag.ACKV, "credit": 64}
LANES = bytes(256)
MALFORMED = {
    "short": [b"", b"\x11", frame(**BEAT)[:-1]],
    "version": [frame(LANES, **SUM | {"version": 2}), frame(LANES, **SUM | {"version": 0})],
    "flags": [
        frame(LANES, **SUM | {"flags": 0x80}),
        *(frame(**BEAT | {"flags": flags}) for flags in (0, Flag.ACKV | Flag.PACKED, Flag.ACKV | Flag.MIXED)),
    ],
    "generation": [frame(LANES, **SUM | {"gen": 6}), frame(LANES, **SUM | {"gen": 0})],
    "type": [frame(LANES, **SUM | {"type": kind}) for kind in (0, PacketType.PA, PacketType.PARAM, PacketType.CNF, 15)]
    + [frame(LANES, **SUM | {"gen": PARAMETERS}), frame(**BEAT | {"gen": GRADIENTS})],
    "dtype": [frame(LANES, **SUM | {"dtype": dtype}) for dtype in (DataType.BYTES, 5, 255)],
    "lanes": [frame(LANES, **SUM | {"lanes": lanes}) for lanes in (0, 8, 63, 65, 65535)],
    "length": [frame(LANES[:-1], **SUM), frame(LANES + b"x", **SUM), frame(bytes(4000), **SUM), frame(b"x", **BEAT)],
    "ack": [frame(**BEAT | {"ack": 1, "credit": 64}), frame(**BEAT | {"credit": 65}), frame(**BEAT | {"ack": 1 << 31})],
    "window": [frame(LANES, **SUM | {"seq": 64}), frame(LANES, **SUM | {"seq": 1 << 31})],
    "duplicate": [frame(LANES, **SUM | {"seq": (1 << 32) - 1}), frame(LANES, **SUM | {"seq": (1 << 31) + 1})],
}


@pytest.mark.parametrize("reason", MALFORMED)
def test_a_bad_frame_changes_nothing_but_its_counter(reason: str) -> None:
    own = np.arange(1, 1001, dtype=np.int32)
    with luwu(1) as job:
        for bad in MALFORMED[reason]:
            job.relay.send_as_switch(job.root.local, bad)
        wait_until(lambda: job.root.stats()["rejects"][reason] == len(MALFORMED[reason]))
        total, copy = np.zeros_like(own), bytearray(3000)
        requests = [job.root.pull(total), job.workers[0].push(own)]
        requests += [job.workers[0].pull(copy), job.root.push(bytes(range(250)) * 12)]
        for request in requests:
            request.wait(PATIENCE)
        others = {
            name: count for name, count in job.root.stats()["rejects"].items() if name not in (reason, "duplicate")
        }
    assert np.array_equal(total, own)
    assert copy == bytes(range(250)) * 12
    assert set(others.values()) == {0}


def test_frames_from_anyone_but_the_switch_are_ignored() -> None:
    own = np.arange(1, 65, dtype=np.int32)
    with luwu(1) as job, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
        total = np.zeros_like(own)
        pull = job.root.pull(total)
        stranger.sendto(frame(LANES, **SUM | {"flags": Flag.LAST}), job.root.local)
        job.workers[0].push(own).wait(PATIENCE)
        pull.wait(PATIENCE)
    assert np.array_equal(total, own)


def test_random_bytes(rng: random.Random) -> None:
    """Frames that are nearly right, from the switch's own address: each is refused."""
    own = np.arange(1, 20_001, dtype=np.int32)
    with luwu(1) as job:
        sent = 0
        for _ in range(3000):
            mutated = bytearray(frame(LANES, **SUM))
            for _ in range(rng.randrange(1, 4)):
                mutated[rng.randrange(22)] = rng.randrange(256)
            # A sum that is right in every field is no longer malformed: leave those out.
            header = Header.unpack(bytes(mutated))
            if header.type == PacketType.FA and header.gen == GRADIENTS and header.seq < 64:
                continue
            job.relay.send_as_switch(job.root.local, bytes(mutated[: rng.choice([len(mutated), rng.randrange(300)])]))
            sent += 1
            if sent % 64 == 0:  # no more than its socket holds
                wait_until(lambda: sum(job.root.stats()["rejects"].values()) == sent)  # noqa: B023
        total = np.zeros_like(own)
        pull = job.root.pull(total)
        job.workers[0].push(own).wait(PATIENCE)
        pull.wait(PATIENCE)
        assert sent > 1000
    assert np.array_equal(total, own)


@pytest.mark.parametrize(("pushed", "pulled"), [(100, 300), (300, 100), (64, 65), (128, 64), (10_000, 1)])
def test_lengths_that_disagree(pushed: int, pulled: int) -> None:
    """The pull fails and says so; the next message is whole."""
    follow = np.arange(500, dtype=np.int32)
    with luwu(1) as job:
        wrong, right = job.root.pull(np.zeros(pulled, np.int32)), job.root.pull(total := np.zeros(500, np.int32))
        job.workers[0].push(np.zeros(pushed, np.int32)).wait(PATIENCE)
        job.workers[0].push(follow).wait(PATIENCE)
        error = failure_of(wrong)
        right.wait(PATIENCE)
        assert job.root.error is None
    assert (error.kind, error.fatal) == ("length", False)
    assert str(pulled) in str(error) and "gen 7" in str(error)
    assert np.array_equal(total, follow)


@pytest.mark.parametrize(
    ("pushed", "pulled"), [(1409, 1408), (1408, 1409), (10, 11), (11, 10), (1, 100_000), (100_000, 1)]
)
def test_parameter_lengths_that_disagree(pushed: int, pulled: int) -> None:
    with luwu(2) as job:
        wrong = [worker.pull(bytearray(pulled)) for worker in job.workers]
        right = [(worker.pull(buffer := bytearray(4)), buffer) for worker in job.workers]
        job.root.push(bytes(pushed)).wait(PATIENCE)
        job.root.push(b"next").wait(PATIENCE)
        for request in wrong:
            assert failure_of(request).kind == "length"
        for request, buffer in right:
            request.wait(PATIENCE)
            assert buffer == b"next"


def test_types_and_exponents_that_disagree() -> None:
    with luwu(1) as job:
        worker, total = job.workers[0], np.zeros(64, np.float32)
        pull = job.root.pull(total)
        worker.push(np.ones(64, np.int32)).wait(PATIENCE)
        assert failure_of(pull).kind == "dtype"
        pull = job.root.pull(np.zeros(128, np.float32))
        values = frame(LANES, **SUM | {"seq": 1, "dtype": DataType.FP32, "exp": 3})
        more = frame(LANES, **SUM | {"seq": 2, "dtype": DataType.FP32, "exp": 4, "flags": Flag.LAST})
        job.relay.send_as_switch(job.root.local, values)
        job.relay.send_as_switch(job.root.local, more)
        error = failure_of(pull)
    assert error.kind == "exponent"
    assert "4 after 3" in str(error)


@pytest.mark.sampled(4)
def test_a_missing_worker_is_an_error_in_time() -> None:
    with luwu(3, absent=(1,), timeout=6.0) as job:  # from the first second on there is a stall to be seen
        requests = [worker.push(np.ones(10_000, np.int32)) for worker in job.workers]
        pull = job.root.pull(np.zeros(10_000, np.int32))
        wait_until(lambda: all(worker.stalled() for worker in job.workers))
        stall = job.workers[0].stalled()[0]
        assert (stall.stream, stall.seq) == ("gradients gen 7 push", 0)
        assert stall.seconds >= 1
        for request in requests:
            error = failure_of(request)
            assert (error.kind, error.seq, error.fatal) == ("stalled", 0, True)
            assert "last ack=0" in str(error) and "missing" in str(error)
        assert failure_of(pull).seq == 0
        again = job.workers[0].error
        assert again is not None and str(again) == str(error).replace(error.peer, again.peer)
        with pytest.raises(EndpointError, match="no progress"):
            job.workers[0].push(np.ones(1, np.int32))


def test_a_worker_that_dies_in_the_middle() -> None:
    with luwu(2, timeout=4.0) as job:
        count = 5_000_000  # many seconds through this switch
        pushes = [worker.push(np.ones(count, np.int32)) for worker in job.workers]
        pull = job.root.pull(np.zeros(count, np.int32))
        wait_until(lambda: job.root.stats()["frames_received"] > 100)
        job.workers[1].close(0)
        assert failure_of(pushes[1]).kind == "closed"
        assert failure_of(pushes[0]).kind == "stalled"
        assert failure_of(pull).kind == "stalled"


def test_nobody_pulls() -> None:
    with luwu(1, timeout=4.0) as job:
        error = failure_of(job.workers[0].push(np.ones(100_000, np.int32)))
    assert "nobody pulls" in str(error)
    assert error.seq == 64


def test_a_switch_that_is_not_there() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as taken:
        taken.bind(LOCAL)
        nobody = taken.getsockname()
    stream = Stream(gen=1, workers=1)
    # Its own port is of another address, and so not by chance the one that has become free.
    with Endpoint.peer(stream=stream, wid=0, local=("127.0.0.2", 0), switch=nobody, timeout=0.3) as peer:
        error = failure_of(peer.push(np.ones(5, np.int32)))
    assert error.kind == "unreachable"
    assert error.peer == f"127.0.0.1:{nobody[1]}" and error.peer in str(error)
    assert "Connection refused" in str(error)
    clone = pickle.loads(pickle.dumps(error))
    assert (str(clone), clone.kind, clone.peer) == (str(error), error.kind, error.peer)


def test_a_switch_that_says_nothing() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(LOCAL)
        stream = Stream(gen=1, workers=1)
        with Endpoint.peer(stream=stream, wid=0, local=LOCAL, switch=silent.getsockname(), timeout=0.3) as peer:
            error = failure_of(peer.pull(np.zeros(5, np.int32)))
    assert error.kind == "unreachable"
    assert "nothing was ever heard" in str(error)


def test_close_fails_what_is_pending_and_everything_after() -> None:
    with luwu(1) as job:
        worker = job.workers[0]
        pending = [worker.push(np.ones(10_000, np.int32)), worker.pull(bytearray(10))]
        worker.close()
        worker.close()
        assert [failure_of(request).kind for request in pending] == ["closed", "closed"]
        for call in (lambda: worker.push(np.ones(1, np.int32)), lambda: worker.pull(bytearray(1))):
            with pytest.raises(EndpointError, match="closed"):
                call()
        assert "frames_sent" in worker.stats()


def test_a_receiver_that_closes_still_answers_its_sender() -> None:
    """The root's last heartbeat is lost; closing right after its pull, it repeats it when asked."""
    own = np.arange(64, dtype=np.int32)
    with luwu(1) as job:
        push = job.workers[0].push(own)
        wait_until(lambda: job.root.stats()["held"] == 1)
        job.relay.silent = True
        job.root.pull(np.zeros_like(own)).wait(PATIENCE)
        closing = threading.Thread(target=job.root.close, args=(30.0,))
        closing.start()
        job.relay.silent = False
        push.wait(PATIENCE)
        closing.join(PATIENCE)
        assert not closing.is_alive()


def test_wait_has_a_timeout_of_its_own() -> None:
    with ring(1) as job:
        pull = job.peers[0].pull(result := np.zeros(3, np.int32))
        with pytest.raises(TimeoutError):
            pull.wait(0.01)
        assert pull.status == "pending" and not pull.done()
        job.peers[0].push(np.array([1, 2, 3], np.int32)).wait(PATIENCE)
        pull.wait(PATIENCE)
        assert pull.status == "ok"
    assert result.tolist() == [1, 2, 3]


def test_ctrl_c_ends_a_wait() -> None:
    with ring(1) as job:
        pull = job.peers[0].pull(np.zeros(3, np.int32))
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012  it may come before the wait has begun
            timer.start()
            pull.wait()
        timer.join()


def test_a_forked_child_is_told() -> None:
    with ring(1) as job:
        child = os.fork()
        if child == 0:
            try:
                job.peers[0].push(np.ones(1, np.int32))
            except EndpointError as error:
                os._exit(0 if "fork" in str(error) else 1)
            os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        job.peers[0].push(np.ones(1, np.int32)).wait(PATIENCE)


@pytest.mark.parametrize(
    ("array", "complaint"),
    [
        (np.zeros(0, np.int32), "empty"),
        (np.zeros((4, 4), np.int32)[:, ::2], "contiguous"),
        (np.zeros(4, np.float64), "format 'd'"),
        (np.zeros(4, np.int64), "format"),
        (np.zeros(4, ">i4"), "format"),
        ("text", "str"),
        (None, "NoneType"),
        ([1, 2], "list"),
    ],
)
def test_buffers_that_are_refused(array: Any, complaint: str) -> None:
    with ring(1) as job:
        for call in (lambda: job.peers[0].push(array, 0), lambda: job.peers[0].pull(array)):
            with pytest.raises(EndpointError, match=complaint) as caught:
                call()
            assert caught.value.kind == "argument"


def test_more_buffers_that_are_refused() -> None:
    torch = pytest.importorskip("torch")
    with ring(1) as job:
        peer = job.peers[0]
        with pytest.raises(EndpointError, match="writable"):
            peer.pull(np.frombuffer(bytes(8), np.int32))
        with pytest.raises(EndpointError, match="float64"):
            peer.push(torch.zeros(3, dtype=torch.float64))
        with pytest.raises(EndpointError, match="not contiguous"):
            peer.push(torch.zeros(4, 4).t()[:2], 0)
        for exponent in (None, 128, -129):
            with pytest.raises(EndpointError, match="exponent"):
                peer.push(np.zeros(3, np.float32), exponent)


@pytest.mark.parametrize(
    "fields",
    [
        {"gen": 0},
        {"gen": 1 << 16},
        {"workers": 0},
        {"workers": MAX_WORKERS + 1},
        {"slots": 3},
        {"slots": 0},
        {"base_seq": -1},
        {"base_seq": 1 << 32},
        {"lanes": 63},
        {"param_bytes": 0},
        {"param_bytes": 9000},
        {"gen": "1"},
        {"workers": True},
    ],
)
def test_streams_that_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(EndpointError, match=next(iter(fields))) as caught:
        Stream(**{"gen": 1, "workers": 1} | fields)
    assert caught.value.kind == "argument"


@pytest.mark.parametrize(
    "options",
    [
        {"wid": 2},
        {"wid": -1},
        {"timeout": 0},
        {"window": 65},
        {"window": 0},
        {"local": ("127.0.0.1", 70000)},
        {"local": "127.0.0.1"},
        {"switch": ("not an address", 1)},
        {"switch": ("127.0.0.1", 0)},
    ],
)
def test_options_that_are_refused(options: dict[str, Any]) -> None:
    good = {"wid": 0, "local": LOCAL, "switch": ("127.0.0.1", 9)}
    with pytest.raises(EndpointError) as caught:
        Endpoint.peer(stream=Stream(gen=1, workers=2), **good | options)
    assert caught.value.kind == "argument"


def test_streams_are_required_and_distinct() -> None:
    with pytest.raises(EndpointError, match="without streams"):
        Endpoint.root(local=LOCAL, switch=("127.0.0.1", 9))
    same = Stream(gen=1, workers=1)
    with pytest.raises(EndpointError, match="same gen"):
        Endpoint.root(gradients=same, parameters=same, local=LOCAL, switch=("127.0.0.1", 9))
    with Endpoint.root(gradients=same, local=LOCAL, switch=("127.0.0.1", 9)) as root:
        assert failure_of(root.push(b"x")).kind == "argument"


def test_an_address_in_use_or_not_ours() -> None:
    stream = Stream(gen=1, workers=1)
    with Endpoint.peer(stream=stream, wid=0, local=LOCAL, switch=("127.0.0.1", 9)) as first:
        with pytest.raises(EndpointError, match="in use") as caught:
            Endpoint.peer(stream=stream, wid=0, local=first.local, switch=("127.0.0.1", 9))
        assert caught.value.kind == "system"
    with pytest.raises(EndpointError, match=r"192\.0\.2\.1:5"):
        Endpoint.peer(stream=stream, wid=0, local=("192.0.2.1", 5), switch=("127.0.0.1", 9))
