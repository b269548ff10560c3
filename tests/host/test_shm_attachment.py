"""Attachments to switches that may come later."""

from __future__ import annotations

import errno
from pathlib import Path

from catchment.host import _machines


def test_an_attachment_knows_at_once_that_no_switch_is_there(tmp_path: Path) -> None:
    """Rails are refused when none has a switch: nobody may take one for present before it was looked for."""
    assert _machines.first_error(str(tmp_path / "nobody")) == errno.ENOTCONN
