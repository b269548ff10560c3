"""Not a test: a member of a job on p4sgd.p4 as a process of its own; task and result as for member.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from member import line_up, vector, wanted_sum

from catchment.host import AllReducer, EndpointError, Stream


def run(task: Mapping[str, Any], reducer: AllReducer) -> list[str]:
    """All-reduce every message, one after another; returns what was wrong."""
    exponent = None if task["dtype"] == "int32" else task["exponent"]
    arrays = [vector(task, message, task["description"]["wid"]) for message in range(len(task["sizes"]))]
    line_up()
    for message, array in enumerate(arrays):
        reducer.all_reduce(array, exponent)
        if message == 0:
            print(json.dumps({"started": True}), flush=True)
    wrong = []
    for message, array in enumerate(arrays):
        wanted = wanted_sum(task, message)
        differing = np.flatnonzero(array.view(np.uint8) != wanted.view(np.uint8))
        if differing.size:
            wrong.append(f"message {message}: {differing.size} of {wanted.nbytes} bytes differ, first {differing[0]}")
    return wrong


def main() -> None:
    task = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    description = task["description"]
    where = {
        "local": tuple(description["local"]),
        "switch": tuple(description["switch"]),
        "timeout": task["timeout"],
        "spin": 0.0,
    }
    result: dict[str, Any] = {}
    try:
        with AllReducer(stream=Stream(**description["sums"]), wid=description["wid"], **where) as reducer:
            result["wrong"] = run(task, reducer)
            result["stats"] = reducer.stats()
    except EndpointError as error:
        result["error"], result["kind"] = str(error), error.kind
    print(json.dumps(result, default=str), flush=True)


if __name__ == "__main__":
    main()
