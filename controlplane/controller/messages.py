"""Values of ours as messages of wire/controller.proto."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.controlplane.controller.job_watch import JobWatch, State
from catchment.controlplane.controller.switches import SwitchAgent
from catchment.controlplane.jobs import JobGroup, SplitCall
from catchment.wire.generated import controller_pb2 as pb

_PARTS = "parts"


def description(group: JobGroup, host: str) -> Any:
    """What the endpoints of a host need: `JobGroup.describe` as a message."""
    return _description(group.describe(host, to_member=True))


def _description(values: Mapping[str, Any], part: str = "") -> Any:
    streams = {name: value for name, value in values.items() if isinstance(value, dict) and name != _PARTS}
    return pb.Description(
        job=values["job"],
        kind=values["kind"],
        host=values["host"],
        role=values.get("role", ""),
        wid=values.get("wid", 0),
        local=_address(values["local"]) if "local" in values else None,
        switch=_address(values["switch"]) if "switch" in values else None,
        streams=[pb.Stream(name=name, **stream) for name, stream in streams.items()],
        port=values.get("port", ""),
        rail=values.get("rail", ""),
        rate=values.get("rate", 0),
        switch_name=values.get("switch_name", ""),
        part=part,
        parts=[_description(inner, label) for label, inner in values.get(_PARTS, {}).items()],
    )


def _address(pair: list[Any]) -> Any:
    return pb.Address(ip=pair[0], port=pair[1])


def described(message: Any) -> dict[str, Any]:
    """The opposite of `description`: as `JobPlan.describe`."""
    streams = {
        s.name: {
            **{key: getattr(s, key) for key in ("gen", "workers", "slots", "base_seq", "lanes", "param_bytes")},
            **({"packed": True} if s.packed else {}),
            **({"key": s.key} if s.key else {}),
        }
        for s in message.streams
    }
    parts = {inner.part: described(inner) for inner in message.parts}
    role = {
        "role": message.role,
        "wid": message.wid,
        "local": [message.local.ip, message.local.port],
        "switch": [message.switch.ip, message.switch.port],
    }
    return {
        "job": message.job,
        "kind": message.kind,
        "host": message.host,
        **(role if message.role else {}),
        **({"rail": message.rail} if message.rail else {}),
        **({"rate": message.rate} if message.rate else {}),
        **({"switch_name": message.switch_name} if message.switch_name else {}),
        **({"port": message.port} if message.port else {}),
        **streams,
        **({_PARTS: parts} if parts else {}),
    }


def split_reply(group: JobGroup, host: str, call: SplitCall) -> Any:
    """The answer to a worker that called a split: all that its host is in, and which of it the split gave."""
    parts = [label for label in group.made_by(call) if host in group.parts[label].ports]
    return pb.SplitReply(description=description(group, host), parts=parts)


def notice(state: State, host: str) -> Any:
    """The notice that tells a member the state of its job."""
    return pb.Notice(
        epoch=state.epoch,
        description=description(state.group, host),
        complete=state.complete,
        trouble=state.trouble,
        removed=state.removed,
        cause=state.cause,
        lost=state.lost,
        keys=[
            pb.TermKey(gen=stream.gen, term=stream.latest[0], key=stream.latest[1])
            for plan in state.group.plans
            if host in plan.ports
            for stream in plan.streams
            if stream.term
        ],
    )


def job(watch: JobWatch) -> Any:
    """A job, for operators."""
    group = watch.record.group
    members = [
        pb.Member(host=host, state=seat.presence, description=description(group, host))
        for host, seat in watch.roster.seats.items()
    ]
    summary = group.describe_all()
    return pb.Job(
        name=group.name,
        kind=summary["kind"],
        workers=summary["workers"],
        root=summary["root"] or "",
        lanes=summary["lanes"],
        slots=summary["slots"],
        epoch=watch.record.epoch,
        state=watch.record.state,
        members=members,
        trouble=watch.state().trouble,
        rail=summary["rail"] or "",
        tree=summary["tree"],
        parts=[
            pb.JobPart(label=label, **{key: value for key, value in part.items() if value is not None})
            for label, part in summary.get(_PARTS, {}).items()
        ],
    )


def switch(agent: SwitchAgent) -> Any:
    """A switch, for operators."""
    return pb.SwitchStatus(
        name=agent.name,
        address=agent.address,
        state=agent.state,
        detail=agent.detail,
        restores=agent.restores,
        restore_seconds=agent.restore_seconds,
        repairs=agent.repairs,
        remark=agent.remark,
        comparisons=agent.comparisons,
    )
