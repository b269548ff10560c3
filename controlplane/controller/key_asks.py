"""Which members of a job have asked for the key of a stream's next term."""

from __future__ import annotations

from collections.abc import Iterable

from catchment.controlplane.jobs import JobGroup, JobPlan, StreamPlan


class KeyAsks:
    """What the members of one job have asked for in this epoch; forgotten with the controller: members ask again."""

    def __init__(self) -> None:
        self._hosts: dict[tuple[int, int], set[str]] = {}
        self._late: dict[tuple[int, int], str] = {}

    def note(self, group: JobGroup, host: str, terms: Iterable[tuple[int, int]]) -> dict[int, int]:
        """Note that a host has come to terms, of streams by generation.

        Returns:
            Generation -> term, of those streams all of whose workers have now. What a host says of a stream that it has
            no part in, or of another term than the next one, counts for nothing.
        """
        streams = {s.gen: (plan, s) for plan in group.plans if host in plan.workers for s in plan.streams}
        complete: dict[int, int] = {}
        for gen, term in terms:
            if gen not in streams:
                continue
            plan, stream = streams[gen]
            if stream.term_bits and term == stream.term + 1 and not self._missing(plan, stream, host):
                complete[gen] = term
        return complete

    def _missing(self, plan: JobPlan, stream: StreamPlan, host: str) -> list[str]:
        """The workers that have not asked, once this one has; a worker that asks again is tired of waiting for them."""
        place = stream.gen, stream.term + 1
        hosts = self._hosts.setdefault(place, set())
        again = host in hosts
        hosts.add(host)
        missing = [worker for worker in plan.workers if worker not in hosts]
        if missing and again:
            self._late[place] = f"job {plan.name} gets no new keys until its other members ask: {', '.join(missing)}"
        return missing

    def forget(self, gen: int, term: int) -> None:
        """A stream has got the key that was asked for."""
        self._hosts.pop((gen, term), None)
        self._late.pop((gen, term), None)

    @property
    def trouble(self) -> str:
        """Who keeps the others waiting for a key, in words; empty where nobody does."""
        return "; ".join(dict.fromkeys(self._late.values()))
