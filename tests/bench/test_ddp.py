"""Steps of DDP beside gloo's: the models that are trained, and what is made of the times."""

from __future__ import annotations

from pathlib import Path

import torch

from bench.ddp import CALLERS, GLOO, PROCESS, figures_of, plot, step_seconds
from bench.ddp_member import residual_network


class Told:
    """Ranks that answer with given times."""

    def __init__(self, times: list[list[float]]) -> None:
        self.orders: list[dict[str, object]] = []
        self._times = times

    def answers(self, order: dict[str, object]) -> list[list[float]]:
        self.orders.append(order)
        return self._times


def test_the_network_is_the_one_that_is_described() -> None:
    model = residual_network()
    assert model(torch.randn(2, 3, 32, 32)).shape == (2, 10)
    assert round(sum(parameter.numel() for parameter in model.parameters()) / 1e6, 1) == 0.7


def test_a_step_is_the_median_of_all_ranks() -> None:
    ranks = Told([[1.0, 5.0, 3.0], [2.0, 4.0, 9.0]])
    assert step_seconds(ranks, "some", 3) == 3.5  # type: ignore[arg-type]
    assert ranks.orders == [{"model": "some", "steps": 3}]


def test_a_figure_is_the_turn_whose_ratio_is_the_median(tmp_path: Path) -> None:
    seconds = {GLOO: [2.0, 1.0, 4.0], PROCESS: [1.0, 1.0, 1.0], CALLERS: [4.0, 2.0, 0.4]}
    process, callers = figures_of("a model", seconds, 4)
    assert (process.value, process.reference) == (1e3, 2e3)
    assert (callers.value, callers.reference) == (4e3, 2e3)
    assert (process.met, callers.met) == (True, False)
    plot([process, callers], tmp_path / "ddp.svg")
    drawn = (tmp_path / "ddp.svg").read_text()
    assert process.name in drawn and callers.name in drawn
