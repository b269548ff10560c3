"""A program compiled by p4c and run by simple_switch_grpc, where both are on the PATH.

Frames go in and out over BMv2's own gRPC packet stream: no interfaces, no privileges.
"""

from __future__ import annotations

import queue
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
from bmv2_packets import PacketStream
from frame_builder import SWITCH_IP, arp
from google.protobuf import text_format
from p4runtime_rows import Names
from scenarios import Build
from switch_rows import rows
from targets import Output

from catchment.sim.golden.switch_tables import Tables
from catchment.sim.lab.held_address import HeldAddress
from catchment.wire.generated import p4info_pb2, p4runtime_pb2, p4runtime_pb2_grpc

DEVICE = 1
FENCE_PORTS = range(500, 504)  # egress thread of a port: port mod 4
ELECTION = p4runtime_pb2.Uint128(high=0, low=1)


def _missing(*tools: str) -> str | None:
    absent = [tool for tool in tools if shutil.which(tool) is None]
    return f"not on the PATH: {', '.join(absent)} (docs/howto/bmv2.md)" if absent else None


def missing_compiler() -> str | None:
    """Says that p4c is not installed; None if it is."""
    return _missing("p4c-bm2-ss")


def missing() -> str | None:
    """What of p4c and BMv2 is not installed; None if all is."""
    return _missing("p4c-bm2-ss", "simple_switch_grpc")


def compile_program(build: Build, directory: Path) -> tuple[Path, Path]:
    """(JSON, P4Info text) of the program.  CalledProcessError when p4c refuses."""
    json_path, info_path = directory / f"{build.program}.json", directory / f"{build.program}.p4info.txtpb"
    subprocess.run(
        [
            "p4c-bm2-ss",
            "--std",
            "p4-16",
            *(f"-D{k}={v}" for k, v in build.defines.items()),
            "-o",
            json_path,
            "--p4runtime-files",
            info_path,
            build.source,
        ],
        check=True,
        capture_output=True,
        text=True,
    )
    return json_path, info_path


def fence_frames() -> list[tuple[int, bytes]]:
    """(port, frame): an ARP request for the switch through each of BMv2's egress threads."""
    return [(port, arp(1, port=port & 0xFF, target_ip=SWITCH_IP)) for port in FENCE_PORTS]


def with_fence(tables: Tables) -> Tables:
    """The same tables with the fence's ports bound, so that they may send where strangers may not."""
    return replace(tables, bindings=tables.bindings | dict.fromkeys(FENCE_PORTS))


class Bmv2Target:
    """One simple_switch_grpc process."""

    def __init__(self, build: Build, directory: Path) -> None:
        json_path, info_path = compile_program(build, directory)
        self.info = text_format.Parse(info_path.read_text(), p4info_pb2.P4Info())
        self.names = Names(self.info)
        self._held = [HeldAddress() for _ in range(3)]
        control, data, thrift = self._held
        self._log = (directory / "bmv2.log").open("wb")
        self.process = subprocess.Popen(
            [
                "simple_switch_grpc",
                "--no-p4",
                "--device-id",
                str(DEVICE),
                "--thrift-port",
                str(thrift.port),
                "--",
                "--grpc-server-addr",
                control.address,
                "--dp-grpc-server-addr",
                data.address,
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._commands: queue.Queue[Any] = queue.Queue()
        self._channels = [grpc.insecure_channel(held.address) for held in (control, data)]
        for channel in self._channels:
            grpc.channel_ready_future(channel).result(timeout=60)
        self._stub = p4runtime_pb2_grpc.P4RuntimeStub(self._channels[0])
        self._become_primary()
        self._set_pipeline(json_path)
        self._packets = PacketStream(self._channels[1], DEVICE)

    def _become_primary(self) -> None:
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = DEVICE
        request.arbitration.election_id.CopyFrom(ELECTION)
        self._commands.put(request)
        self._stream = self._stub.StreamChannel(iter(self._commands.get, None))
        assert next(self._stream).arbitration.status.code == 0

    def _set_pipeline(self, json_path: Path) -> None:
        request = p4runtime_pb2.SetForwardingPipelineConfigRequest(device_id=DEVICE, election_id=ELECTION)
        request.action = request.VERIFY_AND_COMMIT
        request.config.p4info.CopyFrom(self.info)
        request.config.p4_device_config = json_path.read_bytes()
        self._stub.SetForwardingPipelineConfig(request)

    def _write(self, updates: list[p4runtime_pb2.Update]) -> None:
        request = p4runtime_pb2.WriteRequest(device_id=DEVICE, election_id=ELECTION, updates=updates)
        self._stub.Write(request)

    def load(self, tables: Tables) -> None:
        updates = []
        for group, ports in tables.groups.items():
            update = p4runtime_pb2.Update(type=p4runtime_pb2.Update.INSERT)
            entry = update.entity.packet_replication_engine_entry.multicast_group_entry
            entry.multicast_group_id = group
            for instance, port in enumerate(ports, start=1):
                entry.replicas.add(egress_port=port, instance=instance)
            updates.append(update)
        for row in rows(with_fence(tables)):
            kind = p4runtime_pb2.Update.INSERT if row.match else p4runtime_pb2.Update.MODIFY
            update = p4runtime_pb2.Update(type=kind)
            update.entity.table_entry.CopyFrom(self.names.entry(row))
            updates.append(update)
        self._write(updates)

    def run(self, traffic: list[tuple[int, bytes]], expected: list[Output]) -> list[Output]:
        """Waits for as many frames as the model sent; what nobody expected shows up in a later frame's output."""
        outputs: list[Output] = []
        for (port, frame), want in zip(traffic, expected, strict=True):
            self._packets.send(port, frame)
            output: Output = []
            deadline = time.monotonic() + 60
            while len(output) < len(want) and time.monotonic() < deadline:
                try:
                    output.append(self._packets.receive(timeout=deadline - time.monotonic()))
                except queue.Empty:
                    break
            outputs.append(output)
        self._fence()
        return outputs

    def _fence(self) -> None:
        """Wait until everything before has left or is counted: one ARP answer through each of BMv2's egress threads."""
        for port, frame in fence_frames():
            self._packets.send(port, frame)
        answers = [self._packets.receive(timeout=60)[0] for _ in FENCE_PORTS]
        assert sorted(answers) == list(FENCE_PORTS), f"frames that nobody expected left ports {answers}"

    def _read(self, entity: p4runtime_pb2.Entity) -> Iterator[p4runtime_pb2.Entity]:
        request = p4runtime_pb2.ReadRequest(device_id=DEVICE, entities=[entity])
        for answer in self._stub.Read(request):
            yield from answer.entities

    def drops(self) -> dict[int, int]:
        return self._counter("drops")

    def refused(self) -> dict[tuple[int, int], int]:
        return {divmod(index, 32): count for index, count in self._counter("refused").items()}

    def _counter(self, name: str) -> dict[int, int]:
        [counter] = [c for c in self.info.counters if c.preamble.name == name]
        entity = p4runtime_pb2.Entity()
        entity.counter_entry.counter_id = counter.preamble.id
        cells = (e.counter_entry for e in self._read(entity))
        return {c.index.index: c.data.packet_count for c in cells if c.data.packet_count}

    def job_packets(self) -> dict[tuple[int, int], int]:
        entity = p4runtime_pb2.Entity()
        entity.direct_counter_entry.table_entry.table_id = self.names.tables["jobs"].preamble.id
        counted = {}
        for found in self._read(entity):
            cell = found.direct_counter_entry
            gen, port = (int.from_bytes(m.exact.value, "big") for m in cell.table_entry.match)
            if cell.data.packet_count:
                counted[(gen, port)] = cell.data.packet_count
        return counted

    def close(self) -> None:
        self._packets.close()
        self._commands.put(None)
        for channel in self._channels:
            channel.close()
        self.process.terminate()
        self.process.wait(timeout=120)
        self._log.close()
        for held in self._held:
            held.close()
