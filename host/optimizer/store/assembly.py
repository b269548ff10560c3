"""Which device is which: the devices that were named, put together to one store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from catchment.host.optimizer.store import manifest as manifests
from catchment.host.optimizer.store.errors import StoreError
from catchment.host.optimizer.store.manifest import Manifest

if TYPE_CHECKING:
    from catchment.host.optimizer.store.devices import OpenDevice


def assemble(found: Sequence[OpenDevice]) -> tuple[list[OpenDevice], Manifest]:
    """The devices in the order of the store, whatever the order in which they were named, and the first's manifest.

    Raises:
        StoreError: kind ``missing``, ``version`` or ``corrupt``: one is no device of a store; ``mismatch``: they are
            not the devices of one store, all of them and each once.
    """
    named = [(device, manifests.decode(device.read, device.path)) for device in found]
    first, manifest = named[0]
    ordered: dict[int, OpenDevice] = {}
    for device, own in named:
        if own.identity != manifest.identity:
            raise StoreError(
                f"belongs to store {own.identity}, {first.path} to {manifest.identity}", kind="mismatch",
                path=device.path, hint="name the devices of one store",
            )  # fmt: skip
        if own.device in ordered:
            raise StoreError(
                f"is device {own.device}, and so is {ordered[own.device].path}", kind="mismatch", path=device.path,
                hint="name each device once",
            )  # fmt: skip
        device.index = own.device
        ordered[own.device] = device
    count = manifest.geometry.devices
    missing = [str(index) for index in range(count) if index not in ordered]
    if missing:
        names = ", ".join(device.path for device in found)
        raise StoreError(
            f"the store has {count} devices, number {', '.join(missing)} is not among {names}", kind="mismatch",
            hint="name all of them",
        )  # fmt: skip
    return [ordered[index] for index in sorted(ordered)], replace(manifest, device=0)
