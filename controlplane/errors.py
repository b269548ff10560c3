"""The root of every error that the control plane raises on purpose."""


class ControlPlaneError(Exception):
    """Something an operator can act on; the message says what, where and what to do.

    The command line shows these as one message without a traceback; anything else that escapes is
    a bug of ours.
    """
