"""The task of a worker's process: a file of its share of the samples, and one of everything else."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from catchment.host.glm import Loss, Numbers, Parallel, Prepared, Step
from catchment.host.glm.encoding import Encoded
from catchment.host.glm.workers import Part, Share, cut


@dataclass(frozen=True, slots=True)
class Task:
    """A worker's part of a training.

    Attributes:
        wid: which.
        description: its part in the job, as `JobPlan.describe` has it.
        port: "shm:PATH", or None for UDP.
        share: .npz of `write_share`.
        weights: folder that takes its weights after each epoch.
        timeout: seconds without progress after which it fails.
        spin: seconds to poll for an answer before sleeping.
    """

    wid: int
    description: dict[str, Any]
    port: str | None
    share: str
    weights: str
    loss: str
    bits: int
    batch: int
    fraction: int
    micro_batch: int
    parallel: str
    steps: tuple[tuple[int, int], ...]
    timeout: float
    spin: float

    def write(self, path: Path) -> None:
        """The task as JSON."""
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Task:
        """What `write` wrote."""
        found = json.loads(path.read_text("utf-8"))
        return cls(**{**found, "steps": tuple((m, s) for m, s in found["steps"])})

    @property
    def all_steps(self) -> list[Step]:
        """Each epoch's step."""
        return [Step(multiplier, shift) for multiplier, shift in self.steps]

    def weights_after(self, epoch: int) -> Path:
        """The file of its weights after an epoch (0 is the first)."""
        return Path(self.weights) / f"{self.wid}-{epoch}.npy"

    def open_share(self) -> Share:
        """Its worker, ready to run."""
        with np.load(self.share, allow_pickle=False) as arrays:
            if "rows" in arrays:
                rows = arrays["rows"]
            else:
                rows = sp.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"]))
            optional = {name: arrays[name] for name in ("start", "importance") if name in arrays}
            return Share(
                Part(Encoded(rows, self.bits), arrays["labels"], arrays["ends"].tolist(), **optional),
                loss=Loss(self.loss),
                numbers=Numbers(self.bits, self.batch, self.fraction),
                micro_batch=self.micro_batch,
            )

    @property
    def how(self) -> Parallel:
        """What is divided among the workers."""
        return Parallel(self.parallel)


def write_share(prepared: Prepared, wid: int, path: Path) -> None:
    """A worker's codes, labels and mini-batches; where it begins and its samples' importance, if there are any."""
    part = cut(prepared, wid)
    rows = part.encoded.rows
    if isinstance(rows, sp.csr_array):
        arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr, "shape": np.array(rows.shape)}
    else:
        arrays = {"rows": rows}
    optional = {"start": part.start, "importance": part.importance}
    arrays.update({name: array for name, array in optional.items() if array is not None})
    np.savez(path, labels=part.labels, ends=np.array(part.ends, np.int64), **arrays)
