"""What a person may choose: how the switch is found, and how floats become integers."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Self

from catchment.host.collectives import ABSENT, Block, Fixed, RailPolicy, Scaling, Whole
from catchment.host.collectives.calls import positive_nanoseconds
from catchment.host.collectives.errors import wrong

(
    JOB,
    CONTROLLER,
    TOKEN,
    TOKEN_FILE,
    CERTIFICATES,
    HOST,
    SCALING,
    PACKED,
    COMPANION,
    PROCESS_GROUP,
    LOCAL_SWITCH,
    ABSENCE,
    RAILS,
    RAIL_POLICY,
) = (
    f"CATCHMENT_{name}"
    for name in (
        "JOB",
        "CONTROLLER",
        "TOKEN",
        "TOKEN_FILE",
        "CERTIFICATES",
        "HOST",
        "SCALING",
        "PACKED",
        "COMPANION",
        "PROCESS_GROUP",
        "LOCAL_SWITCH",
        "ABSENT",
        "RAILS",
        "RAIL_POLICY",
    )
)


@dataclass(frozen=True, slots=True)
class ControllerAccess:
    """How a host joins a controller's job: its address, the job's name and token, own name, folder of certificates."""

    address: str
    job: str
    token: str
    host: str
    certificates: Path

    def __repr__(self) -> str:
        return f"ControllerAccess({self.address!r}, {self.job!r}, host={self.host!r})"  # the token is secret


_TAKEN: Final[tuple[tuple[str, Any, str], ...]] = (
    ("scaling", Scaling, "give Block, Fixed, Delayed or Whole"),
    ("job", Path | None, "give the Path of a job file"),
    ("controller", ControllerAccess | None, "give a ControllerAccess"),
    ("host", str | None, "give the host's name, a str"),
    ("companion", bool, "give True or False"),
    ("native", bool | None, "give True for the process group in C++, False for the one in Python, None for either"),
    ("rails", tuple, "give a tuple of the rails' names"),
    ("rail_policy", RailPolicy, f"give a RailPolicy: {', '.join(policy.name for policy in RailPolicy)}"),
    ("local_switch", str | None, "give a command with its arguments, a str"),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Give one as `pg_options` of `init_process_group` or `new_group`; without one, the environment says it all.

    Attributes:
        scaling: of floats, and whether their lanes are packed; the same on all ranks.
        job: file of a job that exists, as `catchment job show NAME --json` prints it.
        controller: of a job that the controller keeps.
        host: this host's name in the job file, where its addresses do not tell.
        companion: have gloo do what does not go through the switch; otherwise that raises.
        native: the process group in C++ (True), in Python (False), or C++ where it is built (None).
        absent: seconds that the switch of a job may be gone or silent while operations wait for it.
        rails: those of the job file's rails to use, in this order; all unless given. The same on all ranks.
        rail_policy: who decides how operations are split over them; the same on all ranks.
        local_switch: the command, with arguments, that starts a switch on this machine; the installed one unless given.

    Without job and controller the ranks are on one machine, and a switch is started for them.

    Raises:
        CollectiveError: kind ``argument``: a value is of another type, or does not go with another one.
    """

    scaling: Scaling = Block()  # noqa: RUF009  frozen
    job: Path | None = None
    controller: ControllerAccess | None = None
    host: str | None = None
    companion: bool = True
    native: bool | None = None
    absent: float = ABSENT
    rails: tuple[str, ...] = ()
    rail_policy: RailPolicy = RailPolicy.WATERFILL
    local_switch: str | None = None

    def __post_init__(self) -> None:
        for name, types, hint in _TAKEN:
            if not isinstance(value := getattr(self, name), types):
                raise wrong(f"Settings.{name} {value!r}", hint)
        if not all(isinstance(rail, str) for rail in self.rails):
            raise wrong(f"Settings.rails {self.rails!r}", "give a tuple of the rails' names")
        positive_nanoseconds("a switch that may be absent for", self.absent)
        if self.job is not None and self.controller is not None:
            raise wrong("a job file and a controller are given", "give one of them")
        if self.rails and self.job is None:
            raise wrong(f"rails {', '.join(self.rails)} without a job file", f"set {JOB} to the file of a job on rails")

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Read the environment variables of docs/reference/pytorch.md.

        Raises:
            CollectiveError: kind ``argument``: a value is wrong or missing.
        """
        controller = environment.get(CONTROLLER)
        job = environment.get(JOB)
        return cls(
            scaling=replace(
                _scaling(environment.get(SCALING, "block")), packed=_flag(environment, PACKED, default=False)
            ),
            job=Path(job) if job and not controller else None,
            controller=_access(controller, environment) if controller else None,
            host=environment.get(HOST),
            companion=_flag(environment, COMPANION, default=True),
            native=_native(environment.get(PROCESS_GROUP)),
            absent=_seconds(environment, ABSENCE, ABSENT),
            rails=_rails(environment.get(RAILS, "all")),
            rail_policy=_policy(environment.get(RAIL_POLICY, "waterfill")),
            local_switch=environment.get(LOCAL_SWITCH),
        )


def _scaling(text: str) -> Scaling:
    kind, _, value = text.partition(":")
    if kind == "block" and not value:
        return Block()
    if kind == "whole" and not value:
        return Whole()
    if kind == "fixed":
        try:
            exponent = int(value)
        except ValueError:
            exponent = 1000
        if -128 <= exponent <= 127:
            return Fixed(exponent)
    raise wrong(f"{SCALING}={text}", "give block, whole, or fixed:E with E from -128 to 127")


def _rails(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise wrong(f"{RAILS}={text}", "give all, or names of rails, comma between, each once")
    return () if names == ("all",) else names


def _policy(text: str) -> RailPolicy:
    known = {policy.name.lower(): policy for policy in RailPolicy}
    if text not in known:
        raise wrong(f"{RAIL_POLICY}={text}", f"give one of {', '.join(known)}")
    return known[text]


def _flag(environment: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = environment.get(name)
    if text is None:
        return default
    if text not in ("0", "1"):
        raise wrong(f"{name}={text}", "give 0 or 1")
    return text == "1"


def _seconds(environment: Mapping[str, str], name: str, otherwise: float) -> float:
    text = environment.get(name)
    if text is None:
        return otherwise
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise wrong(f"{name}={text}", "give a positive number of seconds")
    return seconds


def _native(text: str | None) -> bool | None:
    if text is None:
        return None
    if text not in ("c++", "python"):
        raise wrong(f"{PROCESS_GROUP}={text}", "give c++ or python")
    return text == "c++"


def _access(address: str, environment: Mapping[str, str]) -> ControllerAccess:
    missing = [name for name in (JOB, CERTIFICATES) if not environment.get(name)]
    if missing:
        raise wrong(f"{CONTROLLER} is set, but not {' and '.join(missing)}", "set them too: docs/reference/pytorch.md")
    return ControllerAccess(
        address=address,
        job=environment[JOB],
        token=_token(environment),
        host=environment.get(HOST) or socket.gethostname(),
        certificates=Path(environment[CERTIFICATES]),
    )


def _token(environment: Mapping[str, str]) -> str:
    if token := environment.get(TOKEN):
        return token
    file = environment.get(TOKEN_FILE)
    if not file:
        raise wrong(f"{CONTROLLER} is set, but neither {TOKEN} nor {TOKEN_FILE}", "`job create` gave the token")
    try:
        return Path(file).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise wrong(f"{TOKEN_FILE}={file} cannot be read: {error}", "name the file of `job create`") from None
