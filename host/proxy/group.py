"""What all clients and proxies of a group are told: where the proxies are, how many clients, how they add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.json_file import read_json
from catchment.host.proxy.rule import check_rule

WAYS = ("ring", "switch")
_TODO = "write it as docs/explanation/proxies.md has it"
_MOST = 1 << 16
"""Clients, and groups of sync cores."""
_LONGEST = 10**8
"""Seconds: no system waits for much longer."""


@dataclass(frozen=True, slots=True)
class ProxyGroup:
    """Proxies that synchronize among themselves.

    Attributes:
        addresses: HOST:PORT of each proxy, or a path with a / in it (a Unix socket).
        clients: how many there are.
        secret: what clients and proxies prove to each other that they know, at least 16 bytes.
        sync: "ring" or "switch".
        groups: G, of sync cores: so many shards are summed at a time; odd ones go around the other way.
        timeout: seconds for which anybody waits for anybody else.
        rule: `{"name": "adam" or "sgd", ...}`: proxies keep parameters, which every sum of gradients updates; None:
            they give sums back.
        snapshots: a folder that all proxies see, for snapshots of the parameters.
        snapshot_every: steps between two of them.
    """

    addresses: tuple[str, ...]
    clients: int
    secret: bytes
    sync: str = "ring"
    groups: int = 1
    timeout: float = 60.0
    rule: Mapping[str, Any] | None = None
    snapshots: Path | None = None
    snapshot_every: int = 0

    def __post_init__(self) -> None:
        if not all(isinstance(address, str) for address in self.addresses):
            raise ProxyError(f"proxies at {list(self.addresses)}: addresses are HOST:PORT, or a path with a / in it")
        if any(type(number) is not int for number in (self.clients, self.groups, self.snapshot_every)):
            numbers = f"{self.clients} clients, {self.groups} groups, snapshots every {self.snapshot_every} steps"
            raise ProxyError(f"{numbers}: give whole numbers")
        if not self.addresses or len(set(self.addresses)) != len(self.addresses):
            raise ProxyError(f"proxies at {list(self.addresses)}: one at least, each with an address of its own")
        if self.clients < 1 or self.groups < 1 or not 0 < self.timeout <= _LONGEST:
            numbers = f"{self.clients} clients, {self.groups} groups, {self.timeout} s"
            raise ProxyError(f"{numbers}: positive numbers, at most {_LONGEST} s")
        if self.clients > _MOST or self.groups > _MOST:
            raise ProxyError(f"{self.clients} clients, {self.groups} groups: at most {_MOST} of each")
        if self.rule is not None:
            check_rule(self.rule)
        if len(self.secret) < 16:
            raise ProxyError(f"a secret of {len(self.secret)} bytes: at least 16")
        if self.sync not in WAYS:
            raise ProxyError(f"proxies that synchronize by {self.sync!r}: {' or '.join(WAYS)}")
        if (self.snapshots is None) != (self.snapshot_every == 0) or self.snapshot_every < 0:
            raise ProxyError(
                f"snapshots in {self.snapshots} every {self.snapshot_every} steps: give a folder and a positive number"
            )
        if self.snapshots is not None and self.rule is None:
            raise ProxyError(f"snapshots in {self.snapshots} of proxies that keep no parameters: give them a rule")

    @classmethod
    def read(cls, path: Path) -> Self:
        """A group as a JSON file: `addresses`, `clients`, `secret` and what else differs from its default.

        Raises:
            ProxyError: it is not there, or no group.
        """
        facts = read_json(path, _TODO)
        if unknown := facts.keys() - {field.name for field in fields(cls)}:
            raise ProxyError(f"{path} describes no group of proxies: {min(unknown)} is unknown: {_TODO}")
        try:
            told = {**facts, "addresses": tuple(facts["addresses"]), "secret": facts["secret"].encode()}
            if "snapshots" in facts:
                told["snapshots"] = path.parent / facts["snapshots"]
            return cls(**told)
        except KeyError as error:
            raise ProxyError(f"{path} describes no group of proxies: {error.args[0]} is missing: {_TODO}") from None
        except (ValueError, TypeError, AttributeError):
            raise ProxyError(f"{path} describes no group of proxies: a value is of a wrong type: {_TODO}") from None

    def name(self, proxy: int) -> str:
        """What errors call a proxy."""
        return f"proxy {proxy} at {self.addresses[proxy]}"

    def neighbours(self, number: int, group: int) -> tuple[int, int, int]:
        """The position of a proxy in a group's ring, the next proxy, the one before. Odd groups turn the other way."""
        count = len(self.addresses)
        if group % 2:
            return count - 1 - number, (number - 1) % count, (number + 1) % count
        return number, (number + 1) % count, (number - 1) % count
