"""What callers give, refused in words where it is of another type than is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from catchment.host.given_numbers import LONGEST, as_real
from catchment.host.membership.errors import MembershipError


def seconds_of(what: str, timeout: Any) -> float:
    """Seconds to wait: a timeout, at least 0, at most three years.

    Args:
        what: precedes the number in the error.
        timeout: what a caller gave.

    Raises:
        MembershipError: it is NaN, or no number.
    """
    seconds = as_real(timeout)
    if seconds is None:
        raise MembershipError(f"{what} {timeout!r}: give a number of seconds")
    return float(min(max(seconds, 0), LONGEST))


def check_texts(texts: Mapping[str, Any], *, secret: str = "") -> None:
    """Whether all of them are str; the one named `secret` is not shown.

    Raises:
        MembershipError: one is not.
    """
    for name, value in texts.items():
        if not isinstance(value, str):
            shown = f"a {type(value).__name__}" if name == secret else f"{value!r:.80}"
            raise MembershipError(f"{name} is {shown}: give a str")
