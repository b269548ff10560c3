"""The error of the controller and of what talks to it."""

from catchment.controlplane.errors import ControlPlaneError


class ControllerError(ControlPlaneError):
    """The controller cannot start or be reached, or refuses a request; says what to do."""


class RefusedError(ControllerError):
    """A peer that may not do what it asks for."""
