"""The one exception of the store."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

KINDS: Final = ("argument", "busy", "closed", "corrupt", "device", "full", "mismatch", "missing", "version")


NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StoreError(Exception):
    """Something about the model states on disk; what was committed before is still there.

    Attributes:
        kind: ``argument`` the call itself is wrong; ``busy`` another process has the store; ``closed`` it was closed,
            or failed before; ``corrupt`` a checksum does not fit; ``device`` the kernel reported an error; ``full`` no
            space; ``mismatch`` the store holds another model or other types; ``missing`` there is no store;
            ``version`` it was written by another release.
        path: the device or file, empty when the error is not about one.
    """

    def __init__(self, message: str, *, kind: str, path: str = "", hint: str = "") -> None:
        super().__init__(f"{path + ': ' if path else ''}{message}{f': {hint}' if hint else ''}")
        self.message = message
        self.kind = kind
        self.path = path


def of_errno(number: int, what: str, path: str) -> StoreError:
    """The error for what the kernel said of `what` (a read, a write, a sync)."""
    if number == errno.ENODATA:
        return StoreError(
            f"{what} beyond the end of the file", kind="corrupt", path=path, hint="it was cut short; restore it"
        )
    if number in NO_SPACE:
        return StoreError(
            f"{what} failed, no space is left", kind="full", path=path, hint="free space, then start again: the last "
            "committed step is intact",
        )  # fmt: skip
    return StoreError(
        f"{what} failed: {os.strerror(number)}", kind="device", path=path, hint="the last committed step is intact; "
        "mend or replace the device, then start again",
    )  # fmt: skip


@contextmanager
def before_the_first_commit() -> Iterator[None]:
    """Say of errors of a device that there is no committed step to go back to: the store is being made."""
    try:
        yield
    except StoreError as error:
        if error.kind not in {"full", "device"}:
            raise
        raise StoreError(
            error.message, kind=error.kind, path=error.path, hint="there is no store here now: free space, or mend the "
            "device, and make it again",
        ) from error  # fmt: skip
