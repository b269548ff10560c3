"""Making Debian's Mininet importable from a virtual environment.

The package is plain Python in the system's dist-packages, which a virtual environment rightly does
not see. A folder that holds nothing but a link to it goes on the path, so that no other system
package comes along.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path

from catchment.controlplane.networks.state import NetworkError

_SYSTEM_PACKAGE = Path("/usr/lib/python3/dist-packages/mininet")


def enable() -> None:
    """Put Mininet on the path.

    Raises:
        NetworkError: it is not installed.
    """
    if importlib.util.find_spec("mininet") is not None:
        return
    if not (_SYSTEM_PACKAGE / "__init__.py").is_file():
        raise NetworkError("Mininet is not installed; run `make setup` (Debian package: mininet)")
    folder = Path(tempfile.gettempdir()) / f"catchment-mininet-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid():
        raise NetworkError(f"{folder} belongs to another user; remove it")
    link = folder / "mininet"
    try:
        link.symlink_to(_SYSTEM_PACKAGE)
    except FileExistsError:
        if link.resolve() != _SYSTEM_PACKAGE.resolve():
            raise NetworkError(f"{link} is not a link to {_SYSTEM_PACKAGE}; remove it") from None
    sys.path.append(str(folder))
    importlib.invalidate_caches()
