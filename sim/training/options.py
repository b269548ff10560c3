"""What a person may choose about a training, and the schedule that follows from it."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from catchment.host.layers import WireType
from catchment.host.layers.homes import MOST_ROOTS
from catchment.host.optimizer import Adam
from catchment.sim.lab.errors import LabError
from catchment.sim.training.model import PRESETS, ModelShape
from catchment.wire.generated.constants import MAX_WORKERS, SUPPORTED_LANES

NETWORKS = ("mininet", "shm", "memory")
ROOT_HOST = "opt"
"""The optimizer node; several are numbered: opt0, opt1, ..."""
TARGETS = ("embedded", "bmv2")
MOST_SEED = (1 << 64) - 1
"""The largest seed of a generator of torch."""
GRADIENTS = {"int32": 4, "int16": 2}
"""What gradients travel as, and its bytes."""


@dataclass(frozen=True, slots=True)
class TrainingOptions:
    """Options of a training in the network; the command line of the demo is made from them.

    Attributes:
        workers: number of workers. roots: number of optimizer nodes that share the model.
        preset: model size (see model.PRESETS). steps: training steps.
        batch: sequences per worker and step. rate: Adam's peak learning rate. seed: of weights and data order.
        wire: parameters travel as "bf16" or "fp32".
        gradients: travel as "int32", one in a lane, or as "int16", two in a lane.
        lanes, slots: of the switch program. mtu: of the hosts' links, bytes. target: which P4 switch.
        network: "mininet", "shm" (a switch with shared-memory ports; no root), or "memory" (no switch: threads in
            one process, for trying the training alone).
        loss: probability with which the switch drops a frame on each of its ports, 0 to 0.5.
        evaluate: steps between two validation passes. reference: train in one process as well, to compare.
        timeout: seconds without progress after which an endpoint gives up.
        out_of_core: the optimizer node keeps the model states in a store on disk, not in memory.
        arena: bytes of memory for its layers in flight, 0: as many as three of the largest take.
        restart: HOST@STEP: the host's process is killed with SIGKILL after the step, and started again; all go on from
            the last step that all optimizer nodes have on disk. Empty: nobody's.
        resume: go on with the run out of core in the output folder, after its last step on disk.
        trained: steps that the store already has (found out when resuming).
        output: folder of the report and the logs. name: of the network; two with different names can be up at once.
    """

    workers: int = 4
    roots: int = 1
    preset: str = "demo"
    steps: int = 150
    batch: int = 8
    rate: float = 1.5e-3
    seed: int = 1
    wire: str = "bf16"
    gradients: str = "int32"
    lanes: int = 256
    slots: int = 32
    mtu: int = 1500
    target: str = "embedded"
    network: str = "mininet"
    loss: float = 0.0
    evaluate: int = 25
    reference: bool = True
    timeout: float = 10.0
    out_of_core: bool = False
    arena: int = 0
    restart: str = ""
    resume: bool = False
    trained: int = 0
    output: Path = Path("build/demo")
    name: str = "demo"

    def __post_init__(self) -> None:
        checks = (
            (1 <= self.workers <= MAX_WORKERS, f"workers {self.workers}: 1 to {MAX_WORKERS}"),
            (1 <= self.roots <= MOST_ROOTS, f"roots {self.roots}: 1 to {MOST_ROOTS}"),
            (self.preset in PRESETS, f"preset {self.preset!r}: one of {', '.join(PRESETS)}"),
            (self.steps >= 1, f"steps {self.steps}: at least 1"),
            (self.batch >= 1, f"batch {self.batch}: at least 1"),
            (0 < self.rate < math.inf, f"rate {self.rate}: above 0, and finite"),
            (0 <= self.seed <= MOST_SEED, f"seed {self.seed}: 0 to {MOST_SEED}"),
            (self.wire in ("bf16", "fp32"), f"wire {self.wire!r}: bf16 or fp32"),
            (self.gradients in GRADIENTS, f"gradients {self.gradients!r}: one of {', '.join(GRADIENTS)}"),
            (self.lanes in SUPPORTED_LANES, f"lanes {self.lanes}: one of {SUPPORTED_LANES}"),
            (self.slots >= 1 and not self.slots & (self.slots - 1), f"slots {self.slots}: a power of two"),
            (1500 <= self.mtu <= 9000, f"mtu {self.mtu}: 1500 to 9000"),
            (self.target in TARGETS, f"target {self.target!r}: one of {', '.join(TARGETS)}"),
            (self.network in NETWORKS, f"network {self.network!r}: one of {', '.join(NETWORKS)}"),
            (
                self.network != "shm" or self.target == "embedded",
                f"target {self.target!r}: only the embedded switch has shared-memory ports; take network mininet",
            ),
            (0 <= self.loss <= 0.5, f"loss {self.loss}: a probability, 0 to 0.5"),
            (self.evaluate >= 1, f"evaluate {self.evaluate}: at least 1"),
            (self.arena >= 0, f"arena {self.arena}: a number of bytes, or 0"),
            (self.timeout > 0, f"timeout {self.timeout}: above 0 seconds"),
        )
        wrong = [text for right, text in checks if not right]
        if not wrong and self.restart:
            wrong = self._wrong_restart()
        if wrong:
            raise LabError("; ".join(wrong))

    def _wrong_restart(self) -> list[str]:
        name, _, step = self.restart.partition("@")
        hosts = (*self.worker_names, *self.root_names)
        if name not in hosts or not step.isdecimal() or not 1 <= int(step) <= self.steps - 2:
            return [f"restart {self.restart!r}: HOST@STEP, one of {', '.join(hosts)}, after step 1 to {self.steps - 2}"]
        if self.group_folder is None or self.network != "mininet":
            return [
                "restart: it takes several optimizer nodes (--roots), out of core (--out-of-core), and a controller "
                "(--network mininet)"
            ]
        return []

    @property
    def restarted(self) -> tuple[str, int] | None:
        """The host that is killed and started again, and the step after which."""
        name, _, step = self.restart.partition("@")
        return (name, int(step)) if self.restart else None

    @property
    def shape(self) -> ModelShape:
        """The model's sizes."""
        return PRESETS[self.preset]

    @property
    def wire_type(self) -> WireType:
        """Element type of parameters on the wire."""
        return WireType.BF16 if self.wire == "bf16" else WireType.FP32

    @property
    def packed(self) -> bool:
        """Whether gradients travel in packed lanes."""
        return self.gradients == "int16"

    @property
    def gradient_bytes(self) -> int:
        """Bytes of a gradient on the wire."""
        return GRADIENTS[self.gradients]

    @property
    def logs(self) -> Path:
        """Folder of what switch and processes wrote to their standard error."""
        return self.output / "logs"

    def store_places(self, root: int = 0) -> tuple[Path, ...]:
        """Files of an optimizer node's store; two, so that it is striped."""
        name = "optimizer" if self.roots == 1 else f"optimizer{root}"
        return tuple(self.output / f"{name}-{device}.store" for device in range(2))

    @property
    def group_folder(self) -> Path | None:
        """The folder in which several stores agree on a step; None for one."""
        return self.output / "optimizers" if self.roots > 1 and self.out_of_core else None

    @property
    def root_names(self) -> tuple[str, ...]:
        """Host names of the optimizer nodes."""
        return (ROOT_HOST,) if self.roots == 1 else tuple(f"{ROOT_HOST}{index}" for index in range(self.roots))

    @property
    def adam(self) -> Adam:
        """The optimizer: OPT's beta2, and an eps well above rounding noise, which Adam would blow up otherwise."""
        return Adam(lr=self.rate, beta2=0.95, eps=1e-6)

    @property
    def passes(self) -> tuple[bool, ...]:
        """True for each training pass, False for each validation pass: first, every `evaluate` steps, last."""
        schedule = [False]
        for step in range(1, self.steps + 1):
            schedule.append(True)
            if step % self.evaluate == 0 or step == self.steps:
                schedule.append(False)
        return tuple(schedule)

    @property
    def first_pass(self) -> int:
        """Number of the first pass of this run: the one after `trained` training passes."""
        done = 0
        for index, train in enumerate(self.passes):
            if done == self.trained:
                return index
            done += train
        return len(self.passes)

    @property
    def validation_batch(self) -> int:
        """Sequences per worker in a validation pass."""
        return 2 * self.batch

    @property
    def traced_step(self) -> int:
        """The training step (from 1) whose timeline goes into the report: past the start, before the end."""
        return 1 + self.trained + (self.steps - self.trained) // 2

    @property
    def worker_names(self) -> tuple[str, ...]:
        """Host names of the workers."""
        return tuple(f"w{index}" for index in range(self.workers))

    def warmed(self, step: int) -> float:
        """Factor on the learning rate at a training step: a tenth of the run up, then a cosine down to a tenth."""
        warmup = max(1, self.steps // 10)
        if step < warmup:
            return (step + 1) / warmup
        progress = (step - warmup) / max(1, self.steps - warmup)
        return 0.1 + 0.45 * (1 + math.cos(math.pi * progress))

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `from_json`."""
        return {**dataclasses.asdict(self), "output": str(self.output.resolve())}

    @staticmethod
    def from_json(values: dict[str, Any]) -> TrainingOptions:
        """The options that `to_json` wrote."""
        return TrainingOptions(**{**values, "output": Path(values["output"])})


def defaults_for(target: str) -> TrainingOptions:
    """What the command line starts from. BMv2 is some hundred times slower, and its queues hold 64 packets."""
    if target == "bmv2":
        return TrainingOptions(target=target, preset="tiny", steps=20, batch=4, lanes=8, slots=8, timeout=60.0)
    return TrainingOptions(target=target)


@dataclass(frozen=True, slots=True)
class Plan:
    """What every process of a run reads: the options, and how each host reaches the switch (demo/ports.py)."""

    options: TrainingOptions
    hosts: dict[str, dict[str, Any]]

    @property
    def path(self) -> Path:
        """The path that `write` writes: every process of the run is given it."""
        return self.options.output.resolve() / "plan.json"

    def write(self) -> None:
        """Save as JSON."""
        self.path.write_text(json.dumps({"options": self.options.to_json(), "hosts": self.hosts}, indent=1))

    @staticmethod
    def read(path: Path) -> Plan:
        """Load what `write` saved."""
        values = json.loads(path.read_text())
        return Plan(TrainingOptions.from_json(values["options"]), values["hosts"])
