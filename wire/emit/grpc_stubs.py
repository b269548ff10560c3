"""Python messages and stubs of the controller's gRPC service, by protoc."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "controller.proto"
_OUTPUTS = ("controller_pb2.py", "controller_pb2_grpc.py")
_PLUGIN = "grpc_python_plugin"


class StubError(Exception):
    """protoc is missing or refuses the description; carries what it said."""


def outputs() -> dict[str, str]:
    """File name -> text.

    Raises:
        StubError: protoc is missing or refuses the description.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        # Python imports by this path.
        package = root / "catchment" / "wire" / "generated"
        package.mkdir(parents=True)
        copy = package / SOURCE.name
        copy.write_text(SOURCE.read_text("utf-8"), "utf-8")
        command = [
            "protoc", f"-I{root}", f"--python_out={root}", f"--grpc_out={root}",
            f"--plugin=protoc-gen-grpc={_find(_PLUGIN)}", str(copy),
        ]  # fmt: skip
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise StubError("protoc is not installed; run `make setup`") from None
        if run.returncode:
            raise StubError(f"protoc refuses {SOURCE}:\n{run.stderr.strip()}")
        return {output: (package / output).read_text("utf-8") for output in _OUTPUTS}


def _find(program: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise StubError(f"{program} is not installed; run `make setup`")
    return found
