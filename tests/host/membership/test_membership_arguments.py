"""What a member of a job gives of another type than is taken is refused at once, before the controller is asked."""

from __future__ import annotations

import contextlib
import math
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from catchment.host.membership import Credentials, Guest, Membership, MembershipError
from catchment.host.membership.given import seconds_of

FILES = Credentials(Path("a"), Path("b"), Path("c"))
ASKED: dict[str, Any] = {"controller": "h:1", "job": "j", "host": "h", "token": "t", "credentials": FILES}
NO_TIME: list[Any] = [math.nan, "3", None, [], True, np.float64("nan")]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"controller": 5}, "controller is 5: give a str"),
        ({"job": None}, "job is None: give a str"),
        ({"host": b"h"}, "host is b'h': give a str"),
        ({"token": b"a secret"}, "token is a bytes: give a str"),
        ({"credentials": Path("certificates")}, r"credentials .*Path\('certificates'\): give Credentials"),
        *(({"timeout": timeout}, "a timeout of .*: give a number of seconds") for timeout in NO_TIME),
    ],
)
def test_who_joins_says_what_is_taken(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(MembershipError, match=words):
        Membership.join(**{**ASKED, **wrong})


def test_a_token_is_not_shown() -> None:
    with pytest.raises(MembershipError) as caught:
        Membership.join(**{**ASKED, "token": b"a secret"})
    assert "secret" not in str(caught.value)


def test_credentials_are_files() -> None:
    with pytest.raises(MembershipError, match="certificate is 'b': give the Path of a file in PEM"):
        Credentials(Path("a"), "b", Path("c"))  # type: ignore[arg-type]
    with pytest.raises(MembershipError, match="folder is '/certificates': give the Path of the certificates' folder"):
        Credentials.of("/certificates", "h")  # type: ignore[arg-type]
    with pytest.raises(MembershipError, match="host is 5: give a str"):
        Credentials.of(Path("/certificates"), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"color": "red"}, "cannot split job j by number 0, color 'red'"),
        ({"color": 1.5}, "cannot split job j by number 0, color 1.5"),
        ({"key": 1 << 64}, "cannot split job j by .*key 18446744073709551616"),
        ({"number": -1}, "cannot split job j by number -1"),
        ({"among": 5}, "cannot split job j by .*among 5"),
        ({"among": [0, "a"]}, r"cannot split job j by .*among \[0, 'a'\]"),
        *(({"timeout": timeout}, "a timeout of .*: give a number of seconds") for timeout in NO_TIME),
    ],
)
def test_a_split_says_what_is_taken(wrong: dict[str, Any], words: str) -> None:
    guest = Guest("h:1", FILES, "session", "j", 1)
    with pytest.raises(MembershipError, match=words):
        guest.split(**{"number": 0, "color": 1, "among": [0, 1], "timeout": 1.0, **wrong})


@pytest.mark.parametrize(
    ("told", "seconds"), [(-1, 0), (0, 0), (2.5, 2.5), (1e30, 1e8), (math.inf, 1e8), (10**400, 1e8)]
)
def test_any_time_is_one_that_can_be_waited(told: float, seconds: float) -> None:
    assert seconds_of("a timeout of", told) == seconds


@pytest.mark.parametrize(("told", "seconds"), [(Decimal("2.5"), 2.5), (-1, 0), (math.inf, 1e8), (np.float32(2.5), 2.5)])
def test_a_split_is_asked_for_with_a_time_that_can_be_waited(
    told: Any, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = Mock(Split=Mock(side_effect=KeyboardInterrupt))
    monkeypatch.setattr(Guest, "_stub", lambda _: contextlib.nullcontext(stub))
    with pytest.raises(KeyboardInterrupt):
        Guest("h:1", FILES, "session", "j", 1).split(0, 1, among=[0, 1], timeout=told)
    (request,), options = stub.Split.call_args
    assert request.timeout == seconds < options["timeout"]
