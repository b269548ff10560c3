"""A profile as a file: JSON, client -> proxy -> [[bytes, seconds], ...]."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from catchment.host.durable_file import replace_file
from catchment.host.proxy.errors import ProxyError
from catchment.host.proxy.json_file import read_json
from catchment.host.proxy.links import LinkCurve
from catchment.lock_file import locked

_TODO = "write one with `catchment proxy profile`"
Profile = Mapping[str, Mapping[str, LinkCurve]]
"""Client -> proxy -> what their link takes."""


def write_profile(path: Path, profile: Profile) -> None:
    """Add these clients to the file, or begin one; several processes may add to one file at once.

    A lock file beside it, `NAME.lock`, has them take turns, and stays.

    Raises:
        ProxyError: there is a file, and it is no profile; or it cannot be written.
    """
    path = path.resolve()
    try:
        with locked(path.with_name(f"{path.name}.lock")):
            before = read_profile(path) if path.exists() else {}
            merged = {**before, **profile}
            facts = {c: {p: link.points for p, link in sorted(own.items())} for c, own in sorted(merged.items())}
            replace_file(path, [json.dumps(facts, indent=1).encode()])
    except OSError as error:
        raise ProxyError(f"cannot add to {path}: {error.strerror}: give a file that can be written") from error


def read_profile(path: Path) -> dict[str, dict[str, LinkCurve]]:
    """What `write_profile` wrote.

    Raises:
        ProxyError: the file is not there or no profile, or its clients did not measure the same proxies.
    """
    facts = read_json(path, _TODO)
    try:
        found = {
            str(client): {
                str(proxy): LinkCurve(tuple((int(size), float(seconds)) for size, seconds in points))
                for proxy, points in own.items()
            }
            for client, own in facts.items()
        }
    except (ValueError, TypeError, AttributeError, OverflowError):
        form = '{"CLIENT": {"PROXY": [[BYTES, SECONDS], ...]}}'
        raise ProxyError(f"{path} is no profile, which has the form {form}: {_TODO}") from None
    if not found or not all(found.values()):
        raise ProxyError(f"{path} has no link in it: {_TODO}")
    first = next(iter(found))
    for client, own in found.items():
        if set(own) != set(found[first]):
            raise ProxyError(f"{path}: {client} measured {sorted(own)}, {first} {sorted(found[first])}: measure again")
    return found


def slowest(profile: Profile) -> dict[str, LinkCurve]:
    """One curve a proxy for all clients: the slowest client's at each size, as all of them wait for it."""
    curves: dict[str, list[LinkCurve]] = {}
    for own in profile.values():
        for proxy, link in own.items():
            curves.setdefault(proxy, []).append(link)
    return {
        proxy: LinkCurve.of({size: max(link.seconds(size) for link in links) for size, _ in links[0].points})
        for proxy, links in curves.items()
    }
