"""Runs torch's own cases for a process group, out of the installed torch, with the backend `catchment`.

python torch_cases.py RANKS CASE [CASE ...]    # for each case a line of JSON that says how it went

The cases are `DistributedTest` of torch.testing._internal.distributed.distributed_test. They decide by the name of the
backend, when they are imported, which of them are for it; here that name is gloo's, and the groups that they make are
of `catchment`. Every rank of every case is a process of its own, forked from this one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

PATIENCE = 240
MODULE = "torch.testing._internal.distributed.distributed_test"

os.environ |= {
    "BACKEND": "gloo",
    "WORLD_SIZE": sys.argv[1],
    "TEMP_DIR": tempfile.mkdtemp(),
    "MASTER_ADDR": "127.0.0.1",
    "DISTRIBUTED_TESTS_DEFAULT_TIMEOUT": str(PATIENCE),
    "PYTORCH_PRINT_REPRO_ON_FAILURE": "0",
}

import torch  # noqa: E402  what is above must be set before
import torch.distributed as dist  # noqa: E402
from torch.testing._internal.distributed import distributed_test  # noqa: E402

# Cases that ask for the backend's name as they run, and know no third one.
_ASK_FOR_GLOO = ("test_accumulate_gradients", "test_DistributedDataParallel")


class Case(distributed_test.TestDistBackend, distributed_test.DistributedTest._DistTestBase):  # type: ignore[misc,name-defined]
    """One of torch's cases, on ranks that are forked instead of spawned: torch is imported once."""

    def setUp(self) -> None:
        """Start the ranks."""
        super().setUp()
        self._start_processes(torch.multiprocessing.get_context("fork").Process)

    def run_test(self, test_name: str, pipe: Any) -> None:
        """Run a test in a rank's process, whose group is there already."""
        if test_name.startswith(_ASK_FOR_GLOO):
            distributed_test.BACKEND = "gloo"
        super().run_test(test_name, pipe)

    def _barrier(self, *arguments: Any, **options: Any) -> None:
        """Files in a folder; torch gives them ten seconds."""
        super()._barrier(*arguments, **{**options, "timeout": PATIENCE})


def run(name: str) -> dict[str, str]:
    """How a case went: ok, skipped or failed, and what it said."""
    if not hasattr(Case, name):
        return {"case": name, "outcome": "skipped", "said": f"torch {torch.__version__} has no such case"}
    result = unittest.TestResult()
    Case(name).run(result)
    outcome = "skipped" if result.skipped else "ok" if result.wasSuccessful() else "failed"
    said = result.skipped or [*result.failures, *result.errors] or [(None, "")]
    return {"case": name, "outcome": outcome, "said": said[0][1]}


def main() -> None:
    """See the top."""
    for folder in ("barrier", "test_dir", "init_dir"):
        Path(os.environ["TEMP_DIR"], folder).mkdir(exist_ok=True)
    torch.set_num_threads(1)
    distributed_test.BACKEND = os.environ["BACKEND"] = "catchment"
    distributed_test.default_pg_timeout = PATIENCE
    assert dist.is_backend_available("catchment")
    for name in sys.argv[2:]:
        print(json.dumps(run(name)), flush=True)


if __name__ == "__main__":
    main()
