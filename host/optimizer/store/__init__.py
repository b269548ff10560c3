"""Model states on disk: layers striped over devices, checksummed, a step wholly in or not at all."""

from catchment.host.optimizer.store.commit import LayerVersion, ModelState
from catchment.host.optimizer.store.devices import StoreOptions
from catchment.host.optimizer.store.errors import StoreError
from catchment.host.optimizer.store.geometry import UNIT, Geometry, Precision, Rule, Section
from catchment.host.optimizer.store.store import Space, Store
from catchment.host.optimizer.store.transfer import Memory, Transfer, page_aligned

__all__ = [
    "UNIT",
    "Geometry",
    "LayerVersion",
    "Memory",
    "ModelState",
    "Precision",
    "Rule",
    "Section",
    "Space",
    "Store",
    "StoreError",
    "StoreOptions",
    "Transfer",
    "page_aligned",
]
