"""Shared-memory ports of catchment-switch, for Python: a binding of the C library in this folder.

    with Port.attach("/run/lab/port1") as port:
        port.send(frame)
        replies = port.receive(timeout=1.0)

docs/reference/shared-memory.md has the C interface; one `Port` is for one thread at a time.
"""

from catchment.softswitch.shm.errors import DetachedError, ShmError
from catchment.softswitch.shm.port import Info, Port

__all__ = ["DetachedError", "Info", "Port", "ShmError"]
