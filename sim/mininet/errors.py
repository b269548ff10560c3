"""The error of an emulated network."""

from controlplane.errors import ControlPlaneError


class NetworkError(ControlPlaneError):
    """An emulated network could not be started, used or removed; says what to do."""
