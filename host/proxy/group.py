"""What all clients and proxies of a group are told: where the proxies are, how many clients, how they add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Self

from catchment.host.given_numbers import LONGEST, as_real, as_whole, is_whole, keep_real, keep_whole
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.json_file import read_json
from catchment.host.proxy.limits import MOST_CLIENTS
from catchment.host.proxy.rule import check_rule

WAYS = ("ring", "switch")
_MOST_STEPS = 1 << 31
_TODO = "write it as docs/explanation/proxies.md has it"


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
        several = isinstance(self.addresses, tuple | list)
        if not several or not all(isinstance(address, str) for address in self.addresses):
            told = list(self.addresses) if several else repr(self.addresses)
            raise ProxyError(f"proxies at {told}: give several; addresses are HOST:PORT, or a path with a / in it")
        counts = self.clients, self.groups, self.snapshot_every
        if any(as_whole(count) is None for count in counts):
            numbers = f"{self.clients!r} clients, {self.groups!r} groups, snapshots every {self.snapshot_every!r} steps"
            raise ProxyError(f"{numbers}: give whole numbers")
        keep_whole(self, "clients", "groups", "snapshot_every")
        if not self.addresses or len(set(self.addresses)) != len(self.addresses):
            raise ProxyError(f"proxies at {list(self.addresses)}: one at least, each with an address of its own")
        timeout = as_real(self.timeout)
        if self.clients < 1 or self.groups < 1 or timeout is None or not 0 < timeout <= LONGEST:
            numbers = f"{self.clients} clients, {self.groups} groups, {self.timeout!r} s"
            raise ProxyError(f"{numbers}: positive numbers, at most {LONGEST} s")
        keep_real(self, "timeout")
        if self.clients > MOST_CLIENTS or self.groups > MOST_CLIENTS:
            raise ProxyError(f"{self.clients} clients, {self.groups} groups: at most {MOST_CLIENTS} of each")
        if self.rule is not None:
            check_rule(self.rule)
        if not isinstance(self.secret, bytes):
            raise ProxyError(f"a secret that is a {type(self.secret).__name__}: give bytes, at least 16")
        if len(self.secret) < 16:
            raise ProxyError(f"a secret of {len(self.secret)} bytes: at least 16")
        if self.sync not in WAYS:
            raise ProxyError(f"proxies that synchronize by {self.sync!r}: {' or '.join(WAYS)}")
        if not isinstance(self.snapshots, Path | None):
            raise ProxyError(f"snapshots in {self.snapshots!r}: give the Path of a folder")
        if (self.snapshots is None) != (self.snapshot_every == 0) or not is_whole(self.snapshot_every, 0, _MOST_STEPS):
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
        except ProxyError as error:
            raise ProxyError(f"{path}: {error}") from None
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
