"""The commit record: which plane holds each layer, the digests of what is there, and the trainer's own state.

Two places on device 0 take turns. A record counts when its checksum fits; the one with the higher generation is the
store's state. So a step is in when its record is, and before that the previous record still stands, untouched.

    magic  generation  length  crc32c of all this   JSON               zeros
    8 B    8           4       4                    `length` bytes     to a page
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from catchment.host.optimizer.store.errors import StoreError
from catchment.host.optimizer.store.geometry import DIGESTS, PAGE

_MAGIC = b"CTCHCMIT"
_HEAD = struct.Struct("<8sQI")
_CRC = struct.Struct("<I")
_BODY = _HEAD.size + _CRC.size
_NAME = 32
"""Bytes of a snapshot's name in a record, with what is around it."""

Digests = npt.NDArray[np.uint32]
"""(devices, 4): of the parameters, master weights and moments in each device's shard."""


@dataclass(frozen=True, slots=True)
class LayerVersion:
    """One version of a layer: where it is, its digests, and how often each tensor was updated."""

    plane: int
    digests: Digests
    steps: tuple[int, ...]
    notes: Any = None
    """What the trainer keeps with the layer (the exponents' history): JSON."""


@dataclass(frozen=True, slots=True)
class ModelState:
    """A whole model at the end of a step. `trained`: training passes so far; `notes`: the trainer's, JSON."""

    layers: tuple[LayerVersion, ...]
    trained: int = 0
    notes: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Commit:
    """What one record says: the present state, and the snapshots by name."""

    generation: int
    state: ModelState
    snapshots: Mapping[str, ModelState]

    def used_planes(self, layer: int) -> set[int]:
        """Planes in which this commit needs what they hold of `layer`."""
        return {state.layers[layer].plane for state in (self.state, *self.snapshots.values())}


def encode(commit: Commit, room: int, identity: str) -> bytes:
    """The record of the store `identity`, whole pages, at most `room` bytes.

    Raises:
        StoreError: kind ``full``: it does not fit.
    """
    facts = {
        "state": _facts_of(commit.state),
        "snapshots": {name: _facts_of(state) for name, state in commit.snapshots.items()},
    }
    body = json.dumps(facts, separators=(",", ":")).encode()
    head = _HEAD.pack(_MAGIC, commit.generation, len(body))
    seal = _CRC.pack(_seal(identity, head, body))
    whole = -(-(len(head) + len(seal) + len(body)) // PAGE) * PAGE
    if whole > room:
        raise StoreError(
            f"the commit record takes {whole} bytes, there is room for {room}", kind="full", hint="drop a snapshot"
        )
    return (head + seal + body).ljust(whole, b"\0")


def snapshots_that_fit(state: ModelState, room: int) -> int:
    """How many snapshots like `state` a record of `room` bytes holds beside the present one, which is like it, too."""
    body = len(json.dumps(_facts_of(state), separators=(",", ":")).encode())
    return max(0, (room - _BODY - len('{"state":,"snapshots":{}}') - body) // (body + _NAME))


def decode(raw: bytes, identity: str) -> Commit | None:
    """The record in `raw`; None when there is no whole one of the store `identity`."""
    if len(raw) < _BODY:  # the device was cut short
        return None
    magic, generation, length = _HEAD.unpack_from(raw)
    (crc,) = _CRC.unpack_from(raw, _HEAD.size)
    body = raw[_BODY : _BODY + length]
    if magic != _MAGIC or len(body) != length:
        return None
    if _seal(identity, raw[: _HEAD.size], body) != crc:
        return None
    try:
        facts = json.loads(body)
        snapshots = {name: _state_of(state) for name, state in facts["snapshots"].items()}
        return Commit(generation, _state_of(facts["state"]), snapshots)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):  # sealed, but not by this program
        return None


def _seal(identity: str, head: bytes, body: bytes) -> int:
    from catchment.host import _optimizer  # noqa: PLC0415  the error for a missing build belongs to the first use

    return _optimizer.crc32c(body, _optimizer.crc32c(head, _optimizer.crc32c(identity.encode())))


def _facts_of(state: ModelState) -> dict[str, Any]:
    return {
        "trained": state.trained,
        "notes": dict(state.notes),
        "layers": [
            [layer.plane, layer.digests.astype("<u4").tobytes().hex(), layer.steps, layer.notes]
            for layer in state.layers
        ],
    }


def _state_of(facts: dict[str, Any]) -> ModelState:
    layers = tuple(
        LayerVersion(
            _count(plane),
            np.frombuffer(bytes.fromhex(digests), "<u4").reshape(-1, DIGESTS),
            tuple(map(_count, steps)),
            notes,
        )
        for plane, digests, steps, notes in facts["layers"]
    )
    return ModelState(layers, _count(facts["trained"]), MappingProxyType(facts["notes"]))


def _count(number: Any) -> int:
    """A number in a record.

    Raises:
        ValueError: it is no whole number from 0 on.
    """
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is no whole number from 0 on")
    return number
