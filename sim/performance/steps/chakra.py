"""Chakra execution traces: a file for each rank, NAME.RANK.et, of length-delimited protobuf messages.

A GlobalMetadata, then a Node for each task. What a computation takes is its `duration_micros` (or the attribute
`runtime` of older traces), or `num_ops` at the node's speed. The groups of collectives are in a METADATA node's
attribute `process_groups`, as JSON, or in a file comm_group.json beside the traces.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from google.protobuf import proto
from google.protobuf.message import DecodeError

from catchment.sim.performance.errors import PerformanceError
from catchment.sim.performance.steps.chakra_schema import GlobalMetadata, Node
from catchment.sim.performance.steps.graph import Collective, Kind, Task, Trace

VERSION = "0.0.4"
_NAME = re.compile(r".+\.(\d+)\.et")
_METADATA, _MEM_LOAD, _MEM_STORE, _COMP, _SEND, _RECV, _COLL, _STORAGE = range(1, 9)
_KNOWN = (_METADATA, _MEM_LOAD, _MEM_STORE, _COMP, _COLL, _STORAGE)
_COLLECTIVES = tuple(Collective)
"""The collectives, in the order of the schema's CollectiveCommType."""
_GROUPS = "process_groups"
_GROUP_FILE = "comm_group.json"
Groups = Mapping[str, tuple[int, ...]]


def write_traces(folder: Path, name: str, traces: Iterable[Trace]) -> None:
    """Write a file for each rank; computations in whole microseconds.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for trace in traces:
        with (folder / f"{name}.{trace.rank}.et").open("wb") as out:
            proto.serialize_length_prefixed(GlobalMetadata(version=VERSION), out)
            top = max((task.number for task in trace.tasks), default=-1) + 1
            proto.serialize_length_prefixed(_groups_node(top, trace.groups), out)
            for task in trace.tasks:
                proto.serialize_length_prefixed(_node(task), out)


def _groups_node(number: int, groups: Groups) -> Any:
    node = Node(id=number, name="groups", type=_METADATA)
    node.attr.add(name=_GROUPS, string_val=json.dumps({name: list(ranks) for name, ranks in groups.items()}))
    return node


def _node(task: Task) -> Any:
    kinds = {Kind.COMPUTE: _COMP, Kind.COLLECTIVE: _COLL, Kind.TRANSFER: _MEM_STORE, Kind.NOTHING: _METADATA}
    node = Node(id=task.number, name=task.name, type=kinds[task.kind], data_deps=task.after)
    node.attr.add(name="is_cpu_op", bool_val=False)
    if task.kind in (Kind.COMPUTE, Kind.TRANSFER):
        node.duration_micros = round(task.micros)
    if task.kind is Kind.TRANSFER:
        node.attr.add(name="tensor_size", uint64_val=task.size)
    if task.kind is Kind.COLLECTIVE:
        node.attr.add(name="comm_type", int64_val=_COLLECTIVES.index(task.collective))
        node.attr.add(name="comm_size", int64_val=task.size)
        if task.group:
            node.attr.add(name="pg_name", string_val=task.group)
    if task.stream:
        node.attr.add(name="stream", string_val=task.stream)
    return node


def read_traces(folder: Path, flops: Sequence[float]) -> list[Trace]:
    """Read the traces of a folder, by rank.

    Args:
        flops: of each rank, for computations that only say their operations; further ranks are as the last one.

    Raises:
        PerformanceError: there are none, a file is cut or wrong, or a graph cannot be carried out; the
            message says rank, node and name.
    """
    found: dict[int, Path] = {}
    for path in sorted(folder.glob("*.et")):
        if match := _NAME.fullmatch(path.name):
            rank = int(match[1])
            if rank in found:
                raise PerformanceError(f"{folder} has {found[rank].name} and {path.name}: give one trace of each rank")
            found[rank] = path
    names = {path.name.rsplit(".", 2)[0]: path.name for path in found.values()}
    if len(names) > 1:
        first, second, *_ = names.values()
        raise PerformanceError(f"{folder} has {first} and {second}: give the traces of one NAME")
    if not found:
        raise PerformanceError(f"{folder} has no execution traces: files are called NAME.RANK.et")
    if missing := set(range(len(found))) - set(found):
        raise PerformanceError(f"{folder} has {len(found)} traces, and none of rank {min(missing)}")
    beside = _group_file(folder / _GROUP_FILE)
    return [read_trace(found[rank], rank, flops[min(rank, len(flops) - 1)], beside) for rank in range(len(found))]


def read_trace(path: Path, rank: int, flops: float, groups: Groups | None = None) -> Trace:
    """Read a rank's trace; errors as of `read_traces`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise PerformanceError(f"cannot read {path}: {error.strerror}") from None
    stream = io.BytesIO(data)
    tasks: list[Task] = []
    known: dict[str, tuple[int, ...]] = dict(groups or {})
    what = "its metadata"
    try:
        if proto.parse_length_prefixed(GlobalMetadata, stream) is None:
            raise PerformanceError(f"{path}: rank {rank}: the file is empty")
        while True:
            at = stream.tell()
            what = f"the node at byte {at}" + (f", behind {tasks[-1].number} ({tasks[-1].name})" if tasks else "")
            node = proto.parse_length_prefixed(Node, stream)
            if node is None:
                break
            attributes = {each.name: getattr(each, each.WhichOneof("value") or "name") for each in node.attr}
            if node.type == _METADATA and _GROUPS in attributes:
                known.update(_groups(json.loads(attributes[_GROUPS])))
                continue
            tasks.append(_task(path, rank, node, attributes, flops))
    except (DecodeError, ValueError, TypeError, OverflowError, EOFError, RecursionError) as error:
        raise PerformanceError(f"{path}: rank {rank}: {what} is cut or wrong: {error}") from None
    if not tasks:
        raise PerformanceError(f"{path}: rank {rank}: there is no node; the file is cut")
    trace = Trace(rank, tuple(tasks), known)
    trace.check()
    return trace


def _task(path: Path, rank: int, node: Any, attributes: Mapping[str, Any], flops: float) -> Task:
    where = f"{path}: rank {rank}: node {node.id} ({node.name})"
    after = tuple(dict.fromkeys((*node.data_deps, *node.ctrl_deps)))
    if node.type not in _KNOWN:
        raise PerformanceError(f"{where}: nodes of type {node.type} cannot be simulated")
    if node.type == _COLL:
        number = int(attributes.get("comm_type", -1))
        if not 0 <= number < len(_COLLECTIVES):
            raise PerformanceError(f"{where}: comm_type {number} is none of Chakra's")
        size = int(attributes.get("comm_size", 0))
        if size < 0:
            raise PerformanceError(f"{where}: comm_size is {size}")
        return Task(
            node.id, node.name, Kind.COLLECTIVE, collective=_COLLECTIVES[number], size=size,
            group=str(attributes.get("pg_name", "")), stream=str(attributes.get("stream", "")), after=after,
        )  # fmt: skip
    stream = str(attributes.get("stream", ""))
    if node.type in (_MEM_LOAD, _MEM_STORE, _STORAGE) and node.duration_micros:
        size, micros = int(attributes.get("tensor_size", 0)), float(node.duration_micros)
        return Task(node.id, node.name, Kind.TRANSFER, micros=micros, size=size, stream=stream, after=after)
    if node.type != _COMP:
        return Task(node.id, node.name, Kind.NOTHING, after=after)
    micros = float(node.duration_micros or attributes.get("runtime", 0))
    if micros == 0:
        micros = 1e6 * float(attributes.get("num_ops", 0)) / flops
    if not 0 <= micros < math.inf:
        raise PerformanceError(f"{where}: a computation of {micros:g} us")
    return Task(node.id, node.name, Kind.COMPUTE, micros=micros, stream=stream, after=after)


def _group_file(path: Path) -> Groups:
    if not path.exists():
        return {}
    try:
        return _groups(json.loads(path.read_text("utf-8")))
    except (OSError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise PerformanceError(f"{path}: not a JSON object of lists of ranks: {error}") from None


def _groups(document: Any) -> Groups:
    if not isinstance(document, dict):
        raise ValueError("groups are an object of lists of ranks")
    groups = {str(name): tuple(int(rank) for rank in ranks) for name, ranks in document.items()}
    for name, ranks in groups.items():
        if not ranks or min(ranks) < 0 or len(set(ranks)) < len(ranks):
            raise ValueError(f"group {name!r} needs ranks from 0, each once; it has {list(ranks)}")
    return groups
