"""The HTML report: one self-contained file, plots embedded as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from catchment.demo import plots
from catchment.demo.outcome import Outcome
from catchment.demo.volumes import collective_saving
from catchment.sim.training.options import TrainingOptions

_STYLE = """
body{font:15px/1.5 system-ui,sans-serif;color:#1d2329;max-width:900px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin-top:2.2rem}
p.lead{color:#55606b;margin-top:0}svg{width:100%;height:auto}
table{border-collapse:collapse;font-variant-numeric:tabular-nums}
td,th{padding:.2rem .9rem .2rem 0;text-align:left;border-bottom:1px solid #e6e8eb}
td.number{text-align:right}.good{color:#24734a}.bad{color:#b3261e}code{background:#f3f4f6;padding:0 .25rem}
"""


def write_report(outcome: Outcome, path: Path) -> None:
    """Render `outcome` to `path`."""
    path.write_text(render(outcome))


def render(outcome: Outcome) -> str:
    """The page as text."""
    options = TrainingOptions.from_json(outcome.options)
    passes = [train for index, train in enumerate(options.passes) if index not in outcome.missing]
    sections = [
        _head(outcome, options),
        _section("Loss", plots.loss_curves(outcome, passes), _comparison(outcome)),
    ]
    if outcome.reference_losses:
        sections.append(_section("Distance from the training in one process", plots.loss_gap(outcome), _GAP))
    sections += [
        _section("Bytes per worker and step", plots.volume_bars(outcome.volumes), _volumes(outcome, options)),
        _section("One step", plots.step_timeline(outcome.timeline), _TIMELINE.format(step=options.traced_step)),
        _section("Seconds per step", plots.step_times(outcome.step_seconds), ""),
        _section("Memory of a worker", "", _memory(outcome)),
        *([_section("Links of the optimizer nodes", "", _links(outcome, options))] if options.roots > 1 else []),
        _section("What the network did", "", _counters(outcome)),
        _section("Options", "", _table(("option", "value"), sorted((k, str(v)) for k, v in outcome.options.items()))),
    ]
    body = "\n".join(sections)
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Catchment: a training in the network</title>'
        f"<style>{_STYLE}</style></head><body>{body}</body></html>\n"
    )


_GAP = (
    "Both runs use the same text, the same rounding of parameters and fp32 gradients; they differ in how the workers' "
    "gradients are added: as integers of a shared exponent in the switch, or as floats."
)
_TIMELINE = (
    "Training step {step}. A worker computes a layer as soon as its parameters are there (grey: it waits for them); "
    "the push of a layer's gradients goes on while earlier layers compute. At the optimizer node the pull of a layer, "
    "its update and the pushes of the next ones overlap. Pushes and pulls last until the network has confirmed them."
)


def _head(outcome: Outcome, options: TrainingOptions) -> str:
    first, last = (sum(row) / len(row) for row in (outcome.losses[0], outcome.losses[-1]))
    rate = options.steps * options.batch * options.workers * options.shape.sequence / max(outcome.seconds, 1e-9)
    facts = [
        ("model", f"{outcome.parameters:,} parameters in {outcome.layers} layers (preset {options.preset})"),
        ("text", f"{outcome.text_bytes / 1e6:.1f} MB from {outcome.text_files} files"),
        ("training", f"{options.steps} steps in {outcome.seconds:.1f} s, {rate:,.0f} bytes of text per second"),
        ("validation loss", f"{first:.4f} before, {last:.4f} after (nats per byte)"),
        ("frames lost on purpose", f"{options.loss:.2%} at every port of the switch, each way"),
        ("weights, sha256", outcome.digest),
    ]
    return (
        "<h1>A training in the network</h1>"
        f"<p class=lead>{options.workers} workers that hold no parameters, {_nodes(options.roots)}, and a P4 switch "
        f"between them that adds the gradients up ({escape(options.target)}, {options.lanes} lanes).</p>"
        + _table((), facts)
    )


def _nodes(count: int) -> str:
    return "one optimizer node" if count == 1 else f"{count} optimizer nodes with a part of the model each"


def _comparison(outcome: Outcome) -> str:
    comparison = outcome.comparison
    if comparison is None:
        return "<p>The comparison with one process was left out.</p>"
    exact = (
        f"<span class=good>the same bits</span>: every loss of every worker in all {comparison.passes} passes, and the "
        "trained weights"
        if comparison.exact
        else f"<span class=bad>different bits</span>: only {comparison.equal_passes} of {comparison.passes} passes are "
        "equal"
    )
    verdict = "good" if comparison.largest_gap <= comparison.tolerance else "bad"
    return (
        f"<p>With the sums made in the wire's integers, one process gives {exact}. With float sums its mean loss "
        f"differs by at most <span class={verdict}>{comparison.largest_gap:.2e}</span> (allowed: "
        f"{comparison.tolerance}); after the last step by {comparison.final_gap:.2e}.</p>"
    )


def _volumes(outcome: Outcome, options: TrainingOptions) -> str:
    saving = collective_saving(options.workers)
    return (
        "<p>Payload, with the demo's element types: parameters in "
        f"{escape(options.wire)}, gradients in {8 * options.gradient_bytes} bits. What was measured has headers, "
        "heartbeats, resent frames and validation in it. Per collective LuWu moves S elements where a sharded one "
        f"moves 2(N-1)S/N: {saving:.1%} less at N = {options.workers}, {collective_saving(8):.1%} at N = 8.</p>"
    )


def _memory(outcome: Outcome) -> str:
    rows = [
        (f"w{index}", *(f"{memory[key] / 1e6:.2f}" for key in _MEMORY))
        for index, memory in enumerate(outcome.worker_memory)
    ]
    return _table(("worker", *_MEMORY.values()), rows)


_MEMORY = {
    "model_bytes": "whole model, fp32, MB",
    "peak_parameter_bytes": "parameters at the peak, pulls in flight included, MB",
    "peak_gradient_bytes": "gradients at the peak, pushes in flight included, MB",
}


def _links(outcome: Outcome, options: TrainingOptions) -> str:
    """What went over each optimizer node's link, and at which mean rate."""
    rows = []
    for name in options.root_names:
        stats = outcome.endpoint_stats.get(name, {})
        if stats:
            moved = [stats[key] for key in ("bytes_sent", "bytes_received")]
            rates = [f"{8e-6 * each / max(outcome.seconds, 1e-9):.2f}" for each in moved]
            rows.append((name, *(f"{each / 1e6:.2f}" for each in moved), *rates))
    if not rows:
        return "<p>There was no network whose links could be counted.</p>"
    head = ("optimizer node", "MB down", "MB up", "Mb/s down", "Mb/s up")
    text = "Each holds a part of the model; means over the whole run, beside what it takes to compute."
    return f"<p>{text}</p>" + _table(head, rows)


def _counters(outcome: Outcome) -> str:
    drops = _table(("dropped by the switch", "packets"), [(k, f"{v:,}") for k, v in sorted(outcome.drops.items())])
    rows = [
        (title, *(_number(_at(stats, key)) for stats in outcome.endpoint_stats.values()))
        for key, title in _STATISTICS.items()
        if any(outcome.endpoint_stats.values())
    ]
    skipped = sum(len(entry["tensors"]) for entry in outcome.skipped)
    return (
        (drops if outcome.drops else "<p>The switch dropped nothing.</p>")
        + f"<p>Updates of single tensors skipped because a gradient did not fit its exponent: {skipped}.</p>"
        + (_table(("endpoint", *outcome.endpoint_stats), rows) if rows else "")
    )


_STATISTICS = {
    "frames_sent": "frames sent",
    "frames_received": "frames received",
    "bytes_sent": "bytes sent",
    "bytes_received": "bytes received",
    "retransmissions": "frames resent",
    "timeouts": "retransmission timeouts",
    "heartbeats_sent": "heartbeats sent",
    "rejects.duplicate": "duplicates received",
    "stalls.credit.total": "seconds without credit",
    "push_latency.mean": "seconds per push, mean",
    "pull_latency.mean": "seconds per pull, mean",
    "round_trip": "round trip, seconds",
    "processor_time": "processor time of the endpoint, seconds",
}


def _at(stats: dict[str, Any], path: str) -> object:
    """The value under a dotted path; "" when this endpoint does not count it."""
    value: Any = stats
    for key in path.split("."):
        value = value.get(key, "") if isinstance(value, dict) else ""
    return value


def _number(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3g}" if isinstance(value, float) else str(value)


def _section(title: str, plot: str, text: str) -> str:
    body = text if text.startswith("<") or not text else f"<p>{escape(text)}</p>"
    return f"<h2>{escape(title)}</h2>{plot}{body}"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["<table>"]
    if head:
        lines.append("<tr>" + "".join(f"<th>{escape(cell)}</th>" for cell in head) + "</tr>")
    lines += ["<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows]
    return "".join([*lines, "</table>"])
