"""Python messages and stubs of the controller, of role configs and of P4Runtime, by the protoc of grpcio-tools.

P4Runtime's descriptors come out of the `p4runtime` package in p4runtime-shell's environment: no `.proto` file of it is
kept here. The modules of that package are for a protobuf of 2021, and cannot be imported beside a present one.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet

from catchment.checkout import SHELL

CONTROLLER, ROLE_CONFIG = (Path(__file__).parents[1] / name for name in ("controller.proto", "role_config.proto"))
PACKAGE = "catchment.wire.generated"
P4RUNTIME = ("p4.config.v1.p4types", "p4.config.v1.p4info", "p4.v1.p4data", "p4.v1.p4runtime")
"""The files of P4Runtime as Python modules, those that others import first."""


class StubError(Exception):
    """protoc or a description is missing, or protoc refuses the description; carries what it said."""


def outputs() -> dict[str, str]:
    """File name -> text.

    Raises:
        StubError: grpcio-tools or p4runtime-shell's environment is missing, or protoc refuses a description.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        return {**_own(root / "own"), **_p4runtime(root / "p4runtime")}


def _own(root: Path) -> dict[str, str]:
    # Python imports by this path.
    package = root.joinpath(*PACKAGE.split("."))
    package.mkdir(parents=True)
    for source in (CONTROLLER, ROLE_CONFIG):
        (package / source.name).write_text(source.read_text("utf-8"), "utf-8")
    files = [str(package / source.name) for source in (CONTROLLER, ROLE_CONFIG)]
    _protoc(root, [f"-I{root}"], files, with_service=files[:1])
    return {path.name: path.read_text("utf-8") for path in package.glob("*.py")}


def _p4runtime(root: Path) -> dict[str, str]:
    root.mkdir()
    descriptors = root / "p4runtime.fds"
    descriptors.write_bytes(p4runtime_descriptors().SerializeToString())
    files = [f"{module.replace('.', '/')}.proto" for module in P4RUNTIME]
    _protoc(root, [f"--descriptor_set_in={descriptors}"], files, with_service=files[-1:])
    return {path.name: _moved(path.read_text("utf-8")) for path in root.rglob("*.py")}


def p4runtime_descriptors() -> FileDescriptorSet:
    """P4Runtime and what it imports, dependencies first (the order that protoc asks for).

    Raises:
        StubError: p4runtime-shell's environment is missing.
    """
    from google.protobuf import any_pb2  # noqa: PLC0415  two files of other packages that P4Runtime imports
    from google.rpc import status_pb2  # noqa: PLC0415

    result = FileDescriptorSet()
    for message in (any_pb2.DESCRIPTOR, status_pb2.DESCRIPTOR):
        message.CopyToProto(result.file.add())
    for module in P4RUNTIME:
        result.file.append(FileDescriptorProto.FromString(_serialized(module)))
    return result


def _serialized(module: str) -> bytes:
    """The descriptor inside a module that an old protoc generated, without running it."""
    name = f"{module.replace('.', '/')}_pb2.py"
    source = next(SHELL.glob(f"lib/python*/site-packages/{name}"), None)
    if source is None:
        raise StubError(f"no {name} in {SHELL}: run `make setup`")
    for node in ast.walk(ast.parse(source.read_text("utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "serialized_pb":
            return bytes(ast.literal_eval(node.value))
    raise StubError(f"{source} holds no descriptor: another version of p4runtime than controlplane/shell pins?")


def _moved(text: str) -> str:
    """Generated text, its imports and module names in our package."""
    for module in P4RUNTIME:
        package, _, name = module.rpartition(".")
        text = text.replace(f"from {package} import", f"from {PACKAGE} import")
        text = text.replace(f"'{package}.{name}_pb2'", f"'{PACKAGE}.{name}_pb2'")
    return text


def _protoc(root: Path, sources: Iterable[str], files: Iterable[str], *, with_service: Iterable[str]) -> None:
    command = [sys.executable, "-m", "grpc_tools.protoc", *sources]
    for options in ([f"--python_out={root}", *files], [f"--grpc_python_out={root}", *with_service]):
        run = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        if run.returncode:
            raise StubError(f"protoc refuses {', '.join(files)}; is grpcio-tools installed?\n{run.stderr.strip()}")
