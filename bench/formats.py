"""`make bench-formats`: what the number formats do to gradients, and to training.

Gradients are those of the demo's model and text, four workers. First the relative error of every element of the sum,
for each format (fp32, fp16, bf16) and scaling (block, delayed, fixed), beside sums of floats in the same format; then
whole training runs that differ in nothing but the sums. Block scaling is that of catchment.sim.golden.collectives, the
others those of catchment.sim.golden.scaled_sums, which every implementation equals bit for bit, so no switch is needed.
Writes JSON and two plots to build/bench/.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch

from bench import format_plots
from bench.format_error import ErrorDistribution
from bench.format_training import EXACT, RUNS, Curve, Study
from bench.report import RESULTS, Figure, publish
from catchment.program import run_program
from catchment.sim.training.options import TrainingOptions

FLOATS = "fp32 floats"


def _errors(options: TrainingOptions, sampled: Sequence[int]) -> dict[str, ErrorDistribution]:
    torch.set_num_threads(1)
    return Study(options).errors(sampled)


def _train(options: TrainingOptions, run: str) -> Curve:
    torch.set_num_threads(1)
    return Study(options).train(run)


def samples(steps: int) -> tuple[int, ...]:
    """The steps whose gradients are looked at: second, a tenth, a third and the end of the run."""
    return tuple(sorted({min(1, steps - 1), steps // 10, steps // 3, steps - 1}))


def measure(options: TrainingOptions) -> tuple[dict[str, ErrorDistribution], dict[str, Curve]]:
    """Everything, on as many cores as there are."""
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        errors = pool.submit(_errors, options, samples(options.steps))
        runs = {run: pool.submit(_train, options, run) for run in RUNS}
        return errors.result(), {run: future.result() for run, future in runs.items()}


def distances(curves: Mapping[str, Curve]) -> dict[str, dict[str, float]]:
    """How far each run is from the one with exact sums."""
    exact = curves[EXACT]
    return {
        run: {
            "validation_loss": curve.validation[-1],
            "largest_difference_of_training_loss": float(np.max(np.abs(np.subtract(curve.train, exact.train)))),
            "difference_of_validation_loss": curve.validation[-1] - exact.validation[-1],
            "difference_of_weights": float(
                np.linalg.norm(curve.weights - exact.weights) / np.linalg.norm(exact.weights)
            ),
        }
        for run, curve in curves.items()
    }


def figures(errors: Mapping[str, ErrorDistribution], apart: Mapping[str, Mapping[str, float]]) -> list[Figure]:
    """Each way beside sums of floats of the same format."""
    rows = []
    for name, found in errors.items():
        peer = f"{name.split()[0]} floats"
        if name != peer:
            rows.append(
                Figure(f"{name}: error of the vector", found.vector_error, "", peer, errors[peer].vector_error, None)
            )
    for run, far in apart.items():
        rows.append(
            Figure(
                f"{run}: validation loss at the end",
                far["validation_loss"],
                "nats",
                EXACT,
                apart[EXACT]["validation_loss"],
            )
        )
    return rows


def main(*, steps: int = 150, preset: str = "demo", workers: int = 4, seed: int = 1) -> None:
    """Measure, publish and plot error and convergence of the number formats."""
    options = TrainingOptions(steps=steps, preset=preset, workers=workers, seed=seed, wire="fp32", network="memory")
    errors, curves = measure(options)
    apart = distances(curves)
    notes = [
        f"{name}: median {e['median']:.1e}, 99% {e['p99']:.1e}, 99.9% {e['p99.9']:.1e}, largest {e['largest']:.1e}, "
        f"lost {e['share_lost']:.1e}, vector {e['vector_error']:.1e}, beside the largest of its vector: "
        f"median {e['median_beside_largest']:.1e}, 99% {e['p99_beside_largest']:.1e}"
        for name, e in ((name, found.to_json()) for name, found in errors.items())
    ]
    notes += [
        f"{run}: validation loss {far['validation_loss']:.4f}, from exact: "
        f"{far['difference_of_validation_loss']:+.1e} at the end, "
        f"{far['largest_difference_of_training_loss']:.1e} in the worst step, "
        f"weights {far['difference_of_weights']:.1e}"
        for run, far in apart.items()
    ]
    publish("formats", figures(errors, apart), notes)
    format_plots.errors(errors, RESULTS / "formats-error.svg")
    format_plots.convergence(curves, RESULTS / "formats-convergence.svg")
    document = {
        "options": options.to_json(),
        "sampled_steps": samples(options.steps),
        "errors": {name: found.to_json() for name, found in errors.items()},
        "convergence": apart,
        "training_loss": {run: curve.train for run, curve in curves.items()},
    }
    (RESULTS / "formats-data.json").write_text(json.dumps(document, indent=1) + "\n")
    print(f"plots and data: {RESULTS}/formats-*")


if __name__ == "__main__":
    run_program(main)
