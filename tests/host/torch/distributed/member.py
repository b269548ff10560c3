"""One rank of a test: runs every `case_*` of a module and prints, for each, a line of JSON that says how it went.

python member.py MODULE.py RANK SIZE STORE_FILE TIMEOUT [CASE,CASE]
"""

from __future__ import annotations

import faulthandler
import importlib.util
import json
import sys
import traceback
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist


def cases_of(path: Path) -> dict[str, Callable[[int, int], None]]:
    """The cases of a module, in its order."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items() if name.startswith("case_")}


def main() -> None:
    """Run the cases."""
    module, rank, size, store, timeout = Path(sys.argv[1]), *map(int, sys.argv[2:4]), sys.argv[4], float(sys.argv[5])
    # A rank that hangs shows where, before its parent loses patience.
    faulthandler.dump_traceback_later(3 * timeout, exit=True)
    torch.set_num_threads(1)
    dist.init_process_group(
        "catchment", init_method=f"file://{store}", rank=rank, world_size=size, timeout=timedelta(seconds=timeout)
    )
    cases = cases_of(module)
    for name in sys.argv[6].split(",") if len(sys.argv) > 6 else cases:
        case = cases[name]
        try:
            torch.manual_seed(7)
            case(rank, size)
            print(json.dumps({"case": name}), flush=True)
        except SystemExit:  # a forked child of a case
            raise
        except BaseException:  # pytest.raises fails with one
            print(json.dumps({"case": name, "error": traceback.format_exc()}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
