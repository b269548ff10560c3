"""`catchment glm`: generalized linear models, trained by workers behind a switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from catchment.cli.output import JsonOption, print_json, print_table, printable
from catchment.cli.seconds import seconds_option
from catchment.controlplane.errors import ControlPlaneError
from catchment.ending_signals import ended_as_by_ctrl_c
from catchment.plain_console import plain_console

if TYPE_CHECKING:
    from catchment.host.glm import Model, Prepared, Report, Runner, Samples
    from catchment.host.glm.targets import Targets

app = typer.Typer(help="Generalized linear models: train on workers behind a switch, predict.", no_args_is_help=True)

DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="LIBSVM text (also .gz, .bz2, .xz), or .npz of scipy.sparse.save_npz.")
]
LabelsOption = Annotated[
    Path | None, typer.Option(help="A .npy of labels for an .npz that has no array `labels` of its own.")
]
ZeroBasedOption = Annotated[bool, typer.Option("--zero-based", help="The text's first feature is 0, not 1.")]


class GlmCommandError(ControlPlaneError):
    """What the training said."""


@contextmanager
def _glm_errors() -> Iterator[None]:
    """Errors of the training become errors of the command."""
    from catchment.host.glm import GlmError  # noqa: PLC0415  scipy takes a moment to import

    try:
        yield
    except GlmError as error:
        raise GlmCommandError(str(error)) from error
    except MemoryError as error:
        raise GlmCommandError(f"out of memory ({error}): it holds all samples, see docs/explanation/glm.md") from error


@app.command()
@ended_as_by_ctrl_c()
def train(  # noqa: PLR0917
    data: DataArgument,
    loss: Annotated[str, typer.Option(help="logistic, hinge or squares.")] = "logistic",
    workers: Annotated[int, typer.Option(help="Workers that divide the features, 1 to 32.")] = 8,
    engines: Annotated[int, typer.Option(help="Engines of a worker, 1 to 8; the model does not depend on it.")] = 8,
    bits: Annotated[int, typer.Option(help="Bits of a feature that are read, 1 to 16.")] = 4,
    batch: Annotated[int, typer.Option(help="Samples of a mini-batch, a multiple of 8.")] = 64,
    micro_batch: Annotated[int, typer.Option(help="Samples of an all-reduce, a multiple of 8.")] = 8,
    epochs: Annotated[int, typer.Option(help="How often all samples are gone through.")] = 10,
    rate: Annotated[
        float | None, typer.Option(help="Learning rate; chosen from the samples' length if left out.")
    ] = None,
    decay: Annotated[float, typer.Option(help="Epoch e = 0, 1, .. has the rate / (1 + decay * e).")] = 0.0,
    fraction: Annotated[int, typer.Option(help="Fraction bits of a weight, 16 to 24.")] = 20,
    bias: Annotated[bool, typer.Option(help="With a constant feature.")] = True,
    seed: Annotated[int, typer.Option(help="Of the order of the samples; -1 leaves them as they are.")] = 1,
    parallel: Annotated[
        str, typer.Option(help="model: features are divided; data: samples are (the baseline).")
    ] = "model",
    worker: Annotated[str, typer.Option(help="software: C++; rtl: the hardware in co-simulation.")] = "software",
    lab: Annotated[
        str | None,
        typer.Option(help="Of software workers: mininet (root's default), shm (shared memory), local (no switch)."),
    ] = None,
    drop: Annotated[float, typer.Option(help="Share of frames that the switch loses on purpose.")] = 0.0,
    faults: Annotated[
        str, typer.Option(help="Of the Mininet lab's ports: dup=0.01,reorder=0.05,.. as `fault set` has them.")
    ] = "",
    timeout: Annotated[
        float | None,
        seconds_option(help="Seconds without any sum after which software workers give up; 120 if left out."),
    ] = None,
    positive: Annotated[float | None, typer.Option(help="This class against all others.")] = None,
    labels: LabelsOption = None,
    zero_based: ZeroBasedOption = False,
    features: Annotated[
        int | None, typer.Option(help="How many there are, if samples to come have more than DATA.")
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Samples to measure the model with; the same format.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The model; DATA.model.npz here if left out.")
    ] = None,
    sklearn: Annotated[Path | None, typer.Option(help="Also write a fitted scikit-learn estimator, by joblib.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Loss and accuracy by epoch (.svg, .png, .pdf); beside the model.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Train on DATA: `glm train DATA.libsvm --loss logistic --workers 8 --engines 8 --bits 4 --batch 64`."""
    from catchment.host import glm  # noqa: PLC0415
    from catchment.sim.glm.labs import LabKind  # noqa: PLC0415
    from catchment.sim.glm.plot import check_plot, save_plot  # noqa: PLC0415
    from catchment.sim.glm.runners import WorkerKind, default_lab, make_runner  # noqa: PLC0415

    with _glm_errors():
        training = glm.Training(
            loss=_choice(glm.Loss, loss, "--loss"),
            workers=workers,
            engines=engines,
            bits=bits,
            batch=batch,
            micro_batch=micro_batch,
            epochs=epochs,
            rate=rate,
            decay=decay,
            fraction=fraction,
            bias=bias,
            seed=None if seed == -1 else seed,
            parallel=_choice(glm.Parallel, parallel, "--parallel"),
        )
        kind = _choice(WorkerKind, worker, "--worker")
        asked = None if lab is None else _choice(LabKind, lab, "--lab")
        where = asked if kind == WorkerKind.RTL else asked or default_lab()
        model_path = output or Path(f"{data.name.partition('.')[0] or 'glm'}.model.npz")
        plot_path = plot or model_path.with_suffix(".svg")
        check_plot(plot_path)
        _check_outputs([path for path in (model_path, plot_path, sklearn) if path], [data, labels, test])
        samples = glm.read_samples(data, labels=labels, features=features, zero_based=zero_based)
        held_out = test and glm.read_samples(test, features=samples.matrix.shape[1], zero_based=zero_based)
        prepared = glm.prepare(samples, training, positive=positive)
        if held_out and (unknown := _unknown(prepared.targets, held_out)):
            raise GlmCommandError(f"{test}: labels that {data} does not have: {unknown}")
        model, reports = _run(
            prepared,
            lambda on_progress, on_notice: make_runner(
                kind,
                where,
                prepared,
                drop=drop,
                faults=faults,
                timeout=timeout,
                on_progress=on_progress,
                on_notice=on_notice,
            ),
        )
        model.save(model_path)
        save_plot(plot_path, data.name, training.loss, reports)
        if sklearn is not None:
            _dump(model.to_sklearn(), sklearn)
        tested = held_out and _measured(model, model.decision_function(held_out.matrix), held_out)
    document = {
        "data": str(data),
        "worker": kind,
        "lab": where,
        **_document(prepared, reports),
        **({"test": tested} if tested else {}),
        "model": str(model_path),
        "plot": str(plot_path),
    }
    if as_json:
        print_json(document)
    else:
        _print(document)


@app.command()
def predict(  # noqa: PLR0917
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="What `glm train` saved.")],
    data: DataArgument,
    labels: LabelsOption = None,
    zero_based: ZeroBasedOption = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the predictions; else printed.")
    ] = None,
    scores: Annotated[bool, typer.Option("--scores", help="Activations in place of classes.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Predict DATA's labels, one a line; says how many agree with those that DATA has."""
    from catchment.host import glm  # noqa: PLC0415
    from catchment.host.glm.targets import class_name  # noqa: PLC0415

    with _glm_errors():
        _check_outputs([output] if output else [], [model, data, labels])
        trained = glm.Model.load(model)
        features = trained.normaliser.features
        samples = glm.read_samples(data, labels=labels, features=features, zero_based=zero_based, unlabelled=True)
        activations = trained.decision_function(samples.matrix)
        predictions = activations if scores else trained.targets.predictions(activations)
        unknown = _unknown(trained.targets, samples) if samples.labelled else ""
        measured = _measured(trained, activations, samples) if samples.labelled and not unknown else {}
    classes = None if scores else trained.targets.classes
    lines = [f"{value:.10g}" if classes is None else class_name(value) for value in predictions]
    if output is not None:
        try:
            output.write_text("\n".join(lines) + "\n", encoding="ascii")
        except OSError as error:
            raise GlmCommandError(f"{output}: {error.strerror}") from None
    if unknown:
        known = " and ".join(map(class_name, trained.targets.classes or ()))
        typer.echo(f"{data}: no accuracy, as it has labels other than {known}: {unknown}", err=True)
    if as_json:
        # One class against all others: the others have no name of their own.
        values = [None if isnan(value := float(line)) else value for line in lines]
        found = {"predictions": str(output) if output else values}
        print_json({"samples": len(lines), **measured, **found})
        return
    if output is None:
        typer.echo("\n".join(lines))
    if measured:
        typer.echo("; ".join(f"{name} {value:.4f}" for name, value in measured.items()), err=True)


_Choice = TypeVar("_Choice", bound=StrEnum)


def _choice(kind: type[_Choice], value: str, option: str) -> _Choice:
    try:
        return kind(value)
    except ValueError:
        raise typer.BadParameter(f"{value!r}: one of {', '.join(kind)}", param_hint=option) from None


_Make = Callable[[Callable[[float], None], Callable[[str], None]], "Runner"]


def _run(prepared: Prepared, make: _Make) -> tuple[Model, list[Report]]:
    """Train with a bar on standard error; notices go there as lines."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn  # noqa: PLC0415

    from catchment.host import glm  # noqa: PLC0415
    from catchment.host.glm.targets import score_name  # noqa: PLC0415

    text, facts = TextColumn("{task.description}"), TextColumn("{task.fields[facts]}")
    columns = (text, BarColumn(), facts, TimeElapsedColumn(), TimeRemainingColumn())
    epochs = prepared.training.epochs
    with Progress(*columns, console=plain_console(stderr=True), transient=True) as bar:
        task = bar.add_task("training", total=epochs, facts="starting")
        score = score_name(prepared.training.loss)

        def on_report(report: Report) -> None:
            said = f"epoch {report.epoch}/{epochs}  loss {report.loss:.5f}  {score} {report.score:.4f}"
            bar.update(task, completed=report.epoch, facts=said)

        def notice(text: str) -> None:
            bar.console.print(printable(text))

        runner = make(lambda share: bar.update(task, completed=share * epochs), notice)
        return glm.train(prepared, runner, on_report)


def _check_outputs(outputs: list[Path], inputs: list[Path | None]) -> None:
    """Refuse what could not be written, before the training rather than after it."""
    read = [path.resolve() for path in inputs if path]
    written: set[Path] = set()
    for path in outputs:
        if not path.absolute().parent.is_dir():
            raise GlmCommandError(f"{path}: there is no folder {path.parent}")
        if path.is_dir():
            raise GlmCommandError(f"{path}: it is a folder; name a file")
        if path.resolve() in read:
            raise GlmCommandError(f"{path}: it would overwrite what is read; name another file")
        if path.resolve() in written:
            raise GlmCommandError(f"{path}: it would be written twice; name another file")
        written.add(path.resolve())


def _dump(estimator: Any, path: Path) -> None:
    import joblib  # noqa: PLC0415  only where it is asked for

    try:
        joblib.dump(estimator, path)
    except OSError as error:
        raise GlmCommandError(f"{path}: {error.strerror}") from None


def _unknown(targets: Targets, samples: Samples) -> str:
    """Labels that are none of the model's, named; nothing if there are none."""
    from catchment.host.glm.targets import named  # noqa: PLC0415

    return named(targets.unknown(samples.labels))


def _measured(model: Model, activations: Any, samples: Samples) -> dict[str, float]:
    from catchment.host.glm.targets import mean_loss, score, score_key  # noqa: PLC0415

    labels = model.targets.exact(samples.labels)
    return {
        "loss": mean_loss(model.loss, activations, labels),
        score_key(model.loss): score(model.loss, activations, labels),
    }


def _document(prepared: Prepared, reports: list[Report]) -> dict[str, Any]:
    from catchment.host.glm.targets import score_key  # noqa: PLC0415

    score = score_key(prepared.training.loss)
    samples, features = prepared.encoded.shape
    return {
        "samples": samples,
        "features": features - prepared.training.bias,
        "density": prepared.encoded.density,
        "options": asdict(prepared.training),
        "epochs": [
            {
                "epoch": report.epoch,
                "loss": report.loss,
                score: report.score,
                "seconds": report.seconds,
                "saturated": report.saturated,
                **report.facts,
            }
            for report in reports
        ],
    }


def _micros(seconds: float) -> str:
    micros = 1e6 * seconds
    return f"{micros:,.0f}" if micros >= 100 else f"{micros:.2f}"


def _print(document: dict[str, Any]) -> None:
    from catchment.host.glm.targets import score_key, score_name  # noqa: PLC0415

    options = document["options"]
    score = score_key(options["loss"])
    timed = any("all_reduce_seconds" in row for row in document["epochs"])
    rows = [
        (
            row["epoch"],
            f"{row['loss']:.5f}",
            f"{row[score]:.4f}",
            f"{row['seconds']:.3f}",
            *([_micros(row["all_reduce_seconds"]) if "all_reduce_seconds" in row else ""] if timed else []),
            row["saturated"] or "",
        )
        for row in document["epochs"]
    ]
    where = ", ".join(filter(None, (document["worker"], document["lab"])))
    title = (
        f"{document['samples']:,} samples, {document['features']:,} features; {options['workers']} workers"
        f" ({where}), {options['bits']} bits, mini-batch {options['batch']},"
        f" rate {options['rate']:.4g}"
    )
    columns = (
        "epoch",
        f"{options['loss']} loss",
        score_name(options["loss"]),
        "seconds",
        *(["us an all-reduce"] if timed else []),
    )
    print_table(title, (*columns, "saturated"), rows)
    if "test" in document:
        typer.echo("test: " + "; ".join(f"{name} {value:.4f}" for name, value in document["test"].items()))
    typer.echo(f"{document['model']}, {document['plot']}")
