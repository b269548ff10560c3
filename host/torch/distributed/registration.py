"""Makes torch know the backend; imports next to nothing, for it runs in every process that imports torch."""

from __future__ import annotations

from typing import Any

from catchment.host.torch.distributed.name import BACKEND


def register() -> None:
    """Register the backend `catchment` for CPU tensors; again: nothing happens."""
    import torch.distributed as dist  # noqa: PLC0415  torch itself calls this at the end of its own import

    if dist.is_available() and not hasattr(dist.Backend, BACKEND.upper()):
        dist.Backend.register_backend(BACKEND, _create, extended_api=True, devices=["cpu"])


def _create(place: Any, options: Any) -> Any:
    """A process group. `place`: torch's store, rank and so on; `options`: what the caller gave as `pg_options`."""
    from catchment.host.torch.distributed.creation import create  # noqa: PLC0415  only a user of it pays for it

    return create(place, options)
