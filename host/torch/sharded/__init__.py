"""MiCS: a model sharded over groups of ranks (docs/explanation/mics.md): `MiCS(model, MiCSOptions(...))`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.host.lazy_exports import lazy_exports as _lazy_exports

if TYPE_CHECKING:
    from catchment.host.torch.sharded.errors import ShardingError
    from catchment.host.torch.sharded.groups import Groups
    from catchment.host.torch.sharded.mics import MiCS
    from catchment.host.torch.sharded.options import MiCSOptions

__getattr__ = _lazy_exports(
    __name__, {"Groups": "groups", "MiCS": "mics", "MiCSOptions": "options", "ShardingError": "errors"}
)

__all__ = ["Groups", "MiCS", "MiCSOptions", "ShardingError"]
