"""The PARAM message: one layer's parameters, with the exponents its gradients are to be pushed with.

Layout, network byte order, then the tensors back to back in the wire type (little endian, as the hosts hold them):

    magic  version  phase  type  flags  layer  tensors  step  digest  parameters  loss scale  root  roots  trained
    4 B      1        1      1     1      2       2       4     4         4        4, fp32     1      1       4

    exponents           zeros
    1 B for a tensor    to 16 B

`root` is the number of the optimizer node that sends the message, of `roots` in the training. `step` counts the passes
of this run, `trained` the steps that the weights have had since the training began.
"""

from __future__ import annotations

import enum
import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from catchment.host.layers.errors import TrainingError
from catchment.host.layers.table import LayerSpec, LayerTable

MAGIC = b"CLYR"
VERSION = 4
FLAG_LAST_PASS = 0x01
FLAG_ACCUMULATE = 0x02
_FIXED = struct.Struct("!4sBBBBHHIIIfBBI")
_ALIGN = 16
EXPONENT_MIN, EXPONENT_MAX = -128, 127


class Phase(enum.IntEnum):
    """Which half of a step a message belongs to."""

    FORWARD = 0
    BACKWARD = 1


class WireType(enum.IntEnum):
    """Element type of parameters on the wire; the master weights stay fp32 at the optimizer node."""

    FP32 = 2
    BF16 = 4

    @property
    def torch_dtype(self) -> torch.dtype:
        """The torch type of the same bits."""
        return torch.bfloat16 if self is WireType.BF16 else torch.float32

    @property
    def size(self) -> int:
        """Bytes of one element."""
        return 2 if self is WireType.BF16 else 4


@dataclass(frozen=True, slots=True)
class ParamHeader:
    """What a message says of itself.

    `exponents` has one E per tensor of the layer, |gradient| < 2^E; gradients are of `loss_scale` times the loss.
    `accumulate`: the pass is one of Pass.ACCUMULATE. `trained`: training passes that the parameters have had.
    """

    layer: int
    step: int
    phase: Phase
    exponents: tuple[int, ...]
    last_pass: bool = False
    loss_scale: float = 1.0
    accumulate: bool = False
    trained: int = 0


def header_size(layer: LayerSpec) -> int:
    """Bytes before the parameters, a multiple of 16."""
    raw = _FIXED.size + len(layer.tensors)
    return -(-raw // _ALIGN) * _ALIGN


def message_size(layer: LayerSpec, wire: WireType) -> int:
    """Bytes of a layer's whole PARAM message."""
    return header_size(layer) + layer.numel * wire.size


def pack_message(header: ParamHeader, table: LayerTable, wire: WireType, flat: torch.Tensor) -> npt.NDArray[np.uint8]:
    """One message: `flat` (fp32, the layer's elements) rounded half-even to the wire type behind its header.

    Raises:
        TrainingError: an exponent outside int8, or not one exponent per tensor.
    """
    layer = table[header.layer]
    buffer = np.empty(message_size(layer, wire), dtype=np.uint8)
    buffer[: header_size(layer)] = np.frombuffer(pack_header(header, table, wire), dtype=np.uint8)
    _elements(buffer, layer, wire).copy_(flat)
    return buffer


def pack_header(header: ParamHeader, table: LayerTable, wire: WireType) -> bytes:
    """What goes before the parameters, header_size bytes.

    Raises:
        TrainingError: an exponent outside int8, or not one exponent per tensor.
    """
    layer = table[header.layer]
    if len(header.exponents) != len(layer.tensors):
        raise TrainingError(f"layer {layer.name}: {len(header.exponents)} exponents for {len(layer.tensors)} tensors")
    if not all(EXPONENT_MIN <= exponent <= EXPONENT_MAX for exponent in header.exponents):
        raise TrainingError(f"layer {layer.name}: exponents {header.exponents} do not fit the frame's signed 8 bits")
    fixed = _FIXED.pack(
        MAGIC,
        VERSION,
        header.phase,
        wire,
        FLAG_LAST_PASS * header.last_pass | FLAG_ACCUMULATE * header.accumulate,
        header.layer,
        len(layer.tensors),
        header.step,
        table.digest,
        layer.numel,
        header.loss_scale,
        table.home.root,
        table.home.roots,
        header.trained,
    )
    exponents = np.asarray(header.exponents, dtype=np.int8).tobytes()
    return (fixed + exponents).ljust(header_size(layer), b"\0")


def open_message(
    buffer: npt.NDArray[np.uint8], layer: LayerSpec, table: LayerTable, wire: WireType
) -> tuple[ParamHeader, torch.Tensor]:
    """Check a received message and give its header and a view of its parameters (wire type, flat).

    Raises:
        TrainingError: the message is not the one of `layer` of this model; says what differs.
    """
    where = f"PARAM message of layer {layer.index} ({layer.name})"
    if len(buffer) != message_size(layer, wire):
        raise TrainingError(f"{where}: {len(buffer)} bytes, expected {message_size(layer, wire)}")
    fixed = _FIXED.unpack(buffer[: _FIXED.size].tobytes())
    magic, version, phase, dtype, flags, index, tensors, step, digest, numel, loss_scale, root, roots, trained = fixed
    home = table.home
    other = "another model" if home.roots == 1 else "another model, or gives its tensors other homes"
    facts = (
        ("magic", magic, MAGIC, "the peer is not an optimizer node"),
        ("version", version, VERSION, "run the same release on every host"),
        ("number of optimizer nodes", roots, home.roots, "give both ends the same homes"),
        ("optimizer node", root, home.root, "give attach the endpoints in the order of the homes"),
        ("digest of the layer table", digest, table.digest, f"the optimizer node holds {other}"),
        ("element type", dtype, int(wire), "give both ends the same wire type"),
        ("layer", index, layer.index, "the passes of worker and optimizer node are out of step"),
        ("number of tensors", tensors, len(layer.tensors), "the optimizer node holds another model"),
        ("number of parameters", numel, layer.numel, "the optimizer node holds another model"),
    )
    for what, found, expected, advice in facts:
        if found != expected:
            raise TrainingError(f"{where}: {what} is {found!r}, expected {expected!r}: {advice}")
    if phase not in (Phase.FORWARD, Phase.BACKWARD) or flags & ~(FLAG_LAST_PASS | FLAG_ACCUMULATE):
        raise TrainingError(f"{where}: phase {phase}, flags {flags:#x} are not of version {VERSION}")
    if not 0 < loss_scale < float("inf"):
        raise TrainingError(f"{where}: loss scale {loss_scale}: it must be positive and finite")
    exponents = buffer[_FIXED.size : _FIXED.size + tensors].view(np.int8)
    header = ParamHeader(
        index,
        step,
        Phase(phase),
        tuple(int(exponent) for exponent in exponents),
        bool(flags & FLAG_LAST_PASS),
        loss_scale,
        bool(flags & FLAG_ACCUMULATE),
        trained,
    )
    return header, _elements(buffer, layer, wire)


def _elements(buffer: npt.NDArray[np.uint8], layer: LayerSpec, wire: WireType) -> torch.Tensor:
    return torch.from_numpy(buffer[header_size(layer) :]).view(wire.torch_dtype)
