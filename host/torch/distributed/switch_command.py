"""Starts the local switch of a group, which is a command that this package knows by its name alone."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import IO, Any, Final

from catchment.host.collectives import CollectiveError
from catchment.host.torch.distributed.agreement import MAKING
from catchment.host.torch.distributed.settings import LOCAL_SWITCH

_LOG: Final = logging.getLogger("catchment.torch")
COMMAND: Final = "catchment-local-switch"
_QUOTED = 2000


def find(given: str | None) -> list[str]:
    """The words of the command: `given`, or the script beside this Python, or the one on the PATH.

    Raises:
        CollectiveError: kind ``argument``: `given` is no command line. Kind ``system``: there is none.
    """
    try:
        words = shlex.split(given) if given else [str(Path(sys.executable).parent / COMMAND)]
    except ValueError as error:
        raise _no_command(given, str(error)) from None
    if not words:
        raise _no_command(given, "it has no words")
    found = shutil.which(words[0]) or (None if given else shutil.which(COMMAND))
    if found is None:
        where = f"{LOCAL_SWITCH}={given} is no command" if given else f"neither beside {sys.executable} nor on the PATH"
        hint = f"install catchment (`make setup`, or `pip install -e .`), or set {LOCAL_SWITCH} to a command"
        raise CollectiveError(f"there is no `{COMMAND}`, {where}", kind="system", hint=hint)
    return [found, *words[1:]]


def _no_command(given: str | None, why: str) -> CollectiveError:
    return CollectiveError(
        f"{LOCAL_SWITCH}={given} is no command: {why}", kind="argument", hint="give a program and its arguments"
    )


@dataclass(frozen=True, slots=True)
class Started:
    """A switch that was started.

    Attributes:
        socket: the path that ranks connect to.
        members: what each rank needs in the job that the switch is below, in the ranks' order.
    """

    socket: str
    members: Sequence[Mapping[str, Any]]


def start(ranks: int, given: str | None = None, below: Mapping[str, Any] | None = None) -> Started:
    """Start a switch for so many ranks; it ends with the last rank's process.

    The command compiles the switch program first, if nobody has yet.

    Args:
        ranks: how many processes will connect.
        given: the command and its first arguments as one line, instead of the installed one.
        below: what a host needs in a job, whose place the switch takes.

    Raises:
        CollectiveError: kind ``system``: there is no such command, or it does not start; quotes what it said.
    """
    command = [*find(given), "--ranks", str(ranks), *(["--below", "-"] if below else [])]
    log = tempfile.TemporaryFile()  # noqa: SIM115  the switch keeps it
    # On a command line everybody could read the job's key.
    with tempfile.TemporaryFile() as told:
        if below:
            told.write(json.dumps(below).encode())
            told.seek(0)
        # A session of its own: the switch must outlive a rank that dies of Ctrl-C.
        try:
            process = subprocess.Popen(
                command, stdin=told, stdout=subprocess.PIPE, stderr=log, cwd="/", start_new_session=True
            )
        except OSError as error:
            raise _does_not_start(ranks, command, str(error)) from None
    assert process.stdout is not None
    line = b""
    try:
        with process.stdout as output:
            said = _lines(output)
            while "compiling" in (message := json.loads(line := next(said, b""))):
                _LOG.warning("compiling %s for the switch, once: this may take a minute or two", message["compiling"])
        started = Started(str(message["socket"]), message.get("members", ()))
    except (TimeoutError, ValueError, KeyError, TypeError) as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # of its session, with all that it has started
        silent = f"{error}, " if isinstance(error, TimeoutError) else ""
        raise _does_not_start(ranks, command, silent + _said(process, log, line)) from None
    threading.Thread(target=process.wait, name="end of the switch", daemon=True).start()
    return started


def _lines(output: IO[bytes]) -> Iterator[bytes]:
    """What a command prints, each line within `MAKING` of the one before.

    Raises:
        TimeoutError: it is silent.
    """
    poll = select.poll()
    poll.register(output, select.POLLIN)
    read = b""
    while True:
        until = monotonic() + MAKING.total_seconds()
        while b"\n" not in read:
            if not poll.poll(max(0.0, until - monotonic()) * 1e3):
                raise TimeoutError(f"it says nothing in {MAKING.total_seconds():g} s")
            more = os.read(output.fileno(), 1 << 16)
            if not more:
                yield read
                return
            read += more
        line, _, read = read.partition(b"\n")
        yield line


def _said(process: subprocess.Popen[bytes], log: IO[bytes], line: bytes) -> str:
    code = process.wait()
    log.seek(0)
    said = (line + log.read())[-_QUOTED:].decode(errors="replace").strip()
    return f"code {code}: {said or 'it wrote nothing'}"


def _does_not_start(ranks: int, command: list[str], reason: str) -> CollectiveError:
    message = f"the switch for {ranks} ranks does not start (`{shlex.join(command)}`)"
    return CollectiveError(message, kind="system", hint=reason)
