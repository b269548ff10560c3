"""Not a test: a member of a job as a process of its own; `member.py TASK.json` prints one line of JSON.

Every element that a worker pushes is drawn from (seed, message, worker), so the receiver can make the sums anew.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from catchment.host import Endpoint, EndpointError, Stream
from catchment.sim.golden import formats
from catchment.wire.generated.constants import DataType

TYPES = {"int32": DataType.INT32, "fp32": DataType.FP32}


def vector(task: Mapping[str, Any], message: int, worker: int) -> NDArray[Any]:
    """What a worker pushes as one message."""
    rng = np.random.default_rng((task["seed"], message, worker))
    size = task["sizes"][message]
    if task["dtype"] == "int32":
        return rng.integers(-(1 << 31), 1 << 31, size, dtype=np.int32)
    return (rng.standard_normal(size) * 10.0 ** rng.integers(-3, 3, size)).astype(np.float32)


def parameters(task: Mapping[str, Any], message: int) -> NDArray[np.uint8]:
    """What the root pushes as one message."""
    rng = np.random.default_rng((task["seed"], message, 1 << 20))
    return rng.integers(0, 256, task["sizes"][message], dtype=np.uint8)


def wanted_sum(task: Mapping[str, Any], message: int) -> NDArray[Any]:
    """The numpy reference of a message's sum."""
    workers, exponent = task["workers"], task["exponent"]
    dtype = TYPES[task["dtype"]]
    lanes = [formats.quantize(vector(task, message, w), dtype, exponent, workers).lanes for w in range(workers)]
    return formats.dequantize(formats.add_lanes(lanes), dtype, exponent, workers)


def endpoint(description: Mapping[str, Any], timeout: float) -> Endpoint:
    """The endpoint that a job describes."""
    where: dict[str, Any] = {
        "local": tuple(description["local"]),
        "switch": tuple(description["switch"]),
        "timeout": timeout,
    }
    if description["role"] == "peer":
        return Endpoint.peer(stream=Stream(**description["sums"]), wid=description["wid"], **where)
    where |= {"gradients": Stream(**description["gradients"]), "parameters": Stream(**description["parameters"])}
    return Endpoint.root(**where) if description["role"] == "root" else Endpoint.worker(wid=description["wid"], **where)


@functools.cache
def line_up() -> None:
    """Wait for the others, once in a process, so that nobody's patience begins before the slowest has started."""
    print(json.dumps({"ready": True}), flush=True)
    sys.stdin.readline()


def run(task: Mapping[str, Any], end: Endpoint) -> list[str]:
    """Push and pull every message at once; returns what was wrong."""
    role, wid = task["description"]["role"], task["description"]["wid"]
    numbers = range(len(task["sizes"]))
    exponent = None if task["dtype"] == "int32" else task["exponent"]
    pushed = [parameters(task, m) if role == "root" else vector(task, m, wid) for m in numbers]
    pulled = [np.zeros_like(parameters(task, m) if role == "worker" else vector(task, m, 0)) for m in numbers]
    line_up()
    requests = [end.pull(array) for array in pulled]
    requests += [end.push(array) if role == "root" else end.push(array, exponent) for array in pushed]
    print(json.dumps({"started": True}), flush=True)
    for request in requests:
        request.wait(task["patience"])
    wrong = []
    for message in numbers:
        wanted = parameters(task, message) if role == "worker" else wanted_sum(task, message)
        differing = np.flatnonzero(pulled[message].view(np.uint8) != wanted.view(np.uint8))
        if differing.size:
            wrong.append(f"message {message}: {differing.size} of {wanted.nbytes} bytes differ, first {differing[0]}")
    return wrong


def stay(end: Endpoint) -> None:
    """Say what was refused so far whenever a line asks for it, until no more can come."""
    print(json.dumps({"done": True}), flush=True)
    while sys.stdin.readline():
        print(json.dumps({"rejects": end.stats()["rejects"]}), flush=True)


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    result: dict[str, Any] = {}
    try:
        with endpoint(task["description"], task["timeout"]) as end:
            result["wrong"] = run(task, end)
            if task["stays"]:
                stay(end)
            result["stats"] = end.stats()
    except EndpointError as error:
        result["error"], result["kind"] = str(error), error.kind
    except TimeoutError as error:
        result["error"], result["kind"] = str(error), "hang"
    print(json.dumps(result, default=str), flush=True)


if __name__ == "__main__":
    main()
