"""What a client of the admin socket refuses to send."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from catchment.softswitch.admin import SwitchAdmin, SwitchAdminError


@pytest.mark.parametrize(
    ("spec", "wrong"), [("delay=\udcff", "is not all UTF-8"), ("delay=1ms\nfault 2:loss=1", "has a line break")]
)
def test_what_is_no_line_of_text_is_not_sent(spec: str, wrong: str, tmp_path: Path) -> None:
    path = tmp_path / "admin.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as switch:
        switch.bind(str(path))
        switch.listen()
        with SwitchAdmin(path) as admin:
            with pytest.raises(SwitchAdminError, match=wrong) as refused:
                admin.set_faults(1, spec)
            with switch.accept()[0] as connection, pytest.raises(BlockingIOError):
                connection.recv(1, socket.MSG_DONTWAIT)
    assert str(refused.value).startswith(f"'fault 1:{spec.encode('unicode_escape', 'surrogatepass').decode()}'")
