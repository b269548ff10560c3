"""torchrun's agents come and go: the ranks that are left go on, and go on with those that come."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crew import FOLDER, GROUPS, PATIENCE, ROOT, environment
from test_torchrun import free_port

# torch 2.13 shares the rendezvous' store with the ranks and tells its address only once: a later agent waits for it.
OWN_STORE = {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}


@contextmanager
def agent(port: int, folder: Path, group: str) -> Iterator[subprocess.Popen[bytes]]:
    """An agent of torchrun with one rank, in a session of its own with all that it starts."""
    rendezvous = ["--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "elastic"]
    limits = ["--nnodes", "1:2", "--nproc-per-node", "1", "--max-restarts", "5"]
    quick = ["--rdzv-conf", "last_call_timeout=15,keep_alive_interval=2,keep_alive_max_attempt=10"]
    process = subprocess.Popen(
        [
            sys.executable, "-m", "torch.distributed.run", *rendezvous, *limits, *quick, "--local-addr", "127.0.0.1",
            str(FOLDER / "elastic.py"), str(folder),
        ],
        cwd=ROOT, env=environment({**OWN_STORE, "CATCHMENT_PROCESS_GROUP": group}), start_new_session=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.terminate()  # an agent ends its ranks
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def await_(happened: Callable[[], bool], agents: list[subprocess.Popen[bytes]]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert all(one.poll() is None for one in agents), [one.returncode for one in agents]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def rank_of(one: subprocess.Popen[bytes]) -> int:
    """The process of an agent's rank."""
    children = Path(f"/proc/{one.pid}/task/{one.pid}/children").read_text().split()
    return next(int(child) for child in children if b"elastic.py" in Path(f"/proc/{child}/cmdline").read_bytes())


@pytest.mark.slow
@GROUPS
def test_a_group_shrinks_and_grows(tmp_path: Path, group: str) -> None:
    port = free_port()

    def seen(size: int) -> set[str]:
        return {path.name for path in tmp_path.glob(f"size-{size}-*")}

    with agent(port, tmp_path, group) as first:
        await_(lambda: listens(port), [first])  # the first agent keeps the store, which must outlive the second
        with agent(port, tmp_path, group) as second:
            await_(lambda: len(seen(2)) == 2, [first, second])
            victim = rank_of(second)
            os.kill(second.pid, signal.SIGKILL)
            os.kill(victim, signal.SIGKILL)
        await_(lambda: len(seen(1)) == 1, [first])
        with agent(port, tmp_path, group) as third:
            await_(lambda: len(seen(2)) == 4, [first, third])
            (tmp_path / "enough").touch()
            assert (first.wait(PATIENCE), third.wait(PATIENCE)) == (0, 0)
