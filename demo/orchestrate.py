"""The demo from beginning to end: network up, training, the same in one process, comparison, report."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from rich.console import Console

from catchment.demo import single
from catchment.demo.compare import SingleProcess, compare
from catchment.demo.listener import TrainingListener
from catchment.demo.losses import Losses
from catchment.demo.network import DemoNetwork, MemoryNetwork
from catchment.demo.outcome import Outcome, PassLosses
from catchment.demo.progress import TrainingProgress
from catchment.demo.report import write_report
from catchment.demo.resume import Journal, going_on
from catchment.demo.shm_network import ShmNetwork
from catchment.demo.summary import print_summary
from catchment.demo.volumes import luwu, measured, ring_all_reduce, zero3
from catchment.host.layers import Homes, TrainingError
from catchment.host.torch import layers_of, table_of
from catchment.sim.lab.crew import Crew
from catchment.sim.lab.errors import LabError
from catchment.sim.lab.members import ProcessMember, module_command, start_here
from catchment.sim.training.data import load_corpus
from catchment.sim.training.model import Decoder
from catchment.sim.training.options import Plan, TrainingOptions
from catchment.sim.training.root import collect

_FP32 = 4


def open_network(options: TrainingOptions) -> DemoNetwork:
    """The network that the options ask for, not yet entered; Mininet is only needed when it is asked for."""
    if options.network == "memory":
        return MemoryNetwork(options)
    if options.network == "shm":
        return ShmNetwork(options)
    from catchment.demo.switch_network import SwitchNetwork  # noqa: PLC0415

    return SwitchNetwork(options)


def run(
    options: TrainingOptions,
    console: Console | None = None,
    *,
    network: Callable[[TrainingOptions], DemoNetwork] = open_network,
) -> Outcome:
    """Run the demo; writes report.html, report.json and weights.pt into `options.output`.

    `network` makes the network to train in, not yet entered; tests bring their own.

    Raises:
        LabError: the network cannot be built, a member died or stalled (named), or the comparison failed.
    """
    console = Console() if console is None else console
    if options.resume:
        options = going_on(options)
        console.print(f"going on after step {options.trained} of {options.steps}")
    _check_roots(options)
    options.logs.mkdir(parents=True, exist_ok=True)
    if options.group_folder is not None and not options.resume:
        shutil.rmtree(options.group_folder, ignore_errors=True)  # of an earlier training
    trained = _train_in_network(options, network(options), console)
    beside = _train_in_one_process(options, console) if options.reference else None
    outcome = _outcome(options, trained, beside)
    outcome.write(options.output / "report.json")
    write_report(outcome, options.output / "report.html")
    print_summary(outcome, options.output, console)
    if outcome.comparison is not None and not outcome.comparison.holds:
        raise LabError(
            f"the run differs from the same training in one process: {outcome.comparison}; see {options.output}"
        )
    return outcome


def _check_roots(options: TrainingOptions) -> None:
    """Refuse more optimizer nodes than the model has pieces, before all members do."""
    with torch.device("meta"):
        model = Decoder(options.shape)
    try:
        Homes.spread(table_of(layers_of(model)), options.roots)
    except TrainingError as error:
        raise LabError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _Trained:
    losses: PassLosses
    done: dict[str, dict[str, Any]]
    skipped: list[dict[str, Any]]
    drops: dict[str, int]
    seconds: float


def _train_in_network(options: TrainingOptions, network: DemoNetwork, console: Console) -> _Trained:
    with ExitStack() as exits:
        with console.status("starting the switch and the network"):
            exits.enter_context(network)
        plan = Plan(options, network.describe())
        plan.write()
        crew = exits.enter_context(Crew(silence=max(60.0, 3 * options.timeout)))
        for host in (*options.worker_names, *options.root_names):
            crew.add(network.start(host, plan, crew.deliver))
        losses = Losses(
            options, console, lambda host: crew.restart(host, partial(network.start, host, plan, crew.deliver))
        )
        volume = luwu(options.shape.parameters, options.wire_type.size, options.gradient_bytes).total * options.workers
        progress = exits.enter_context(TrainingProgress(console, "in the network", options.steps, volume))
        listener = TrainingListener(plan, network, progress, PassLosses(options.workers))
        journal = Journal(options.output / "passes.jsonl")
        journal.replay(options.first_pass if options.resume else 0, listener.recall)
        exits.enter_context(journal)

        def on_event(name: str, event: dict[str, Any]) -> None:
            journal.note(name, event)
            listener(name, event)
            losses(name, event)

        try:
            crew.await_ready()
            started = time.monotonic()
            done = crew.run(on_event)
        except LabError as error:
            silent = f"; when it stalled: {', '.join(listener.silent)}" if listener.silent else ""
            again = "; go on after the last step on disk with --resume" if options.out_of_core else ""
            raise LabError(f"{error}{silent} (logs in {options.logs}){again}") from error
        return _Trained(listener.losses, done, listener.skipped, network.counters(), time.monotonic() - started)


def _train_in_one_process(options: TrainingOptions, console: Console) -> SingleProcess:
    """The float reference and the exact twin, side by side: each is one process with one thread."""
    losses = {sums: PassLosses(options.workers) for sums in (single.FLOAT, single.EXACT)}
    with Crew(silence=600.0) as crew, TrainingProgress(console, "in one process", options.steps, 0) as progress:

        def on_event(name: str, event: dict[str, Any]) -> None:
            index = event["index"]
            for worker, loss in enumerate(event["losses"]):
                losses[name].add(index, worker, loss, event["seconds"])
            if event["train"] and all(len(each.losses) > index for each in losses.values()):
                step = sum(options.passes[: index + 1])
                progress.step(step, losses[single.FLOAT].mean(index), event["at"])

        for sums in losses:
            arguments = (str(Plan(options, {}).path), sums)
            command = module_command("catchment.demo.single", arguments, options.logs / f"{sums}.log")
            crew.add(ProcessMember(sums, command, start_here, crew.deliver))
        crew.await_ready()
        started = time.monotonic()
        done = crew.run(on_event)
        seconds = time.monotonic() - started
    return SingleProcess(losses[single.FLOAT], losses[single.EXACT], done[single.EXACT]["digest"], seconds)


def _outcome(options: TrainingOptions, trained: _Trained, beside: SingleProcess | None) -> Outcome:
    corpus = load_corpus()
    roots = [trained.done[name] for name in options.root_names]
    parameters = sum(root["parameters"] for root in roots)
    digest = collect(options)
    size = options.wire_type.size
    worker_stats = [stats for name in options.worker_names for stats in trained.done[name].get("stats", {}).values()]
    began = min(trained.done[name].get("trained", options.trained) for name in options.worker_names)
    steps, missing = options.steps - began, trained.losses.missing(len(options.passes))
    volumes = (
        luwu(parameters, size, options.gradient_bytes),
        *([measured(worker_stats, options.workers, steps)] if worker_stats and steps else []),
        ring_all_reduce(parameters, options.workers, _FP32),
        zero3(parameters, options.workers, size, _FP32),
    )
    members = (*options.worker_names, *options.root_names)
    exponents: dict[str, list[int]] = {}
    for root in roots:
        for layer, own in root["exponents"].items():
            exponents.setdefault(layer, []).extend(own)
    return Outcome(
        options=options.to_json(),
        parameters=parameters,
        layers=len(exponents),
        text_bytes=len(corpus.train) + len(corpus.validation),
        text_files=corpus.files,
        losses=trained.losses.rows(),
        reference_losses=beside.float_sums.rows(missing) if beside else [],
        comparison=compare(options, trained.losses, digest, beside) if beside else None,
        digest=digest,
        seconds=trained.seconds,
        reference_seconds=beside.seconds if beside else 0.0,
        step_seconds=[
            trained.losses.seconds[i] for i, train in enumerate(options.passes) if train and i not in missing
        ],
        volumes=[asdict(volume) for volume in volumes],
        worker_memory=[trained.done[name]["memory"] for name in options.worker_names],
        endpoint_stats=_endpoints(trained.done, members),
        drops=trained.drops,
        skipped=trained.skipped,
        exponents=exponents,
        timeline={name: trained.done[name]["timeline"] for name in members},
        stored={key: sum(root["stored"][key] for root in roots) for key in roots[0]["stored"]},
        missing=missing,
    )


def _endpoints(done: dict[str, dict[str, Any]], members: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Statistics of all endpoints; those of a worker with several are named after their optimizer nodes as well."""
    named: dict[str, dict[str, Any]] = {}
    for member in members:
        stats = done[member].get("stats", {})
        named.update({member if len(stats) == 1 else f"{member} - {root}": own for root, own in stats.items()})
    return named
