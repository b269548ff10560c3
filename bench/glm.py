"""P4SGD: `make bench-glm`.

The paper's figures from the cycle model, loss against epochs at few bits, and time to the same loss beside
scikit-learn's SGDClassifier and LIBLINEAR.  Plots go to build/bench/glm-*.svg.
"""

from __future__ import annotations

from bench import glm_convergence, glm_hardware, glm_peers, report
from bench.glm_data import NamedSamples, bundled, text_set
from catchment.host.glm import GlmError


def _peers(data: NamedSamples) -> tuple[list[report.Figure], list[str]]:
    """Choose of all seeds the one whose ratio is the median; the notes have them all."""
    found = glm_peers.compare(data)
    figures, notes = [], []
    for peer in (glm_peers.SGD, glm_peers.LIBLINEAR):
        reached = [each for each in found if each.others[peer].seconds is not None]
        if not reached:
            notes.append(f"{data.name}: {peer} did not come to the loss: {found[0].others[peer].how}")
            continue
        for what, counted in (("", False), (" with quantization", True)):
            by_ratio = sorted(reached, key=lambda each: each.ratio(peer, whole=counted))
            one = by_ratio[len(by_ratio) // 2]
            name = f"{data.name}: time to loss {one.target:.4f}{what}"
            theirs = one.others[peer]
            assert theirs.seconds is not None
            seconds = one.whole if counted else one.epochs
            figures.append(report.Figure(name, 1e3 * seconds, "ms", peer, 1e3 * theirs.seconds, 1.0))
            said = ", ".join(f"{each.ratio(peer, whole=counted):.2f}" for each in by_ratio)
            notes.append(f"{name}: ratios of {len(by_ratio)} seeds {said}; ours {one.how}; {peer} {theirs.how}")
    return figures, notes


def _convergence(sets: list[NamedSamples]) -> list[report.Figure]:
    """Epochs at 4 bits until the loss that floats have after three quarters of theirs."""
    all_curves = {data.name: glm_convergence.curves(data) for data in sets}
    glm_convergence.plot(all_curves, report.RESULTS / "glm-figure-14.svg")
    wanted = glm_convergence.EPOCHS * 3 // 4
    return [
        report.Figure(
            f"{name}: epochs to loss {found['float'][wanted]:.4f} at 4 bits (Figure 14)",
            glm_convergence.epochs_to(found["4 bits"], found["float"][wanted]),
            "epochs",
            "float SGD",
            wanted,
            1.0,
        )
        for name, found in all_curves.items()
    ]


def main() -> None:
    """Run all parts."""
    figures, notes = glm_hardware.measure(report.RESULTS)
    sets = bundled()
    try:
        sets.append(text_set())
    except GlmError as error:
        notes.append(f"left out: {error}")
    for data in sets:
        samples, features = data.samples.matrix.shape
        notes.append(f"{data.name}: {data.about}; {samples:,} samples, {features:,} features")
        measured, said = _peers(data)
        figures += measured
        notes += said
    figures += _convergence(sets)
    report.publish("glm", figures, [*notes, f"plots: {report.RESULTS}/glm-figure*.svg"])


if __name__ == "__main__":
    main()
