"""BMv2's simple_switch on a program, frame by frame over its message socket: no interfaces needed."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

AF_SP, NN_PAIR, NN_SOL_SOCKET, NN_RCVTIMEO, NN_RCVMAXSIZE = 1, 16, 0, 5, 16
PACKET_IN, PACKET_OUT = 3, 4
HEAD = struct.Struct("<iii")
STARTUP_S = 120.0


def missing() -> str | None:
    """Why there is no peer here, or None."""
    for tool in ("p4c-bm2-ss", "simple_switch"):
        if shutil.which(tool) is None:
            return f"{tool} is not on the PATH"
    return None if ctypes.util.find_library("nanomsg") else "the nanomsg library is not installed"


def compile_for_bmv2(source: Path) -> Path:
    """The JSON that p4c makes. Raises RuntimeError with p4c's words."""
    out = source.with_suffix(".json")
    command = ["p4c-bm2-ss", "--Wdisable", "-o", str(out), str(source)]
    result = subprocess.run(command, check=False, capture_output=True, text=True)
    if result.returncode != 0:
        raise RuntimeError(result.stderr)
    return out


class Bmv2Peer:
    """One simple_switch process; `close()` ends it."""

    def __init__(self, config: Path) -> None:
        folder = config.parent
        address = f"ipc://{folder}/{config.stem}.packets"
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            thrift = probe.getsockname()[1]
        command = [
            "simple_switch",
            "--packet-in",
            address,
            "--thrift-port",
            str(thrift),
            "--device-id",
            str(os.getpid()),
        ]
        command += ["--notifications-addr", f"ipc://{folder}/{config.stem}.notes", str(config)]
        self.log = (folder / f"{config.stem}.log").open("w+")
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log)
        self._nn = ctypes.CDLL(ctypes.util.find_library("nanomsg"))
        self._socket = self._nn.nn_socket(AF_SP, NN_PAIR)
        self._set(NN_RCVMAXSIZE, -1)
        self._nn.nn_connect(self._socket, address.encode())
        self._wait_for(thrift)

    def _wait_for(self, port: int) -> None:
        """Its Thrift server answers once the program is loaded."""
        end = time.monotonic() + STARTUP_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is not None or time.monotonic() > end:
                    self.log.seek(0)
                    raise RuntimeError(f"simple_switch did not start: {self.log.read()}") from None
                time.sleep(0.02)

    def _set(self, option: int, value: int) -> None:
        number = ctypes.c_int(value)
        self._nn.nn_setsockopt(self._socket, NN_SOL_SOCKET, option, ctypes.byref(number), ctypes.sizeof(number))

    def inject(self, port: int, frame: bytes, expected: int, patience_s: float = 60.0) -> list[tuple[int, bytes]]:
        """What leaves, sorted. Waits for `expected` frames; what comes later is found with the next frame."""
        message = HEAD.pack(PACKET_IN, port, len(frame)) + frame
        self._nn.nn_send(self._socket, message, len(message), 0)
        out = []
        buffer = ctypes.create_string_buffer(20000)
        self._set(NN_RCVTIMEO, int(patience_s * 1000))
        while len(out) < expected:
            size = self._nn.nn_recv(self._socket, buffer, len(buffer), 0)
            if size < 0:
                break
            kind, leaves, length = HEAD.unpack_from(buffer.raw)
            if kind == PACKET_OUT:
                out.append((leaves, buffer.raw[HEAD.size : HEAD.size + length]))
        return sorted(out)

    def close(self) -> None:
        self._nn.nn_close(self._socket)
        self.process.terminate()
        self.process.wait()
        self.log.close()
