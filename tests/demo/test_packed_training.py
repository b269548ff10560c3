"""The demo with gradients in packed lanes: the bits of its twin, a loss as with lanes of 32 bits, half the bytes."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from relay_network import RelayNetwork
from rich.console import Console

from catchment.demo import TrainingOptions, run
from catchment.demo.outcome import Outcome

pytestmark = pytest.mark.usefixtures("one_thread")


def _quiet() -> Console:
    return Console(file=io.StringIO())


def _trained(output: Path, gradients: str) -> Outcome:
    options = TrainingOptions(
        workers=4, preset="tiny", steps=20, batch=2, evaluate=10, network="memory", gradients=gradients, output=output
    )
    return run(options, _quiet())


@pytest.mark.sampled(4)
def test_the_loss_is_within_one_per_cent_of_32_bit_lanes(tmp_path: Path) -> None:
    whole, packed = (_trained(tmp_path / gradients, gradients) for gradients in ("int32", "int16"))
    for outcome in (whole, packed):
        assert outcome.comparison is not None
        assert outcome.comparison.exact, "the twin's integers are the switch's"
    assert whole.digest != packed.digest
    losses = [sum(outcome.losses[-1]) / 4 for outcome in (whole, packed)]
    assert losses[1] == pytest.approx(losses[0], rel=0.01)
    assert losses[1] < 0.95 * sum(packed.losses[0]) / 4, "it learned"
    assert packed.volumes[0]["sent"] * 2 == whole.volumes[0]["sent"]
    assert packed.volumes[0]["received"] == whole.volumes[0]["received"]


@pytest.mark.slow
def test_real_endpoints_send_half_of_the_gradients_bytes(tmp_path: Path, seed: int) -> None:
    def trained(gradients: str) -> Outcome:
        options = TrainingOptions(
            workers=2, preset="tiny", steps=3, batch=2, lanes=64, timeout=120.0, gradients=gradients,
            output=tmp_path / gradients,
        )  # fmt: skip
        return run(options, _quiet(), network=lambda chosen: RelayNetwork(chosen, seed=seed))

    whole, packed = trained("int32"), trained("int16")
    assert packed.comparison is not None
    assert packed.comparison.exact
    sent = [outcome.volumes[1]["sent"] for outcome in (whole, packed)]  # with headers, heartbeats and validation
    assert sent[1] < 0.6 * sent[0]
