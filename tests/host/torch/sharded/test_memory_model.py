"""The memory model chooses what the MiCS paper's authors chose, and says by how much a model does not fit."""

from __future__ import annotations

import pytest

from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.memory_model import GIB, MODELS, choose_for, need

PAPER = {"BERT-10B": 8, "BERT-15B": 16, "BERT-20B": 16, "BERT-50B": 64}


@pytest.mark.parametrize(("model", "ranks"), PAPER.items())
def test_the_papers_four_choices(model: str, ranks: int) -> None:
    """Section 5.1.1: 1, 2, 2 and 8 nodes of 8 GPUs with 32 GiB each."""
    choice = choose_for(model, 128, 8, 32 * GIB)
    assert choice.partition_size == ranks
    assert [looked.partition_size for looked in choice.looked_at][-1] == ranks
    assert all(looked.total > choice.usable for looked in choice.looked_at[:-1])


@pytest.mark.parametrize(
    ("model", "ranks", "gib"),
    [
        ("BERT-10B", 8, 22.9),
        ("BERT-15B", 8, 33.3),
        ("BERT-15B", 16, 19.4),
        ("BERT-20B", 16, 24.7),
        ("BERT-50B", 64, 22.0),
    ],
)
def test_bytes_of_a_rank(model: str, ranks: int, gib: float) -> None:
    assert need(MODELS[model], ranks).total / GIB == pytest.approx(gib, rel=0.02)


def test_parameters_are_those_of_the_names() -> None:
    for name, model in MODELS.items():
        billions = float(name.rpartition("-")[2].removesuffix("B"))
        assert model.parameters / 1e9 == pytest.approx(billions, rel=0.06), name


def test_a_model_that_fits_nowhere_says_by_how_much() -> None:
    with pytest.raises(ShardingError, match=r"on 16 ranks each needs \d+\.\d GiB, 2\d\.\d GiB more than the 29\.8 GiB"):
        choose_for("BERT-50B", 16, 8, 32 * GIB)
    with pytest.raises(ShardingError, match="activations alone are too large"):
        choose_for("BERT-10B", 128, 8, 4 * GIB)
    with pytest.raises(ShardingError, match="no model BERT: give one of BERT-10B"):
        choose_for("BERT", 128, 8, 32 * GIB)
