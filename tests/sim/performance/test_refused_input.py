"""What the command says of bad input, before anything runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from google.protobuf import proto
from typer.testing import CliRunner

from catchment.checkout import ROOT
from catchment.cli import app
from catchment.controlplane.errors import ControlPlaneError
from catchment.sim.performance.cluster_file import load_cluster
from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.requests import STEPS
from catchment.sim.performance.steps.chakra import write_traces
from catchment.sim.performance.steps.chakra_schema import GlobalMetadata, Node
from catchment.sim.performance.steps.execute import _Execution
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace
from catchment.sim.performance.workload import Action, Workload

FABRIC = "fabric: {kind: rack-spine, racks: 2, per_rack: 2, spines: 1}\n"
TASKS = (
    Task(1, "forward", Kind.COMPUTE, micros=10.0),
    Task(2, "gradients", Kind.COLLECTIVE, collective=Collective.ALL_REDUCE, size=4096, after=(1,)),
    Task(3, "optimizer", Kind.COMPUTE, micros=5.0, after=(2,)),
)


@pytest.fixture(autouse=True)
def _nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object) -> None:
        raise AssertionError("something ran")

    monkeypatch.setattr(Workload, "run", run)
    monkeypatch.setattr(_Execution, "run", run)


def refused(tmp_path: Path, text: str, says: str, *words: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ControlPlaneError, match=says):
        CliRunner().invoke(app, [*words, "--cluster", str(path)], catch_exceptions=False)


def cut(folder: Path) -> None:
    path = folder / "step.2.et"
    path.write_bytes(path.read_bytes()[:-3])


def empty(folder: Path) -> None:
    (folder / "step.2.et").write_bytes(b"")


def missing(folder: Path) -> None:
    (folder / "step.2.et").unlink()


def tasks(*changed: Task, **groups: tuple[int, ...]) -> Callable[[Path], None]:
    return lambda folder: write_traces(folder, "step", [Trace(2, changed, groups)])


def nested_groups(folder: Path) -> None:
    node = Node(id=7, name="groups", type=1)
    node.attr.add(name="process_groups", string_val='{"a":' * 100_000)
    with (folder / "step.2.et").open("wb") as out:
        proto.serialize_length_prefixed(GlobalMetadata(version="0.0.4"), out)
        proto.serialize_length_prefixed(node, out)


def another_name(folder: Path) -> None:
    (folder / "other.2.et").write_bytes((folder / "step.2.et").read_bytes())


def another_name_alone(folder: Path) -> None:
    (folder / "step.2.et").rename(folder / "other.2.et")


def computing(**attribute: float) -> Callable[[Path], None]:
    """A node that says how long it computes by an attribute alone."""

    def write(folder: Path) -> None:
        node = Node(id=7, name="forward", type=4)
        for name, value in attribute.items():
            node.attr.add(name=name, double_val=value)
        with (folder / "step.2.et").open("wb") as out:
            proto.serialize_length_prefixed(GlobalMetadata(version="0.0.4"), out)
            proto.serialize_length_prefixed(node, out)

    return write


def group_file(text: str) -> Callable[[Path], None]:
    return lambda folder: (folder / "comm_group.json").write_text(text, "utf-8") and None


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (cut, r"step\.2\.et: rank 2: the node at byte \d+, behind 2 \(gradients\) is cut"),
        (empty, r"step\.2\.et: rank 2: the file is empty"),
        (missing, "none of rank 2"),
        (tasks(replace(TASKS[0], after=(3,)), *TASKS[1:]), r"rank 2: node 1 \(forward\) is in a cycle"),
        (
            tasks(TASKS[0], replace(TASKS[1], after=(7,))),
            r"rank 2: node 2 \(gradients\) waits for node 7, which is not",
        ),
        (tasks(TASKS[0], replace(TASKS[1], group="odd")), r"rank 2: node 2 \(gradients\) is of group 'odd'"),
        (
            tasks(TASKS[0], replace(TASKS[1], group="odd"), odd=(1, 3)),
            r"rank 2: node 2 \(gradients\) is of group 'odd', which this rank is not in",
        ),
        (tasks(*TASKS, odd=(2, 2)), r"rank 2: .* group 'odd' needs ranks from 0, each once; it has \[2, 2\]"),
        (tasks(*TASKS, odd=()), r"rank 2: .* group 'odd' needs ranks"),
        (group_file('{"odd": [-1, 2]}'), r"comm_group\.json: .* group 'odd' needs ranks"),
        (group_file('{"odd": [1e400]}'), r"comm_group\.json: not a JSON object of lists of ranks"),
        (group_file("[" * 100_000), r"comm_group\.json: not a JSON object of lists of ranks"),
        (nested_groups, r"step\.2\.et: rank 2: the node at byte \d+ is cut or wrong: "),
        (another_name, r"et has other\.2\.et and step\.2\.et: give one trace of each rank"),
        (another_name_alone, r"et has other\.2\.et and step\.\d\.et: give the traces of one NAME"),
        (computing(num_ops=float("nan")), r"rank 2: node 7 \(forward\): a computation of nan us"),
        (computing(runtime=-5.0), r"rank 2: node 7 \(forward\): a computation of -5 us"),
    ],
    ids=[
        "cut",
        "empty",
        "missing",
        "cycle",
        "unknown node",
        "unknown group",
        "group of others",
        "rank twice",
        "empty group",
        "negative rank",
        "infinite rank",
        "deep file of groups",
        "deep groups",
        "two names of a rank",
        "two names",
        "not a number of operations",
        "negative time",
    ],
)
@pytest.mark.parametrize("mode", ["flow", "train"])
def test_a_trace(spoil: Callable[[Path], None], says: str, mode: str, tmp_path: Path) -> None:
    folder = tmp_path / "et"
    write_traces(folder, "step", [Trace(rank, TASKS) for rank in range(4)])
    spoil(folder)
    refused(tmp_path, FABRIC, says, "simulate-step", "et", "--et", str(folder), "--mode", mode)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FABRIC + "links: {host: 100gbs}\n", "cluster.yaml:2: links.host: 'gbs' is no unit of a rate"),
        (FABRIC + "links:\n  latency: 265MiB\n", "cluster.yaml:3: links.latency: 'MiB' is no unit of a time"),
        (FABRIC + "switch: {queue: 7}\n", "cluster.yaml:2: switch.queue: '7' has no unit"),
        ("fabric: {kind: rack-spine, racks: 2, per_rack: 4, spines: 0}\n", "cluster.yaml:1: fabric.spines: 0 is not"),
        (
            "fabric: {kind: rack-spine, racks: 2, per_rack: 100, spines: 1}\n",
            "cluster.yaml:1: switch r0 has 100 members",
        ),
        ("fabric: {kind: rack-spine, racks: 99, per_rack: 4, spines: 1}\n", "cluster.yaml:1: switch s0 has 99 members"),
        (
            FABRIC + "switch: {queue: 300B}\n",
            "cluster.yaml:2: switch.queue: 300 bytes have no room for a frame: give 1",
        ),
        (FABRIC + "switch: {sram: 64KiB}\n", "cluster.yaml:2: switch.slots: 1024 slots of 64 lanes need 270336 bytes"),
    ],
)
@pytest.mark.parametrize("workload", ["allreduce", "luwu", "nezha"])
def test_a_cluster(text: str, says: str, workload: str, tmp_path: Path) -> None:
    for kind in ("rack-spine,", "one-switch,"):
        text = text.replace(kind, kind + (" optimizers: 1," if workload == "luwu" else ""))
    rails = "rails: [{name: a}]\n" if workload == "nezha" else ""
    refused(tmp_path, text + rails, re.escape(says), "simulate", workload)


@pytest.mark.parametrize("words", [("allreduce",), ("ring",), ("tree",), ("ddp",), ("zero3", "--mode", "train")])
def test_a_tree_that_cannot_be(words: tuple[str, ...], tmp_path: Path) -> None:
    text = (ROOT / "sim" / "topologies" / "two-racks.yaml").read_text("utf-8")
    topology = text.replace("../../", f"{ROOT}/").replace("  - [r2:3, sp:2]\n", "")
    assert topology.count("sp:2") == 0
    (tmp_path / "topology.yaml").write_text(topology, "utf-8")
    small = ["--set", "hidden=64"] if words[0] in STEPS else []
    refused(
        tmp_path,
        "# two racks\ntopology: topology.yaml\n",
        r"cluster\.yaml:2: no path between w2",
        "simulate",
        *words,
        *small,
    )


def test_a_topology_that_is_not_there(tmp_path: Path) -> None:
    says = r"cluster\.yaml:2: topology: there is no file .*nowhere\.yaml"
    refused(tmp_path, "# none\ntopology: nowhere.yaml\n", says, "simulate", "allreduce")


def test_slots_that_a_switch_has_no_room_for(tmp_path: Path) -> None:
    says = "65536 slots of 64 lanes need 17301504 bytes of a switch's SRAM, 16252928 more than there are"
    text = FABRIC + "switch: {sram: 1MiB}\n"
    refused(tmp_path, text, f"cluster.yaml:1: {says}", "simulate", "allreduce", "--set", "slots=65536")


@pytest.mark.parametrize("mode", ["flow", "train"])
@pytest.mark.parametrize("system", [*STEPS, "luwu"])
def test_a_model_that_does_not_fit_the_memory(system: str, mode: str, tmp_path: Path) -> None:
    text = FABRIC.replace("racks:", "optimizers: 1, racks:") + "node: {memory: 100MiB}\n"
    says = r"of 12\.9 billion parameters needs \d+\.\d GiB a GPU, \d+\.\d more than the `memory` of r0h0"
    words = ["simulate-step", "luwu"] if system == "luwu" else ["simulate", system, "--set", "group=4"]
    refused(tmp_path, text, says, *words, "--mode", mode)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("links: {latency: 1e400s}", r"links\.latency: '1e400s' is too much for a time: give 1e\+12s at most"),
        ("links: {latency: 20000s}", r"links\.latency: 20000s is not between 0ps and 1e\+16ps"),
        ("links: {host: 1e-9gbps}", r"links\.host: give a rate at which a byte takes whole picoseconds"),
        ("switch: {queue: 0B}", r"switch\.queue: 0B is not between 1B and"),
        ("switch: {pps: 1e-9pps}", r"switch\.pps: 1e-9pps is not between 0\.001pps and"),
        ("nic: {push: 1e30s}", r"nic\.push: '1e30s' is too much for a time"),
        ("nic: {fifo: 1e20B}", r"nic\.fifo: 1e20B is not between"),
        ("node: {peak: 0tflops}", r"node\.peak: 0tflops is not between 0\.001gflops and"),
        ("node: {scale_up: 0GBps}", r"node\.scale_up: 0GBps is not between 0\.001MBps and"),
        ("node: {proxy_ring: 0GBps}", r"node\.proxy_ring: 0GBps is not between"),
        ("hosts: [{name: r0h0, peak: 0tflops}]", r"hosts\[0\]\.peak: 0tflops is not between"),
        (
            "rails: [{name: a, start: 4.294967296s}]",
            r"rails\[0\]\.start: 4\.294967296s is not between 0ps and 5e\+11ps",
        ),
        ("failures: [{what: host, name: r0h0, at: 1e9s}]", r"failures\[0\]\.at: 1e9s is not between"),
        ("failures: [{what: host, name: r0h0, every: 1s, lasts: 1e9s, within: 2s}]", r"failures\[0\]\.lasts: 1e9s is"),
    ],
)
def test_quantities_that_no_cluster_has(text: str, says: str, tmp_path: Path) -> None:
    refused(tmp_path, FABRIC + text + "\n", r"cluster\.yaml:2: " + says, "simulate", "allreduce")


def test_failures_that_are_years_apart(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(
        FABRIC + "failures: [{what: host, name: r0h0, every: 1e8s, lasts: 1s, within: 60s}]\n", "utf-8"
    )
    assert load_cluster(tmp_path / "cluster.yaml").breakdowns[0].every == 10**20


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        (("size=1e400GiB",), r"'1e400GiB' is too much for a size"),
        (("compute=20000s",), r"20000 s of computing: give 10000 s at most"),
        (("slots=0",), r"0 slots: give a power of two"),
        (("slots=-4",), r"-4 slots: give a power of two"),
        (("rounds=x",), r"allreduce: rounds=x: give a whole number"),
        (("slots=1.5",), r"allreduce: slots=1\.5: give a whole number"),
        (("size=1KiB", "size=2KiB"), r"size is set twice, to 1KiB and 2KiB: give one, or sweep it"),
        (("rounds=1000001",), r"1000001 rounds: give 1000000 at most"),
        (("size=1025GiB",), r"has 4299161600 frames, sequence numbers tell 2147483647 apart"),
    ],
)
def test_messages_that_no_stream_has(settings: tuple[str, ...], says: str, tmp_path: Path) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    refused(tmp_path, FABRIC, says, "simulate", "allreduce", "--mode", "train", *words)


@pytest.mark.parametrize("workload", ["allreduce", "ddp"])
def test_a_key_that_is_swept_twice(workload: str, tmp_path: Path) -> None:
    words = ["--sweep", "links.host=25gbps,50gbps", "--sweep", "links.host=100gbps"]
    refused(tmp_path, FABRIC, r"links\.host is swept twice", "simulate", workload, *words)


@pytest.mark.parametrize("words", [["simulate", "allreduce"], ["simulate", "mics"], ["simulate-step", "ddp"]])
def test_a_key_that_is_set_and_swept_or_set_twice(words: list[str], tmp_path: Path) -> None:
    fast, slow = "links.host=100gbps", "links.host=25gbps"
    says = r"links\.host is set twice, to 100gbps and 25gbps: give one, or sweep it"
    refused(tmp_path, FABRIC, says, *words, "--set", fast, "--set", slow)
    says = r"links\.host is set to 25gbps, and swept, too: leave one of them out"
    refused(tmp_path, FABRIC, says, *words, "--set", slow, "--sweep", f"{fast},50gbps")


@pytest.mark.parametrize("words", [["simulate", "allreduce"], ["simulate-step", "ddp"]])
def test_a_seed_that_has_too_many_bits(words: list[str], tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(FABRIC, "utf-8")
    result = CliRunner().invoke(app, [*words, "--cluster", str(path), "--seed", str(1 << 64)])
    assert result.exit_code == 2
    assert "--seed" in result.output


def test_a_step_that_never_ends() -> None:
    with pytest.raises(PerformanceError, match="an operation of 20000 s: nothing runs longer than 10000 simulated"):
        Workload().add(Action.COMPUTE, amount=2 * 10**16)


def test_a_ring_takes_no_slots_below_one(tmp_path: Path) -> None:
    refused(tmp_path, FABRIC, r"-5 slots: give a power of two", "simulate", "ring", "--set", "slots=-5")


def test_further_rails_that_take_longer_than_the_balancer_adds_up(tmp_path: Path) -> None:
    text = FABRIC + "rails: [{name: a}, {name: b}]\n"
    says = r"4\.29497 s for each further rail: give 0\.5 s at most"
    refused(tmp_path, text, says, "simulate", "nezha", "--set", "together=4294967296ns")


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("size=1s", "nezha: size: 's' is no unit of a size"),
        ("compute=x", "nezha: compute: 'x' is no time"),
        ("together=1", "nezha: together: '1' has no unit"),
    ],
)
def test_the_setting_whose_value_is_none_is_named(setting: str, says: str, tmp_path: Path) -> None:
    refused(tmp_path, FABRIC + "rails: [{name: a}, {name: b}]\n", says, "simulate", "nezha", "--set", setting)
