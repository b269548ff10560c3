"""Real endpoints on loopback around the test's own switch."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any

from relay import Job, Relay

from catchment.host import Endpoint, Stream
from catchment.wire.generated.constants import Mode

LOCAL = ("127.0.0.1", 0)
PATIENCE = 240.0  # seconds before a test gives up on a request


@dataclass(frozen=True)
class Cluster:
    """A LuWu job: workers, a root, and the switch between them."""

    relay: Relay
    workers: list[Endpoint]
    root: Endpoint
    gradients: Stream
    parameters: Stream


@dataclass(frozen=True)
class Ring:
    """An all-reduce job: peers around the switch."""

    relay: Relay
    peers: list[Endpoint]
    stream: Stream


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what the thread of an endpoint brings about."""
    limit = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < limit, "never became true"
        time.sleep(0.001)


@contextmanager
def luwu(
    workers: int,
    *,
    gradients: Stream | None = None,
    parameters: Stream | None = None,
    absent: tuple[int, ...] = (),
    timeout: float = 120.0,
    window: int | None = None,
    **faults: Any,
) -> Iterator[Cluster]:
    """Start a job; the workers in `absent` are known to the switch but never start."""
    up = replace(gradients or Stream(gen=7, workers=workers), workers=workers)
    down = replace(parameters or Stream(gen=8, workers=workers), workers=workers)
    with ExitStack() as stack:
        relay = stack.enter_context(Relay(**faults))
        reduce = relay.add(Job(up.gen, Mode.REDUCE, up.slots, workers))
        broadcast = relay.add(Job(down.gen, Mode.BCAST, down.slots, workers))
        common = {"local": LOCAL, "switch": relay.address, "timeout": timeout, "window": window}
        members = []
        for wid in range(workers):
            if wid in absent:
                continue
            worker = stack.enter_context(Endpoint.worker(gradients=up, parameters=down, wid=wid, **common))
            reduce.members[worker.local] = broadcast.members[worker.local] = wid
            members.append(worker)
        root = stack.enter_context(Endpoint.root(gradients=up, parameters=down, **common))
        reduce.members[root.local] = broadcast.members[root.local] = None
        yield Cluster(relay, members, root, up, down)


@contextmanager
def ring(
    peers: int,
    *,
    stream: Stream | None = None,
    absent: tuple[int, ...] = (),
    timeout: float = 120.0,
    window: int | None = None,
    **faults: Any,
) -> Iterator[Ring]:
    """Start an all-reduce job; the peers in `absent` never start."""
    both = replace(stream or Stream(gen=9, workers=peers), workers=peers)
    with ExitStack() as stack:
        relay = stack.enter_context(Relay(**faults))
        job = relay.add(Job(both.gen, Mode.ALLREDUCE, both.slots, peers))
        members = []
        for wid in sorted(set(range(peers)) - set(absent)):
            peer = stack.enter_context(
                Endpoint.peer(stream=both, wid=wid, local=LOCAL, switch=relay.address, timeout=timeout, window=window)
            )
            job.members[peer.local] = wid
            members.append(peer)
        yield Ring(relay, members, both)
