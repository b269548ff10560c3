"""The error of membership."""


class MembershipError(Exception):
    """The controller cannot be reached, refuses this host, or has counted it out; says what to do."""
