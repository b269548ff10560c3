"""p4runtime-shell as it is, on our session (see session.py for what is different there)."""

from __future__ import annotations

import sys

from p4runtime_sh import p4runtime
from p4runtime_sh import shell as p4runtime_shell

from catchment.controlplane.client.session import new_election_id


def run_shell(address: str, device_id: int) -> int:
    """Run the shell until the user leaves it; returns an exit code."""
    p4runtime.P4RuntimeErrorIterator.__next__ = _next_error
    high, low = new_election_id()
    sys.argv = [
        "p4runtime-shell", "--grpc-addr", address, "--device-id", str(device_id), "--election-id", f"{high},{low}",
    ]  # fmt: skip
    try:
        p4runtime_shell.main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


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
