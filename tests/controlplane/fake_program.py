"""P4Info of a program with the tables that the control plane mirrors, and some of every match kind."""

from __future__ import annotations

from typing import Any

from catchment.wire.generated import p4info_pb2

Match = p4info_pb2.MatchField
_ACTION, _TABLE, _COUNTER, _DIRECT, _REGISTER = 0x01, 0x02, 0x12, 0x13, 0x16


class _Writer:
    def __init__(self) -> None:
        self.message = p4info_pb2.P4Info()
        self.message.pkg_info.name = "fake.p4"
        self._next = 1

    def _identify(self, entry: Any, prefix: int, name: str) -> int:
        entry.preamble.id = prefix << 24 | self._next
        entry.preamble.name = name
        entry.preamble.alias = name.rsplit(".", 1)[-1]
        self._next += 1
        return int(entry.preamble.id)

    def action(self, name: str, **params: int) -> int:
        entry = self.message.actions.add()
        for number, (param, width) in enumerate(params.items(), start=1):
            entry.params.add(id=number, name=param, bitwidth=width)
        return self._identify(entry, _ACTION, name)

    def table(self, name: str, keys: dict[str, tuple[int, Any]], actions: list[int]) -> int:
        entry = self.message.tables.add(size=1024)
        for number, (key, (width, kind)) in enumerate(keys.items(), start=1):
            entry.match_fields.add(id=number, name=key, bitwidth=width, match_type=kind)
        for action in actions:
            entry.action_refs.add(id=action)
        return self._identify(entry, _TABLE, name)

    def counter(self, name: str, size: int) -> None:
        self._identify(self.message.counters.add(size=size), _COUNTER, name)

    def direct_counter(self, name: str, table: int) -> None:
        entry = self.message.direct_counters.add(direct_table_id=table)
        self._identify(entry, _DIRECT, name)
        self.message.tables[-1].direct_resource_ids.append(entry.preamble.id)

    def register(self, name: str, size: int, width: int) -> None:
        entry = self.message.registers.add(size=size)
        entry.type_spec.bitstring.bit.bitwidth = width
        self._identify(entry, _REGISTER, name)


def fake_p4info() -> Any:
    """The `p4.config.v1.P4Info`."""
    w = _Writer()
    worker = w.action(
        "In.jobs.worker",
        mode=8,
        wid=8,
        own=32,
        base=32,
        mask=32,
        full=32,
        job=16,
        group=16,
        up_port=9,
        up_wid=8,
        src_ip=32,
        src_udp=16,
    )
    root = w.action("In.jobs.root", mode=8, job=16, group=16, src_ip=32, src_udp=16)
    exact_pair = {"gen": (16, Match.EXACT), "port": (9, Match.EXACT)}
    jobs = w.table("In.jobs.jobs", exact_pair, [worker, root])
    w.direct_counter("In.jobs.job_packets", jobs)
    rewrite = w.action("Eg.receivers.rewrite", dst_mac=48, dst_ip=32, dst_udp=16, src_mac=48, src_ip=32)
    w.table("Eg.receivers.receivers", exact_pair, [rewrite])
    answer = w.action("In.addresses.answer", mac=48)
    w.table("In.addresses.own_addresses", {"target": (32, Match.EXACT)}, [answer])
    bound = [w.action("In.guard.host", mac=48, ip=32), w.action("In.guard.trunk"), w.action("In.guard.stranger")]
    w.table("In.guard.bindings", {"port": (9, Match.EXACT)}, bound)
    guarded = [w.action("In.guard.own"), w.action("In.guard.other")]
    w.table("In.guard.switch_addresses", {"address": (32, Match.EXACT)}, guarded)
    forward, flood = w.action("In.l2.forward", port=9), w.action("In.l2.flood", group=16)
    w.table("In.l2.l2", {"dst": (48, Match.EXACT)}, [forward, flood])
    for pipe, table in (("In", "ingress_faults"), ("Eg", "egress_faults")):
        drop = w.action(f"{pipe}.faults.maybe_drop", threshold=32)
        w.table(f"{pipe}.faults.{table}", {"port": (9, Match.EXACT), "type": (4, Match.TERNARY)}, [drop])
    kinds = {
        "ipv4.dst_ip": (32, Match.LPM),
        "flags": (8, Match.TERNARY),
        "port": (16, Match.RANGE),
        "vlan": (12, Match.OPTIONAL),
    }
    w.table("In.acl.everything", kinds, [forward])
    w.counter("drops", 32)
    w.counter("refused", 16384)
    w.register("In.slot_tag.tag", 64, 48)
    w.register("In.slot_workers.bitmap", 64, 32)
    w.register("In.heartbeats.worker0.heartbeat", 64, 80)
    return w.message
