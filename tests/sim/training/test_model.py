"""The decoder, its sizes, and the arithmetic of volumes."""

from __future__ import annotations

import pytest
import torch

from catchment.demo.volumes import collective_saving, luwu, measured, ring_all_reduce, zero3
from catchment.host.torch import layers_of
from catchment.sim.training.model import PAPER_SHAPES, PRESETS, Decoder, ModelShape, initialise, next_byte_loss


@pytest.mark.parametrize("shape", [PRESETS["tiny"], ModelShape(3, 5, 20, 7, 11), ModelShape(1, 1, 8, 4)])
def test_parameter_count(shape: ModelShape) -> None:
    model = Decoder(shape)
    assert sum(parameter.numel() for parameter in model.parameters()) == shape.parameters
    assert [layer.spec.name for layer in layers_of(model)] == [
        "embedding", *(f"blocks.{i}" for i in range(shape.layers)), "head",
    ]  # fmt: skip


@pytest.mark.parametrize("name", PAPER_SHAPES)
def test_the_papers_models_have_the_size_in_their_name(name: str) -> None:
    text = name.removeprefix("OPT-").removesuffix("*")
    billions = float(text[:-1]) * (1000 if text.endswith("T") else 1)
    assert PAPER_SHAPES[name].parameters / 1e9 == pytest.approx(billions, rel=0.12)


def test_the_demo_preset_is_about_a_million_parameters() -> None:
    assert 0.8e6 < PRESETS["demo"].parameters < 1.2e6


def test_no_position_sees_its_future() -> None:
    model = Decoder(PRESETS["tiny"])
    initialise(model, 1)
    tokens = torch.randint(0, 256, (1, 16), generator=torch.Generator().manual_seed(3))
    changed = tokens.clone()
    changed[0, 9] = (changed[0, 9] + 1) % 256
    before, after = model(tokens), model(changed)
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.equal(before[:, 9:], after[:, 9:])


def test_initialisation_follows_its_seed_and_starts_at_a_uniform_guess() -> None:
    models = [Decoder(PRESETS["tiny"]) for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        initialise(model, seed)
    first, same, other = (torch.cat([p.reshape(-1) for p in model.parameters()]) for model in models)
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    tokens = torch.randint(0, 256, (4, 32), generator=torch.Generator().manual_seed(1))
    assert next_byte_loss(models[0](tokens), tokens).item() == pytest.approx(5.545, abs=0.05)


def test_impossible_shapes() -> None:
    with pytest.raises(ValueError, match="multiple"):
        ModelShape(1, 3, 8, 4)
    with pytest.raises(ValueError, match="at least 1"):
        ModelShape(0, 1, 8, 4)


def test_volumes_are_the_papers() -> None:
    assert collective_saving(8) == pytest.approx(0.429, abs=0.0005)
    assert collective_saving(1) == 0.0
    parameters = 1000
    # LuWu: S gradients up, 2 S parameters down, whatever N is
    assert luwu(parameters, 2, 2).sent == 2 * parameters
    assert luwu(parameters, 2, 2).received == 4 * parameters
    # ring: 2(N-1)/N S each way; ZeRO-3: 50% more than an all-reduce at equal element sizes
    assert ring_all_reduce(parameters, 4, 2).total == 2 * 1.5 * 2 * parameters
    assert zero3(parameters, 4, 2, 2).total == pytest.approx(1.5 * ring_all_reduce(parameters, 4, 2).total)
    assert 1 - luwu(parameters, 2, 2).total / zero3(parameters, 8, 2, 2).total == pytest.approx(0.429, abs=0.0005)


def test_measured_volume_is_the_mean_over_workers_and_steps() -> None:
    volume = measured([{"bytes_sent": 10, "bytes_received": 40}, {"bytes_sent": 30, "bytes_received": 80}], 2, 4)
    assert (volume.sent, volume.received, volume.total) == (5.0, 15.0, 20.0)
