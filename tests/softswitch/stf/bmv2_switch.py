"""p4c and simple_switch_grpc, where both are on the PATH: frames by BMv2's own gRPC packet stream, tables by its CLI.

No interfaces and no privileges are needed. BMv2 says when a frame has left, never that none will: `collect` waits for
as many frames as somebody expects, and then for a pause.
"""

from __future__ import annotations

import os
import queue
import re
import shutil
import subprocess
from pathlib import Path

import grpc
from bmv2_packets import PacketStream

from catchment.sim.lab.held_address import HeldAddress

TOOLS = ("p4c-bm2-ss", "simple_switch_grpc", "simple_switch_CLI")
_PROMPT = "RuntimeCmd: "


def missing() -> str | None:
    """What is not installed; None if all is."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"not on the PATH: {', '.join(absent)} (docs/howto/bmv2.md)" if absent else None


def compile_program(program: Path, directory: Path, include_dirs: tuple[Path, ...] = ()) -> Path:
    """The program as BMv2's JSON. CalledProcessError when p4c refuses."""
    out = directory / f"{program.stem}.json"
    includes = [f"-I{d}" for d in include_dirs]
    subprocess.run(["p4c-bm2-ss", *includes, "-o", out, program], check=True, capture_output=True, text=True)
    return out


class Bmv2Switch:
    """One simple_switch_grpc process with one program, and its CLI."""

    def __init__(self, json_path: Path, directory: Path, device: int = 1) -> None:
        self._held = [HeldAddress() for _ in range(3)]
        thrift, control, data = self._held
        self._log = (directory / "bmv2.log").open("wb")
        self.process = subprocess.Popen(
            [
                *("simple_switch_grpc", "--device-id", str(device), "--thrift-port", str(thrift.port)),
                *("--notifications-addr", f"ipc://{directory}/bmv2.ipc", str(json_path), "--"),
                *("--grpc-server-addr", control.address, "--dp-grpc-server-addr", data.address),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._channel = grpc.insecure_channel(data.address)
        self._wait_ready(directory)
        self._packets = PacketStream(self._channel, device)
        self._cli = subprocess.Popen(
            ["simple_switch_CLI", "--thrift-port", str(thrift.port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        self._answer()

    def _wait_ready(self, directory: Path) -> None:
        ready = grpc.channel_ready_future(self._channel)
        for _ in range(120):
            try:
                ready.result(timeout=0.5)
                return
            except grpc.FutureTimeoutError:
                if self.process.poll() is not None:
                    said = (directory / "bmv2.log").read_text(errors="replace")[:300]
                    raise RuntimeError(f"simple_switch_grpc ended: {said}") from None
        raise RuntimeError("simple_switch_grpc does not answer")

    def _answer(self) -> str:
        assert self._cli.stdout is not None
        text = b""
        while not text.endswith(_PROMPT.encode()):
            more = os.read(self._cli.stdout.fileno(), 65536)
            if not more:
                raise RuntimeError(f"simple_switch_CLI ended: {text.decode(errors='replace')}")
            text += more
        return text.decode(errors="replace").removesuffix(_PROMPT)

    def command(self, line: str) -> str:
        """One command of simple_switch_CLI; its answer. RuntimeError when it says that it failed."""
        assert self._cli.stdin is not None
        self._cli.stdin.write(line.encode() + b"\n")
        self._cli.stdin.flush()
        answer = self._answer()
        if re.search(r"^(Error|Invalid|\*\*\*)", answer, re.MULTILINE):
            raise RuntimeError(f"{line}: {answer.strip()}")
        return answer

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def send(self, port: int, frame: bytes) -> None:
        """A frame comes in."""
        self._packets.send(port, frame)

    def collect(self, pause: float, at_least: int, patience: float) -> list[tuple[int, bytes]]:
        """What left, until nothing more does for `pause` seconds; up to `patience` while fewer than `at_least` came."""
        out: list[tuple[int, bytes]] = []
        while True:
            try:
                out.append(self._packets.receive(timeout=pause if len(out) >= at_least else patience))
            except queue.Empty:
                return out

    def close(self) -> None:
        """Ends the processes."""
        self._packets.close()
        self._channel.close()
        for process in (self._cli, self.process):
            process.terminate()
            process.wait(timeout=120)
        self._log.close()
        for held in self._held:
            held.close()
