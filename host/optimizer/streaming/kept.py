"""Gradients that wait on disk until the norm of all of them is known: a spare plane of the store, for one step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from catchment.host.optimizer.store import LayerVersion, Memory, Store, Transfer
from catchment.host.optimizer.store.commit import Digests
from catchment.host.optimizer.store.geometry import DIGESTS


class KeptGradients:
    """Each layer's gradients in the place that its master weights would have: both are fp32 and dealt out alike."""

    def __init__(self, store: Store) -> None:
        """Take a plane; it is given back with the store."""
        self._store = store
        self._section = next(section for section in store.geometry.state if section.name == "master")
        self._plane = store.spare_plane()
        self._versions: dict[int, LayerVersion] = {}
        self._usable: dict[int, list[int]] = {}

    def write(self, layer: int, gradients: Memory, usable: Sequence[int]) -> Transfer:
        """Start to write a layer's; `usable`: the numbers of its tensors whose gradients may be used."""
        digests: Digests = np.zeros((self._store.geometry.devices, DIGESTS), np.uint32)
        digests[:, self._section.column] = self._store.digests(layer, self._section, gradients)
        self._versions[layer] = LayerVersion(self._plane, digests, ())
        self._usable[layer] = list(usable)
        return self._store.write(self._plane, layer, self._section, gradients)

    def read(self, layer: int, gradients: Memory) -> Transfer:
        """Start to read a layer's, after its write is done."""
        return self._store.read(self._versions[layer], layer, self._section, gradients)

    def arrived(self, layer: int, reading: Transfer, gradients: Memory) -> list[int]:
        """Wait for what `read` began, and compare; gives `usable`.

        Raises:
            StoreError: kind ``corrupt`` or ``device``.
        """
        reading.wait()
        digests = self._store.digests(layer, self._section, gradients)
        self._store.verify(self._versions[layer], layer, self._section, digests)
        return self._usable[layer]
