"""What torch calls the backend."""

from __future__ import annotations

from typing import Final

BACKEND: Final = "catchment"
