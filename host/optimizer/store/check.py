"""Reading a whole store and comparing every checksum."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from catchment.host.optimizer.store.commit import ModelState
from catchment.host.optimizer.store.errors import StoreError
from catchment.host.optimizer.store.store import Store
from catchment.host.optimizer.store.transfer import page_aligned


@dataclass(frozen=True, slots=True)
class Damage:
    """One section of one layer that does not hold what was committed; `state`: "present" or a snapshot's name."""

    state: str
    layer: int
    section: str
    message: str


def check(store: Store, on_layer: Callable[[str, int], None] = lambda _state, _layer: None) -> list[Damage]:
    """Read the present state and all snapshots; a version that several states share is read once.

    Args:
        store: an open store.
        on_layer: told of each state and layer before it is read.
    """
    found: list[Damage] = []
    known: dict[tuple[int, int], list[Damage]] = {}
    for name, state in {"present": store.state, **store.snapshots}.items():
        for layer in range(len(state.layers)):
            on_layer(name, layer)
            key = (layer, state.layers[layer].plane)
            if key not in known:
                known[key] = _check_layer(store, name, state, layer)
            found += [Damage(name, layer, damage.section, damage.message) for damage in known[key]]
    return found


def _check_layer(store: Store, name: str, state: ModelState, layer: int) -> list[Damage]:
    version, found = state.layers[layer], []
    for section in store.geometry.sections:
        memory = page_aligned(store.geometry.section_bytes(layer, section))
        try:
            store.read(version, layer, section, memory).wait()
            store.verify(version, layer, section, store.digests(layer, section, memory))
        except StoreError as error:
            found.append(Damage(name, layer, section.name, str(error)))
    return found
