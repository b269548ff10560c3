"""The file that `catchment job show NAME --json` writes: which member this host is, and which part a group takes."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, final

from catchment.host.collectives.errors import wrong
from catchment.host.collectives.ports import is_socket
from catchment.host.collectives.rail_parts import names_rails
from catchment.wire.rail_labels import labels_beside

_LOG: Final = logging.getLogger("catchment.torch")

Member = Mapping[str, Any]
"""What `Communicator.of_job` needs."""


@final
class JobFile:
    """A job of kind allreduce for all ranks, and with it, in a group of jobs, its parts.

    Attributes:
        name: of the job.
        workers: the names of its hosts.

    Raises:
        CollectiveError: kind ``argument``: the file is no such job.
    """

    def __init__(self, path: Path, size: int) -> None:
        """`size`: how many ranks there are."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            self._members: dict[str, Member] = document["members"]
            self.workers: list[str] = list(document["workers"])
            workers = [self._members[name] for name in self.workers]
            for member in self._members.values():
                socket.inet_pton(socket.AF_INET, of_first(member, "local")[0])
            rails = tuple(names_rails(document.get("parts", {})))
            on_rails = {*rails, *(label for rail in rails for label in labels_beside(rail, rails))}
            self._parts: dict[str, frozenset[str]] = {
                label: frozenset(part["workers"])
                for label, part in document.get("parts", {}).items()
                if label and label not in on_rails  # the job of all workers has an empty one
            }
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise wrong(
                f"{path} describes no job ({type(error).__name__}: {error})",
                "write it with `catchment job show --json`",
            ) from None
        if not 0 < len(workers) <= size or any(of_first(member, "role") != "peer" for member in workers):
            raise wrong(
                f"the job of {path} has {len(workers)} workers of kind {document.get('kind')}, the group {size} ranks",
                f"create it with --kind allreduce and a worker for each host, {size} at most",
            )
        if rails and len(workers) != size:
            raise wrong(
                f"the job of {path} is on several rails and has {len(workers)} workers, the group {size} ranks",
                "on several rails each host is one rank; create the job with --rail for more",
            )
        self._all_parts = dict(self._parts)
        self.name = str(document.get("name", path))
        self._path = path
        self._size = size
        self._said: set[frozenset[str]] = set()

    def own(self, rank: int, host: str | None) -> tuple[str, Member]:
        """This host's name and what it needs: `host`'s, or what the only member with an address of this machine needs.

        Where several are (a machine that plays many), ranks take them in order, equally many each.

        Raises:
            CollectiveError: kind ``argument``: this host is not in the job.
        """
        if host is not None:
            if host not in self._members:
                raise wrong(f"host {host} is not in the job of {self._path}", f"in it are: {', '.join(self._members)}")
            return host, self._members[host]
        ours = [name for name in self.workers if _is_here(self._members[name])]
        if not ours:
            raise wrong(
                f"no member of the job of {self._path} has an address of this host", "set CATCHMENT_HOST to its name"
            )
        name = ours[0] if len(ours) == 1 else self.workers[rank * len(self.workers) // self._size]
        return name, self._members[name]

    def take_part(self, hosts: Sequence[str]) -> str | None:
        """Label of the part that has exactly these workers, which is given once; None: there is none, as the log says.

        A job serves one process group, and so does a part of it: generations are not used again.
        """
        wanted = frozenset(hosts)
        label = next((label for label, workers in self._parts.items() if workers == wanted), None)
        if label is not None:
            del self._parts[label]
        elif wanted not in self._said:
            self._said.add(wanted)
            _LOG.warning(
                "job %s has no part left for the group of %s, which goes by gloo; %s",
                self.name,
                ", ".join(host for host in self.workers if host in wanted),
                self._advice([index for index, host in enumerate(self.workers) if host in wanted]),
            )
        return label

    def labels_of(self, hosts: Sequence[str]) -> list[str]:
        """Labels of all parts that have exactly these workers, given or not, in the order of the file."""
        return [label for label, workers in self._all_parts.items() if workers == frozenset(hosts)]

    def part(self, host: str, label: str) -> Member:
        """What a host needs in a part."""
        return dict(self._members[host]["parts"][label])

    def _advice(self, indices: Sequence[int]) -> str:
        levels = grid_with(indices, len(self.workers))
        if levels is None:
            return "no --grid has such a part: a controller makes it when it is asked for (CATCHMENT_CONTROLLER)"
        sizes = ",".join(f"{name}={size}" for name, size in zip(("outer", "inner"), levels, strict=False))
        return f"create it with `catchment job create ... --grid {sizes}`"


def grid_with(workers: Sequence[int], everybody: int) -> tuple[int, ...] | None:
    """Sizes of the blocks of a grid that has a part of exactly these workers, from the outermost; None: none has.

    Args:
        workers: their indices in ascending order, two or more.
        everybody: how many workers there are.
    """
    step = workers[1] - workers[0]
    block = step * len(workers)
    first = workers[0] // block * block + workers[0] % step
    if list(workers) != list(range(first, first + block, step)) or everybody % block:
        return None
    sizes = (block, step) if step > 1 else (block,)
    return sizes[1:] if step > 1 and block == everybody else sizes


def of_first(member: Member, key: str) -> Any:
    """What a member is told, in its own job or, on several rails, in the first part that says it; None if none does."""
    told = (place[key] for place in (member, *member.get("parts", {}).values()) if key in place)
    return next(told, None)


def _is_here(member: Member) -> bool:
    """Whether a member is this host: its switch shares memory with this machine, or its address is of this machine."""
    kind, _, path = str(of_first(member, "port") or "").partition(":")
    return (kind == "shm" and is_socket(Path(path))) or _is_own(of_first(member, "local")[0])


def _is_own(address: str) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True
