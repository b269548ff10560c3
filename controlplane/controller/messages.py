"""Values of ours as messages of wire/controller.proto."""

from __future__ import annotations

from typing import Any

from catchment.controlplane.controller.job_watch import JobWatch, State
from catchment.controlplane.controller.switches import SwitchAgent
from catchment.controlplane.jobs import JobPlan
from catchment.wire.generated import controller_pb2 as pb


def description(plan: JobPlan, host: str) -> Any:
    """What the endpoint of a host needs: `JobPlan.describe` as a message."""
    description = plan.describe(host)
    streams = [pb.Stream(name=stream.name, **description[stream.name]) for stream in plan.streams]
    return pb.Description(
        job=description["job"],
        kind=description["kind"],
        host=host,
        role=description["role"],
        wid=description["wid"],
        local=_address(description["local"]),
        switch=_address(description["switch"]),
        streams=streams,
        port=description.get("port", ""),
    )


def _address(pair: list[Any]) -> Any:
    return pb.Address(ip=pair[0], port=pair[1])


def described(message: Any) -> dict[str, Any]:
    """The opposite of `description`: as `JobPlan.describe`."""
    streams = {
        s.name: {key: getattr(s, key) for key in ("gen", "workers", "slots", "base_seq", "lanes", "param_bytes")}
        for s in message.streams
    }
    return {
        "job": message.job,
        "kind": message.kind,
        "host": message.host,
        "role": message.role,
        "wid": message.wid,
        "local": [message.local.ip, message.local.port],
        "switch": [message.switch.ip, message.switch.port],
        **({"port": message.port} if message.port else {}),
        **streams,
    }


def notice(state: State, host: str) -> Any:
    """The notice that tells a member the state of its job."""
    return pb.Notice(
        epoch=state.epoch,
        description=description(state.plan, host),
        complete=state.complete,
        trouble=state.trouble,
        removed=state.removed,
        cause=state.cause,
    )


def job(watch: JobWatch) -> Any:
    """A job, for operators."""
    plan = watch.record.plan
    members = [
        pb.Member(host=host, state=seat.presence, description=description(plan, host))
        for host, seat in watch.roster.seats.items()
    ]
    return pb.Job(
        name=plan.name,
        kind=plan.kind,
        workers=plan.workers,
        root=plan.root or "",
        lanes=plan.lanes,
        slots=plan.slots,
        epoch=watch.record.epoch,
        state=watch.record.state,
        members=members,
        trouble=watch.state().trouble,
        rail=plan.rail or "",
        tree=[branch.switch for branch in plan.tree],
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
