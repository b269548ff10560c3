"""The PARAM message: what is packed comes out again, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from catchment.host.layers import (
    LayerSpec,
    LayerTable,
    ParamHeader,
    Phase,
    TrainingError,
    WireType,
    message_size,
    open_message,
    pack_message,
)

TABLE = LayerTable((LayerSpec.of(0, "first", [("a", (3, 2)), ("b", (5,))]), LayerSpec.of(1, "second", [("c", (4,))])))


@given(
    layer=st.integers(0, 1),
    step=st.integers(0, 2**32 - 1),
    phase=st.sampled_from(Phase),
    last=st.booleans(),
    wire=st.sampled_from(WireType),
    exponents=st.lists(st.integers(-128, 127), min_size=2, max_size=2),
    scale=st.floats(2.0**-100, 2.0**100, width=32),
    seed=st.integers(0, 2**32),
)
def test_round_trip(  # noqa: PLR0917
    layer: int, step: int, phase: Phase, last: bool, wire: WireType, exponents: list[int], scale: float, seed: int
) -> None:
    spec = TABLE[layer]
    flat = torch.randn(spec.numel, generator=torch.Generator().manual_seed(seed))
    header = ParamHeader(layer, step, phase, tuple(exponents[: len(spec.tensors)]), last, scale)
    message = pack_message(header, TABLE, wire, flat)
    assert len(message) == message_size(spec, wire)
    assert message_size(spec, wire) % 16 == spec.numel * wire.size % 16
    found, elements = open_message(message, spec, TABLE, wire)
    assert found == header
    assert torch.equal(elements, flat.to(wire.torch_dtype))


def test_refusals() -> None:
    flat = torch.zeros(11)
    with pytest.raises(TrainingError, match="1 exponents for 2 tensors"):
        pack_message(ParamHeader(0, 0, Phase.FORWARD, (1,)), TABLE, WireType.BF16, flat)
    with pytest.raises(TrainingError, match="signed 8 bits"):
        pack_message(ParamHeader(0, 0, Phase.FORWARD, (1, 128)), TABLE, WireType.BF16, flat)
    message = pack_message(ParamHeader(0, 0, Phase.FORWARD, (1, 2)), TABLE, WireType.BF16, flat)
    with pytest.raises(TrainingError, match="expected"):
        open_message(message[:-2], TABLE[0], TABLE, WireType.BF16)
    for scale in (0.0, -1.0, float("nan"), float("inf")):
        spoilt = pack_message(ParamHeader(0, 0, Phase.FORWARD, (1, 2), loss_scale=scale), TABLE, WireType.BF16, flat)
        with pytest.raises(TrainingError, match="positive and finite"):
            open_message(spoilt, TABLE[0], TABLE, WireType.BF16)
    other = LayerTable((LayerSpec.of(0, "first", [("a", (2, 3)), ("b", (5,))]), TABLE[1]))
    assert other.digest != TABLE.digest
    with pytest.raises(TrainingError, match="another model"):
        open_message(message, other[0], other, WireType.BF16)


def test_any_changed_header_byte_is_noticed_or_harmless() -> None:
    header = ParamHeader(0, 7, Phase.BACKWARD, (3, -4))
    message = pack_message(header, TABLE, WireType.BF16, torch.arange(11.0))
    checked = [
        *range(8),
        8,
        9,
        10,
        11,
        *range(16, 24),
    ]  # all but step, exponents and loss scale, which the reader compares or uses
    for byte in checked:
        for bit in range(8):
            spoilt = message.copy()
            spoilt[byte] ^= np.uint8(1 << bit)
            try:
                found, _ = open_message(spoilt, TABLE[0], TABLE, WireType.BF16)
            except TrainingError:
                continue
            assert found != header  # phase or the flag of the last pass: part of the header's value
