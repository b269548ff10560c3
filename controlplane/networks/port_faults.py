"""The faults of embedded switches' ports, over the sockets that those give this machine's operators."""

from __future__ import annotations

from collections.abc import Mapping

from catchment.controlplane.errors import ControlPlaneError
from catchment.controlplane.networks.state import admin_socket
from catchment.softswitch.admin import SwitchAdmin, SwitchAdminError

OFF = "off"


class SwitchPorts:
    """A `catchment.controlplane.state.faults.PortFaults`."""

    def read(self, address: str) -> dict[int, str]:
        """Port -> faults in force, of the switch with this gRPC address."""
        path = admin_socket(address)
        if path is None or not path.is_socket():
            return {}
        try:
            with SwitchAdmin(path) as admin:
                return {port["port"]: port["faults"] for port in admin.ports() if port["faults"] != OFF}
        except SwitchAdminError:
            return {}  # left behind by a switch that was killed

    def write(self, address: str, faults: Mapping[int, str]) -> None:
        """Put faults in force (`off`: none).

        Raises:
            ControlPlaneError: there is no such switch on this machine, or it refuses.
        """
        path = admin_socket(address)
        if path is None or not path.is_socket():
            raise ControlPlaneError(
                f"the switch at {address} has no admin socket on this machine (BMv2 never has): duplication, "
                "reordering and delay are faults of the embedded switch's ports; --loss alone works on every switch"
            )
        try:
            with SwitchAdmin(path) as admin:
                for port, spec in faults.items():
                    admin.set_faults(port, spec)
        except SwitchAdminError as error:
            raise ControlPlaneError(str(error)) from None
