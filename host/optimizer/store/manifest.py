"""The first bytes of every device of a store: what the store is, and which of its devices this is.

magic  version  length  crc32c   JSON                zeros
8 B    4        4       4        `length` bytes      to a page
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import cached_property
from typing import Any

from catchment.host.layers import Home, LayerSpec, LayerTable, TrainingError
from catchment.host.optimizer.store.errors import StoreError
from catchment.host.optimizer.store.geometry import PAGE, Geometry, Precision, Rule

VERSION = 1
MAGIC = b"CTCHSTOR"
_HEAD = struct.Struct("<8sIII")
_LARGEST = 1 << 30
_COMMIT_BASE = 16 << 10
_COMMIT_PER_TENSOR = 160  # name of nothing; a step count and a short history of exponents
_STATES = 9  # the present one and eight snapshots, before a commit outgrows its place


@dataclass(frozen=True)
class Manifest:
    """What never changes about a store. `identity`: random, the same on all devices; `device`: which one this is."""

    identity: str
    device: int
    geometry: Geometry

    @cached_property
    def commit_bytes(self) -> int:
        """Room for one commit record."""
        geometry = self.geometry
        tensors = sum(len(layer.tensors) for layer in geometry.table)
        layers = len(geometry.table) * (64 + 40 * geometry.devices)
        return _pages(_COMMIT_BASE + _STATES * (layers + _COMMIT_PER_TENSOR * tensors))

    @cached_property
    def commit_offsets(self) -> tuple[int, int]:
        """Offsets of the two commit records (on device 0)."""
        start = len(self.encode())
        return start, start + self.commit_bytes

    @cached_property
    def data_offset(self) -> int:
        """Offset of plane 0 on every device."""
        return self.commit_offsets[1] + self.commit_bytes

    def plane_offset(self, device: int, plane: int) -> int:
        """Offset of a plane."""
        return self.data_offset + plane * self.geometry.plane_bytes(device)

    def encode(self) -> bytes:
        """The manifest as it lies on the device, whole pages."""
        from catchment.host import _optimizer  # noqa: PLC0415  the error for a missing build belongs to the first use

        geometry = self.geometry
        facts = {
            "identity": self.identity,
            "device": f"{self.device:6}",
            "devices": geometry.devices,
            "rule": geometry.rule,
            "parameters": geometry.parameters,
            "moments": geometry.moments,
            "layers": [
                {"name": layer.name, "tensors": [[tensor.name, list(tensor.shape)] for tensor in layer.tensors]}
                for layer in geometry.table
            ],
            **({"home": astuple(geometry.table.home)} if geometry.table.home != Home() else {}),
        }
        body = json.dumps(facts, separators=(",", ":")).encode()
        head = _HEAD.pack(MAGIC, VERSION, len(body), _optimizer.crc32c(body))
        return (head + body).ljust(_pages(len(head) + len(body)), b"\0")


def decode(read: Callable[[int, int], bytes], path: str) -> Manifest:
    """The manifest that `read(offset, length)` finds on a device.

    Raises:
        StoreError: kind ``missing``, ``version`` or ``corrupt``.
    """
    from catchment.host import _optimizer  # noqa: PLC0415

    magic, version, length, crc = _HEAD.unpack(read(0, PAGE).ljust(PAGE, b"\0")[: _HEAD.size])
    if magic != MAGIC:
        raise StoreError(
            "this is not an optimizer store", kind="missing", path=path, hint="create or import one, or name another"
        )
    if version != VERSION:
        raise StoreError(
            f"the store has version {version}, this release reads {VERSION}", kind="version", path=path, hint="export "
            "it with the release that wrote it, then import it",
        )  # fmt: skip
    body = read(0, _pages(_HEAD.size + length))[_HEAD.size : _HEAD.size + length] if length < _LARGEST else b""
    if len(body) != length or _optimizer.crc32c(body) != crc:
        raise StoreError("the manifest's checksum does not fit", kind="corrupt", path=path, hint="restore the device")
    try:
        return _manifest_of(json.loads(body))
    except (ValueError, KeyError, TypeError, TrainingError) as error:
        raise StoreError(f"the manifest makes no sense ({error})", kind="corrupt", path=path) from error


def _manifest_of(facts: dict[str, Any]) -> Manifest:
    layers = tuple(
        LayerSpec.of(
            index, str(layer["name"]), [(str(name), tuple(map(int, shape))) for name, shape in layer["tensors"]]
        )
        for index, layer in enumerate(facts["layers"])
    )
    geometry = Geometry(
        LayerTable(layers, Home(*map(int, facts.get("home", ())))),
        int(facts["devices"]),
        Rule(facts["rule"]),
        Precision(facts["parameters"]),
        Precision(facts["moments"]),
    )
    return Manifest(str(facts["identity"]), int(facts["device"]), geometry)


def _pages(length: int) -> int:
    return -(-length // PAGE) * PAGE
