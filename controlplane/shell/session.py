"""p4runtime-shell as it is, but for three defects, in an environment of its own (requirements.txt) without catchment.

p4runtime-shell 0.0.6 never ends when it lists the refused updates of a batch whose first one was accepted, nor when
nobody reads its output any more: the thread that listens to the switch stays. And it ends with 0 when commands that
are piped in fail, so that a script does not notice.

usage: python session.py OPTION OF p4runtime-shell...
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from IPython.core.interactiveshell import InteractiveShell
from p4runtime_sh import p4runtime, shell


def _next_error(self: p4runtime.P4RuntimeErrorIterator) -> tuple[int, object]:
    """The next refused update; the original stops advancing at the first accepted one."""
    while self.idx < len(self.errors):
        index, self.idx = self.idx, self.idx + 1
        error = p4runtime.p4runtime_pb2.Error()
        if not self.errors[index].Unpack(error):
            raise p4runtime.P4RuntimeErrorFormatException("Cannot convert Any message to p4.Error")
        if error.canonical_code != p4runtime.code_pb2.OK:
            return index, error
    raise StopIteration


def _noted(show: Callable[..., None], failed: list[object]) -> Callable[..., None]:
    """What shows a command's error, and notes that there was one."""

    def shown(self: InteractiveShell, *given: object, **named: object) -> None:
        failed.append(self)
        show(self, *given, **named)

    return shown


if __name__ == "__main__":
    p4runtime.P4RuntimeErrorIterator.__next__ = _next_error
    failed: list[object] = []
    for name in ("showtraceback", "showsyntaxerror"):
        setattr(InteractiveShell, name, _noted(getattr(InteractiveShell, name), failed))
    try:
        shell.main()
    except BrokenPipeError:
        os._exit(128 + signal.SIGPIPE)  # as who does not handle the signal, whatever threads there are
    if failed and not sys.stdin.isatty():  # nobody saw the error
        sys.exit(1)
