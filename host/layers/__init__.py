"""What a worker and the optimizer node agree on: the table of layers, the PARAM message, the order of the passes."""

from catchment.host.layers.errors import TrainingError
from catchment.host.layers.homes import Homes, Piece, Share
from catchment.host.layers.message import (
    ParamHeader,
    Phase,
    WireType,
    header_size,
    message_size,
    open_message,
    pack_header,
    pack_message,
)
from catchment.host.layers.passes import Pass
from catchment.host.layers.table import Home, LayerSpec, LayerTable, TensorSpec
from catchment.host.layers.timeline import Span, Timeline
from catchment.host.layers.transport import Completion, TransferPort

__all__ = [
    "Completion",
    "Home",
    "Homes",
    "LayerSpec",
    "LayerTable",
    "ParamHeader",
    "Pass",
    "Phase",
    "Piece",
    "Share",
    "Span",
    "TensorSpec",
    "Timeline",
    "TrainingError",
    "TransferPort",
    "WireType",
    "header_size",
    "message_size",
    "open_message",
    "pack_header",
    "pack_message",
]
