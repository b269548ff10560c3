"""Groups of proxies for tests: proxies and clients as threads, at Unix sockets in a folder of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from catchment.host import Endpoint
from catchment.host.proxy import Client, Proxy, ProxyGroup, SumClient, TensorTable
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

Floats = npt.NDArray[np.float32]

LIMIT = 240.0
"""Seconds after which a test gives up, however busy the machine is."""


@contextmanager
def group_of(proxies: int, clients: int, **options: Any) -> Iterator[ProxyGroup]:
    """A group that nobody serves yet."""
    with tempfile.TemporaryDirectory(prefix="catchment-", dir="/tmp") as folder:  # a socket's path has to be short
        addresses = tuple(f"{folder}/{number}" for number in range(proxies))
        yield ProxyGroup(addresses, clients, b"known to this test", **{"timeout": LIMIT / 2, **options})


def run_group(
    group: ProxyGroup,
    table: TensorTable | Callable[[int], TensorTable],
    work: Callable[[Client, int], Any],
    *,
    routes: Sequence[Sequence[int] | None] = (),
    ports: Sequence[Sequence[Endpoint]] = (),
    parameters: Mapping[str, Floats] | None = None,
    told: Callable[[int, ProxyGroup], ProxyGroup] = lambda _, group: group,
) -> list[Any]:
    """Start everybody; what `work` gives for each client, by number, or the first client's error.

    `parameters`: what client 0 brings. `told`: what a proxy is told of the group; clients are told the first proxy's.
    """

    def proxy(number: int) -> None:
        with Proxy(told(number, group), number, ports[number] if ports else ()) as one:
            one.run()

    def client(number: int) -> Any:
        own = table if isinstance(table, TensorTable) else table(number)
        brought = None if number else parameters
        with Client(told(0, group), number, own, routes[number] if routes else None, brought) as one:
            return work(one, number)

    with ThreadPoolExecutor(len(group.addresses) + group.clients) as threads, ExitStack() as exits:
        served: list[Future[None]] = [threads.submit(proxy, number) for number in range(len(group.addresses))]
        found = [threads.submit(client, number) for number in range(group.clients)]
        exits.callback(lambda: [each.exception(LIMIT) for each in served])
        values = [each.result(LIMIT) for each in found]
        for each in served:
            each.result(LIMIT)
        return values


def step(client: SumClient, own: Mapping[str, Floats], order: Sequence[str]) -> dict[str, Floats]:
    """Push in that order, then pull everything."""
    found = {}
    for name in order:
        client.push(name, own[name])
    for name, array in own.items():
        found[name] = np.empty_like(array)
        client.pull(name, found[name]).wait()
    client.end_step()
    return found


def push_all(client: SumClient, table: TensorTable) -> None:
    """Push ones for every tensor."""
    for tensor in table.tensors:
        client.push(tensor.name, np.ones(tensor.numel, np.float32))


def expected_sum(parts: Sequence[Floats], exponent: int) -> Floats:
    """Quantized, added and dequantized as the endpoints of an all-reduce job do."""
    clients = len(parts)
    lanes = [formats.quantize(part, DataType.FP32, exponent, clients).lanes for part in parts]
    total = np.sum(lanes, axis=0, dtype=np.int64).astype(np.int32)
    return np.asarray(formats.dequantize(total, DataType.FP32, exponent, clients), np.float32)
