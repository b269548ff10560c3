"""The audit log: which client did what, a JSON object a line beside the job file; no token, session or key is in it."""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

_log = logging.getLogger(__name__)
_LONGEST, _OLD_FILES = 8 << 20, 4
CONTROLLER = "controller"
"""The client that stands for what the controller did by itself."""


class AuditLog(RotatingFileHandler):
    """A file that grows to 8 MiB, and the four before it.

    Args:
        path: of the file; readable for its owner alone.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        super().__init__(path, maxBytes=_LONGEST, backupCount=_OLD_FILES, encoding="utf-8", delay=True)
        self._said = False

    def _open(self):  # type: ignore[no-untyped-def]
        return open(self.baseFilename, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600))

    def note(self, who: str, action: str, subject: str = "", outcome: str = "ok", *, peer: str = "") -> None:
        """Note one deed.

        Args:
            who: the name in the certificate of who asked for it, with the serial number, or CONTROLLER.
            action: the request, or what the controller did.
            subject: the job, host or switch that it was done to.
            outcome: ok, or why not.
            peer: where the request came from.
        """
        line = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"), "who": who, "action": action,
            "subject": subject, "outcome": outcome, **({"peer": peer} if peer else {}),
        }  # fmt: skip
        self.handle(logging.LogRecord("audit", logging.INFO, "", 0, json.dumps(line), None, None))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802
        """Say once that it cannot be written: what was to be done is done all the same."""
        if not self._said:
            _log.error("the audit log %s cannot be written; what it lacks is lost: %s", self.baseFilename, record.msg)
        self._said = True
