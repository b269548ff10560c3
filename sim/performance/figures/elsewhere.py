"""Figures and tables of the papers that no claim is of: drawings, real runs elsewhere, what cannot be had."""

from __future__ import annotations

from dataclasses import dataclass

_DRAWING = "a drawing"
_GPUS = "times of GPUs that are not here"
_BENCH = "real run"


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A row.

    Attributes:
        places: as "Figure 3", each alone.
        why: it is a drawing, who runs it instead, or what is missing for it.
    """

    paper: str
    places: tuple[str, ...]
    why: str


def _figures(*numbers: int) -> tuple[str, ...]:
    return tuple(f"Figure {number}" for number in numbers)


COUNTS: dict[str, tuple[int, tuple[str, ...]]] = {
    "LuWu": (17, ("Table 1", "Table 2", "Table 3", "Table 4")),
    "P4SGD": (15, ("Table I", "Table II", "Table III", "Table IV")),
    "Nezha": (20, ("Table I", "Table II", "Table III")),
    "MiCS": (16, ("Table 1", "Table 2")),
    "COARSE": (17, ("Table I",)),
}
"""Paper -> how many figures it has, and its tables."""

ROWS = (
    Elsewhere("LuWu", _figures(1, 5, 6, 7, 8, 9), _DRAWING),
    Elsewhere("LuWu", ("Table 1",), "an interface; ours: docs/reference/c.md"),
    Elsewhere("LuWu", ("Table 2",),
              "sizes of models, 12 layers x hidden^2 each: what `simulate-step --layers --hidden` takes"),
    Elsewhere("LuWu", _figures(2),
              f"{_GPUS}; {_BENCH} of FSDP2 on gloo: `make bench-gloo-baselines` (docs/measurements/gloo-baselines.md)"),
    Elsewhere("LuWu", _figures(3, 4), f"{_GPUS}; `simulate ddp` gives the exposed share for a model and a cluster"),
    Elsewhere("LuWu", ("Table 3", "Table 4"),
              "areas of Vivado and stages of the Tofino compiler, neither of which is here"),
    Elsewhere("LuWu", _figures(10),
              "memory of A100 GPUs under ZeRO-Infinity; our optimizer node's: docs/measurements/optimizer.md"),
    Elsewhere("LuWu", _figures(11, 12, 13, 14, 17), f"{_GPUS}: TFLOPS of A100 GPUs"),
    Elsewhere("LuWu", _figures(15),
              f"{_BENCH}: `make bench-optimizer`, disks of limited rates (docs/measurements/optimizer.md)"),
    Elsewhere("LuWu", _figures(16),
              f"{_BENCH}: the demo's losses, bit for bit those of its twin (docs/explanation/training.md)"),
    Elsewhere("P4SGD", _figures(1, 2, 3, 4, 5, 6, 7), _DRAWING),
    Elsewhere("P4SGD", ("Table II",), "sizes of data sets: inputs of the cycle model"),
    Elsewhere("P4SGD", ("Table III",), "areas of Vivado; ours by Yosys: docs/measurements/rtl-glm.md"),
    Elsewhere("P4SGD", ("Table IV",), "energy and times of CPUs, GPUs and FPGAs that are not here"),
    Elsewhere("P4SGD", _figures(11), f"{_BENCH} in RTL: `make bench-glm` (docs/measurements/glm.md)"),
    Elsewhere("P4SGD", _figures(13),
              f"baselines on CPUs that are not here; {_BENCH} of data parallelism on gloo: `make bench-gloo-baselines` "
              "(docs/measurements/gloo-baselines.md)"),
    Elsewhere("P4SGD", _figures(15), "baselines on GPUs that are not here"),
    Elsewhere("P4SGD", _figures(14), f"{_BENCH}: `make bench-glm`, epochs by precision (docs/measurements/glm.md)"),
    Elsewhere("Nezha", _figures(1, 5, 6, 7), _DRAWING),
    Elsewhere("Nezha", _figures(2, 3, 4), "throughput on GLEX and SHARP, whose curves are no numbers in the text"),
    Elsewhere("Nezha", ("Table II", "Table III"), "clusters and models: inputs"),
    Elsewhere("Nezha", _figures(8, 12), f"{_BENCH}: shares of rails, `make bench-rails` (docs/explanation/rails.md)"),
    Elsewhere("Nezha", _figures(10), "GLEX is proprietary"),
    Elsewhere("Nezha", _figures(13), f"{_GPUS}: V100 with ImageNet, over GLEX"),
    Elsewhere("Nezha", _figures(14, 15, 16),
              "latencies by size on 1 and 100 Gb/s NICs of its clusters; ours: `make bench-rails`"),
    Elsewhere("Nezha", _figures(17, 20), "GPT-3 in vTrain on supercomputers; no curve is a number in the text"),
    Elsewhere("MiCS", _figures(1, 3, 4, 5, 6), _DRAWING),
    Elsewhere("MiCS", ("Table 1", "Table 2"), "sizes and settings of models: inputs"),
    Elsewhere("MiCS", _figures(2), "bandwidths of EFA and NVLink: inputs of the rows above"),
    Elsewhere("MiCS", _figures(7, 8, 9, 10, 11), f"{_GPUS}: V100 and A100 with EFA"),
    Elsewhere("MiCS", _figures(12, 13, 14),
              f"{_BENCH}: `make bench-mics`, on links of limited rates (docs/measurements/mics.md)"),
    Elsewhere("MiCS", _figures(15), "launches of GPU kernels, which are not here"),
    Elsewhere("MiCS", _figures(16),
              f"{_BENCH}: `make bench-mics`, losses with the same bits (docs/measurements/mics.md)"),
    Elsewhere("COARSE", _figures(1, 4, 5, 6, 7, 9, 10, 11, 12), _DRAWING),
    Elsewhere("COARSE", ("Table I",), "machines: inputs"),
    Elsewhere("COARSE", _figures(2), f"{_GPUS}; `simulate-step` gives the exposed share"),
    Elsewhere("COARSE", _figures(3, 8, 13, 14), "bandwidths of a CCI prototype and of PCIe, which are not here"),
    Elsewhere("COARSE", _figures(15),
              f"{_BENCH}: `make bench-coarse`, proxies on slow links (docs/explanation/proxies.md)"),
    Elsewhere("COARSE", _figures(16, 17),
              f"{_GPUS}; plans and sums on links of limited rates: `make bench-coarse` (docs/explanation/coarse.md)"),
)  # fmt: skip
