"""The planes of a store: how many there are, which of them may be written, and making one more."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from catchment.host.optimizer.store.manifest import Manifest

if TYPE_CHECKING:
    from catchment.host.optimizer.store.devices import OpenDevice

_ANY = 1 << 30  # planes on a device on which the model has nothing


class Planes:
    """The planes of a store, used by one thread at a time. A plane is `taken` for a layer when its data of it count."""

    def __init__(self, devices: Sequence[OpenDevice], manifest: Manifest) -> None:
        """Begin with the planes for which all devices have space already."""
        self._devices = devices
        self._manifest = manifest
        self._spare: set[int] = set()
        self.count = min(self._room(device) for device in devices)

    def take(self, taken: Collection[int]) -> int:
        """The first that is neither in `taken` nor spare.

        Raises:
            StoreError: kind ``full``: there is none, and no space to make one.
        """
        free = set(range(self.count)) - set(taken) - self._spare
        return min(free) if free else self._grow()

    def take_spare(self, taken: Sequence[Collection[int]]) -> int:
        """A plane that no layer needs while the store is open; each layer keeps another one to write to.

        Args:
            taken: of each layer.

        Raises:
            StoreError: kind ``full``: there is none, and no space to make one.
        """
        for plane in range(self.count):
            left = [set(range(self.count)) - set(each) - self._spare for each in taken]
            if all(plane in each and len(each) > 1 for each in left):
                break
        else:
            plane = self._grow()
        self._spare.add(plane)
        return plane

    def _room(self, device: OpenDevice) -> int:
        plane = self._manifest.geometry.plane_bytes(device.index)
        return (device.file.size - self._manifest.data_offset) // plane if plane else _ANY

    def _grow(self) -> int:
        for device in self._devices:
            device.file.grow(self._manifest.plane_offset(device.index, self.count + 1))
        self.count += 1
        return self.count - 1
