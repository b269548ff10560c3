"""A member of a job in a JSON file, as `catchment job show NAME --json` writes it: what opens its endpoints."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from catchment.host.errors import EndpointError
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.json_file import read_json

if TYPE_CHECKING:
    from catchment.host import Endpoint

TODO: Final = "write it with `catchment job show NAME --json`"
_STREAMS: Final = {"peer": ("sums",), "worker": ("gradients", "parameters"), "root": ("gradients", "parameters")}
"""Role -> the streams of its job."""
_SAID: Final = {str: "a string", int: "a whole number", list: "a list", dict: "an object"}


class Member:
    """What a job file says of one host in one job.

    Attributes:
        role: "peer", "worker" or "root".
    """

    def __init__(self, where: str, facts: Any, roles: Collection[str]) -> None:
        """Look at every field that an endpoint needs.

        Args:
            where: file, host and part, for messages.
            facts: what the file has.
            roles: those that are of use to the caller.

        Raises:
            ProxyError: a field is missing or none of its kind, or it is another role.
        """
        self._where, self._facts = where, facts
        if not isinstance(facts, Mapping):
            raise self._wrong(f"{facts!r:.80} describes no member")
        self.role: str = self._field("role", str)
        if self.role not in roles:
            raise self._wrong(f"`role` is {self.role!r}; of use here is {' or '.join(roles)}")
        self._wid: int = 0 if self.role == "root" else self._field("wid", int)
        self._port: str | None = self._field("port", str) if facts.get("port") is not None else None
        self._ends = {name: self._address(name, least) for name, least in (("local", 0), ("switch", 1))}
        self._streams = {name: self._stream(name) for name in _STREAMS[self.role]}

    def open(self, timeout: float) -> Endpoint:
        """The endpoint of this member; `timeout`: seconds without progress after which all that is pending fails.

        Raises:
            ProxyError: the file has numbers that no endpoint takes. EndpointError: the system refuses it.
        """
        from catchment.host import Endpoint  # noqa: PLC0415  its build is needed where an endpoint is

        common: dict[str, Any] = {**self._ends, "port": self._port, "timeout": timeout}
        try:
            if self.role == "root":
                return Endpoint.root(**self._streams, **common)
            if self.role == "worker":
                return Endpoint.worker(wid=self._wid, **self._streams, **common)
            return Endpoint.peer(stream=self._streams["sums"], wid=self._wid, **common)
        except EndpointError as error:
            if error.kind != "argument":
                raise
            raise self._wrong(str(error)) from error

    def _field(self, name: str, kind: type) -> Any:
        if name not in self._facts:
            raise self._wrong(f"`{name}` is missing")
        value = self._facts[name]
        if type(value) is not kind:
            raise self._wrong(f"`{name}` is {value!r:.80}, not {_SAID[kind]}")
        return value

    def _address(self, name: str, least: int) -> tuple[str, int]:
        from catchment.host.transport.addresses import checked_address  # noqa: PLC0415  as above

        found = self._field(name, list)
        if [type(part) for part in found] != [str, int]:
            raise self._wrong(f"`{name}` is {found!r:.80}, not [ADDRESS, PORT]")
        try:
            return checked_address(name, (found[0], found[1]), least=least)
        except EndpointError as error:
            raise self._wrong(f"`{name}`: {error}") from error

    def _stream(self, name: str) -> Any:
        from catchment.host import Stream  # noqa: PLC0415  as above

        try:
            return Stream(**self._field(name, dict))
        except (EndpointError, TypeError) as error:
            raise self._wrong(f"`{name}`: {error}") from error

    def _wrong(self, what: str) -> ProxyError:
        return ProxyError(f"{self._where}: {what}: {TODO}")


def member_of(path: Path, host: str, roles: Collection[str]) -> Member:
    """What the file's job, one that is no group, needs of a host; further arguments and errors as `Member`.

    Raises:
        ProxyError: the file cannot be read, or does not describe the host.
    """
    return Member(f"{path}: host {host}", _described(path, host), roles)


def members_of(path: Path, host: str, roles: Collection[str]) -> dict[str, Member]:
    """The same for each job of a group that the host is in, by label; or for the job by itself, as "root"."""
    facts = _described(path, host)
    parts = facts.get("parts") or {}
    if not isinstance(parts, dict):
        raise ProxyError(f"{path}: host {host}: `parts` is {parts!r:.80}, not an object of jobs by label: {TODO}")
    if not parts:
        return {str(facts.get("root", "root")): Member(f"{path}: host {host}", facts, roles)}
    return {label: Member(f"{path}: host {host}, part {label}", part, roles) for label, part in parts.items()}


def openers(members: Mapping[str, Member], timeout: float) -> dict[str, Callable[[], Endpoint]]:
    """What opens the endpoint of each; `timeout` in seconds, as `Member.open`."""
    return {label: partial(member.open, timeout) for label, member in members.items()}


def _described(path: Path, host: str) -> dict[str, Any]:
    members = read_json(path, TODO).get("members")
    if not isinstance(members, dict):
        raise ProxyError(f"{path} describes no job: it has no `members`: {TODO}")
    facts = members.get(host)
    if not isinstance(facts, dict):
        raise ProxyError(f"{path} does not describe host {host}; it has {', '.join(members) or 'none'}: {TODO}")
    return facts
