"""Switches of an emulated network: the embedded one or BMv2's, on given interfaces."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from catchment.controlplane.client.channel import parse
from catchment.controlplane.networks.address import SwitchAddress
from catchment.controlplane.networks.state import NetworkError, admin_socket, made_run_folder, remove_dead_sockets
from catchment.controlplane.programs.cache import cache_folder
from catchment.controlplane.topology import Target
from catchment.sim.lab.held_address import HeldAddress
from catchment.softswitch.admin import SwitchAdmin, SwitchAdminError
from catchment.softswitch.process import SwitchProcessError, command_line, is_ready_line
from catchment.softswitch.watched_process import WatchedProcess
from catchment.wire.service import (
    AUTHORITY_FILE,
    CONTROLLER_NAME,
    OPERATOR_NAME,
    REVOCATIONS_FOLDER,
    credential_files,
    switch_name,
)


def embedded_command(address: str, device_id: int, ports: Mapping[int, str], name: str = "") -> list[str]:
    """Command line of the embedded switch.

    Args:
        address: where its P4Runtime server listens, as clients spell it (`networks.address`).
        device_id: P4Runtime device id.
        ports: port number -> network interface or shm:PATH.
        name: of the switch, which its certificate proves; needed for an address with TLS.

    Raises:
        NetworkError: it is not built.
    """
    parts = parse(address)
    # The switch runs only code that is already on its machine; a client names it.
    programs = cache_folder()
    programs.mkdir(parents=True, exist_ok=True)
    admin = admin_socket(address)
    operator = [] if admin is None else ["--admin", str(admin)]
    try:
        command = command_line(grpc=parts.target, device_id=device_id, ports=ports, program_dir=programs)
    except SwitchProcessError as error:
        raise NetworkError(str(error)) from None
    return [*command, *operator, *_tls_options(parts, name)]


def _tls_options(address: SwitchAddress, name: str) -> list[str]:
    """Mutual TLS: operators and the controller get in, with certificates of the folder's authority."""
    if address.certificates is None:
        return []
    certificate, key = (str(address.certificates / file) for file in credential_files(switch_name(name)))
    clients = [option for client in (OPERATOR_NAME, CONTROLLER_NAME) for option in ("--tls-client-name", client)]
    authority = str(address.certificates / AUTHORITY_FILE)
    lists = address.certificates / REVOCATIONS_FOLDER
    revoked = ["--tls-crl-dir", str(lists)] if lists.is_dir() else []
    return ["--tls-cert", certificate, "--tls-key", key, "--tls-client-ca", authority, *revoked, *clients]


def bmv2_command(address: str, device_id: int, ports: Mapping[int, str], _name: str = "") -> list[str]:
    """Command line of BMv2, started without a program; it listens at a plain TCP port.

    Raises:
        NetworkError: it is not on the PATH.
    """
    binary = shutil.which("simple_switch_grpc")
    if binary is None:
        raise NetworkError("simple_switch_grpc is not on the PATH; see docs/howto/bmv2.md, or use target: embedded")
    interfaces = [part for port, name in ports.items() for part in ("-i", f"{port}@{name}")]
    with HeldAddress() as free:
        thrift = str(free.port)
    # Its default socket is named after the device id: two networks at once would share it.
    notifications = made_run_folder() / f"bmv2-{address.rpartition(':')[2]}.ipc"
    # It does not flush the line that says it listens, so its output is made line by line from outside.
    return [
        shutil.which("stdbuf") or "stdbuf", "-oL",
        binary, "--device-id", str(device_id), *interfaces, "--no-p4", "--thrift-port", thrift,
        "--notifications-addr", f"ipc://{notifications}",
        "--", "--grpc-server-addr", address,
    ]  # fmt: skip


COMMANDS = {Target.EMBEDDED: embedded_command, Target.BMV2: bmv2_command}


def is_ready(line: str) -> bool:
    """Whether a switch says with this line that its P4Runtime server listens."""
    return is_ready_line(line) or line.startswith("Server listening on ")


def splitting_ports(address: str) -> set[int]:
    """The ports of a switch that take UDP which its hosts leave merged; none unless the switch says so."""
    path = admin_socket(address)
    if path is None:
        return set()
    try:
        with SwitchAdmin(path) as admin:
            return {port["port"] for port in admin.ports() if port["merged_udp"]}
    except SwitchAdminError:  # another kind of switch
        return set()


def start_switch(name: str, command: list[str], *, log: Path, environment: Mapping[str, str]) -> WatchedProcess:
    """Start a switch and wait until its P4Runtime server listens.

    Args:
        name: the switch's name, for messages.
        command: what to run, from one of COMMANDS.
        log: file that takes its output.
        environment: of the process.

    Raises:
        NetworkError: it ended, or does not listen in time; quotes the end of its log.
    """
    remove_dead_sockets()
    return WatchedProcess(
        command, name=f"switch {name}", is_ready=is_ready, error=NetworkError, log=log, environment=environment
    )
