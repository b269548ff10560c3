"""One rank, with either process group: what expressions give, and which calls the C++ one hands to the one in Python.

python differences.py RANK STORE_FILE JSON    # {"expressions": [..], "calls": [..]}; prints what they gave as JSON

Names in them: torch, dist, group (the default group), rank, plain (contiguous fp32), strided, double, short (bf16).
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from catchment.host.torch.distributed.process_group import SwitchProcessGroup

SIZE = 2
# Asked for all the time, and no operations.
_QUIET = {"rank", "size", "name", "check_process", "python", "switch"}


def names(rank: int) -> dict[str, Any]:
    """What expressions may use; fresh for each."""
    return {
        "torch": torch,
        "dist": dist,
        "group": dist.group.WORLD,
        "rank": rank,
        "plain": torch.full((4,), rank + 1.0),
        "strided": torch.full((4, 2), rank + 1.0)[:, 0],
        "double": torch.full((4,), rank + 1.0, dtype=torch.float64),
        "short": torch.full((4,), rank + 1.0, dtype=torch.bfloat16),
        "whole": [torch.empty(4) for _ in range(SIZE)],
    }


def recorded(group: SwitchProcessGroup, called: list[str]) -> None:
    """Let `group` note the operations that it is asked for."""

    def note(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def noting(*arguments: Any, **options: Any) -> Any:
            called.append(name)
            return method(*arguments, **options)

        return noting

    for name, member in vars(SwitchProcessGroup).items():
        if inspect.isfunction(member) and not name.startswith("_") and name not in _QUIET:
            setattr(group, name, note(name, getattr(group, name)))


def main() -> None:
    """See the top."""
    rank, store, asked = int(sys.argv[1]), sys.argv[2], json.loads(sys.argv[3])
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=SIZE, timeout=timedelta(seconds=60)
    )
    said: dict[str, Any] = {"expressions": {}, "calls": {}}
    for expression in asked["expressions"]:
        said["expressions"][expression] = str(eval(expression, names(rank)))
    behind = getattr(dist.group.WORLD._get_backend(torch.device("cpu")), "python", None)
    if isinstance(behind, SwitchProcessGroup):
        called: list[str] = []
        recorded(behind, called)
        for call in asked["calls"]:
            called.clear()
            exec(call, names(rank))
            said["calls"][call] = called[0] if called else ""
    print(json.dumps(said), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
