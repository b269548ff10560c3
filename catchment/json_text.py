"""JSON that every parser reads (RFC 8259): it has no word for NaN and the infinities, which become null."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any


def json_text(value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """The value as one JSON document; `default` makes values of types that JSON does not have, as `json.dumps` does."""
    return json.dumps(_finite(value), indent=indent, default=default, allow_nan=False)


def _finite(value: Any) -> Any:
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: _finite(one) for key, one in value.items()}
        case list() | tuple():
            return [_finite(one) for one in value]
    return value
