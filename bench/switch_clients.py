"""Prints how long a Write of the primary takes beside idle and hostile clients, as JSON.

usage: python -m bench.switch_clients [--idle 1000] [--hostile 100] [--writes 500]

An idle client has a stream with an arbitration and listens. Hostile ones: streams without a word, requests
of 3 and 64 MiB, writes that are not theirs, and reads of all entries. They run in a process of their own, and
reach the switch over TCP, as other machines do.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import grpc
import typer

from catchment.program import run_program
from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2, p4runtime_pb2_grpc

_OWN = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_send_message_length", -1))
_AIM_MS = 50.0
_ADDRESS = "127.0.0.1:0"
_READY = "ready"
_LONG, _TOO_LONG = 3 << 20, 64 << 20
"""Bytes of a request that a switch takes, and of one for which it cuts the connection off."""
_NICE = 10
"""The niceness of the other clients, which share this machine's processors with the switch."""


def _stub(address: str) -> Any:
    return p4runtime_pb2_grpc.P4RuntimeStub(grpc.aio.insecure_channel(address, options=_OWN))


def _arbitration(number: int) -> Any:
    request = p4runtime_pb2.StreamMessageRequest()
    request.arbitration.device_id = 1
    request.arbitration.election_id.low = number
    return request


async def _idle(address: str, number: int) -> Any:
    stream = _stub(address).StreamChannel()
    await stream.write(_arbitration(number))
    await stream.read()
    return stream


async def _hostile(address: str, number: int) -> None:
    long = p4runtime_pb2.WriteRequest(device_id=1)
    if number % 4 == 1:
        long.updates.add().entity.table_entry.metadata = bytes(_TOO_LONG if number % 8 == 1 else _LONG)
    stub = _stub(address)
    while True:
        with contextlib.suppress(grpc.aio.AioRpcError):
            if number % 4 == 0:
                await stub.StreamChannel().wait_for_connection()
            elif number % 4 == 3:
                entity = p4runtime_pb2.Entity(table_entry=p4runtime_pb2.TableEntry())
                await stub.Read(p4runtime_pb2.ReadRequest(device_id=1, entities=[entity])).read()
            else:
                await stub.Write(long)
        await asyncio.sleep(0.1)  # the clients share this machine's processors with the switch


async def _crowd(address: str, idle: int, hostile: int) -> None:
    streams = [await _idle(address, number) for number in range(idle)]
    print(_READY, flush=True)
    await asyncio.gather(*(_hostile(address, number) for number in range(hostile)))
    for one in streams:
        await one.read()


@contextlib.contextmanager
def _crowd_process(address: str, idle: int, hostile: int) -> Iterator[None]:
    """Idle and hostile clients in a process of their own, so that only the switch and not its load is measured."""
    command = [sys.executable, "-m", "bench.switch_clients", "--crowd", address]
    command += ["--idle", str(idle), "--hostile", str(hostile)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline().strip() != _READY:
                raise RuntimeError("the clients did not start")
            yield
        finally:
            process.kill()


async def _measure(address: str, writes: int) -> tuple[list[float], int]:
    """Milliseconds of each Write, and how many got another answer than the primary's."""
    async with grpc.aio.insecure_channel(address, options=_OWN) as channel:
        return await _write(p4runtime_pb2_grpc.P4RuntimeStub(channel), writes)


async def _write(primary: Any, writes: int) -> tuple[list[float], int]:
    stream = primary.StreamChannel()
    await stream.write(_arbitration(1 << 20))
    await stream.read()
    request = p4runtime_pb2.WriteRequest(device_id=1)
    request.election_id.low = 1 << 20
    taken, failed = [], 0
    for _ in range(writes):
        started = time.perf_counter()
        try:
            await primary.Write(request)
        except grpc.aio.AioRpcError as error:  # there is no program: refused, but as the primary's
            failed += error.code() is not grpc.StatusCode.FAILED_PRECONDITION
        taken.append((time.perf_counter() - started) * 1e3)
        await asyncio.sleep(0.01)
    stream.cancel()
    return taken, failed


def _peak_bytes(switch: SwitchProcess) -> int:
    """The most memory that the switch ever had."""
    status = Path(f"/proc/{switch.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM:"))


def main(
    idle: Annotated[int, typer.Option(help="Clients with a stream.")] = 1000,
    hostile: Annotated[int, typer.Option(help="Clients that attack.")] = 100,
    writes: Annotated[int, typer.Option(help="Writes to measure.")] = 500,
    crowd: Annotated[str, typer.Option(help="Be the other clients of the switch at this address.")] = "",
) -> None:
    """Print the time of a Write of the primary beside idle and hostile clients, and alone, as JSON."""
    if crowd:
        os.nice(_NICE)
        asyncio.run(_crowd(crowd, idle, hostile))
        return
    with SwitchProcess(grpc=_ADDRESS) as switch:
        alone = asyncio.run(_measure(switch.address, writes))
        with _crowd_process(switch.address, idle, hostile):
            beside = asyncio.run(_measure(switch.address, writes))
        peak = _peak_bytes(switch)
    result: dict[str, object] = {"idle": idle, "hostile": hostile}
    for name, (taken, failed) in (("alone", alone), ("beside", beside)):
        times = sorted(taken)
        result[f"{name}_median_ms"] = round(statistics.median(times), 2)
        result[f"{name}_p99_ms"] = round(times[int(len(times) * 0.99)], 2)
        result[f"{name}_failed"] = failed
    result["peak_mib"] = round(peak / (1 << 20))
    print(json.dumps({**result, "aim_p99_ms": _AIM_MS}))


if __name__ == "__main__":
    run_program(main)
