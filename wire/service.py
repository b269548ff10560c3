"""What the controller's service and its clients agree on beside controller.proto: the names that certificates prove."""

from __future__ import annotations

CONTROLLER_NAME = "catchment-controller"
OPERATOR_NAME = "operator"
AUTHORITY_FILE = "ca.crt"
REVOCATIONS_FOLDER = "revocations"
"""The folder of the authority's revocation lists, in a folder of credentials."""


def host_name(host: str) -> str:
    """The name that a host proves."""
    return f"host:{host}"


def switch_name(switch: str) -> str:
    """The name that a switch proves."""
    return f"switch:{switch}"


def credential_files(name: str) -> tuple[str, str]:
    """File names of a party's certificate and private key in a folder of credentials."""
    stem = name.replace(":", "-")
    return f"{stem}.crt", f"{stem}.key"
