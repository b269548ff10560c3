"""The files and block devices behind a store: opened for direct I/O where possible, locked, grown."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

from catchment.host.optimizer.store.errors import NO_SPACE, StoreError, of_errno

FILE_NAME = "optimizer.store"


def file_of(place: str | Path) -> Path:
    """A directory stands for the file `optimizer.store` in it; anything else for itself."""
    path = Path(place)
    return path / FILE_NAME if path.is_dir() else path


class DeviceFile:
    """One file or block device, open and locked. `direct`: the page cache is bypassed."""

    def __init__(self, place: str | Path, *, create: bool = False, read_only: bool = False, direct: bool) -> None:
        """Open it; `create` makes a file that is not there (not a block device); who only reads lets others read.

        Raises:
            StoreError: kind ``missing``, ``argument``, ``busy`` or ``device``.
        """
        self.path = str(file_of(place))
        flags = (os.O_RDONLY if read_only else os.O_RDWR) | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        self.direct = direct
        try:
            self.descriptor = self._open(flags)
        except FileNotFoundError as error:
            raise StoreError(
                "there is no such file or folder", kind="missing", path=self.path, hint="create or import a store"
            ) from error
        except OSError as error:
            raise of_errno(error.errno or errno.EIO, "open", self.path) from error
        try:
            fcntl.flock(self.descriptor, (fcntl.LOCK_SH if read_only else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self.descriptor)
            raise StoreError(
                "another process has this store open", kind="busy", path=self.path, hint="end it first"
            ) from error
        mode = os.fstat(self.descriptor).st_mode
        self._block = stat.S_ISBLK(mode)
        if not self._block and not stat.S_ISREG(mode):
            os.close(self.descriptor)
            raise StoreError(
                "is neither a file nor a block device", kind="argument", path=self.path, hint="name a folder, a file "
                "or a block device",
            )  # fmt: skip

    def _open(self, flags: int) -> int:
        if self.direct:
            try:
                return os.open(self.path, flags | os.O_DIRECT, 0o600)
            except OSError as error:
                if error.errno != errno.EINVAL:  # what file systems without direct I/O say
                    raise
                self.direct = False
        return os.open(self.path, flags, 0o600)

    @property
    def size(self) -> int:
        """Bytes of the file or block device."""
        return os.lseek(self.descriptor, 0, os.SEEK_END)

    def grow(self, size: int) -> None:
        """Have at least `size` bytes, with space for all of them.

        Raises:
            StoreError: kind ``full``: not so many; nothing was changed.
        """
        before = self.size
        if before >= size:
            return
        if self._block:
            raise StoreError(
                f"the device has {before} bytes, {size} are needed", kind="full", path=self.path, hint="use more or "
                "larger devices, or keep fewer snapshots",
            )  # fmt: skip
        try:
            os.posix_fallocate(self.descriptor, before, size - before)
        except OSError as error:
            os.ftruncate(self.descriptor, before)
            if error.errno not in NO_SPACE:
                raise of_errno(error.errno or errno.EIO, "allocation", self.path) from error
            raise StoreError(
                f"no space for {size - before} more bytes", kind="full", path=self.path, hint="free space, use more "
                "devices, or keep fewer snapshots; what was committed is intact",
            ) from error  # fmt: skip

    def close(self) -> None:
        """Unlock and close."""
        os.close(self.descriptor)
