"""Kinds of job: what a job of a kind consists of. Each registers itself (controlplane/jobs/kinds)."""

from __future__ import annotations

from dataclasses import dataclass

from catchment.controlplane.jobs.errors import JobError
from catchment.wire.generated.constants import Mode


@dataclass(frozen=True, slots=True)
class StreamKind:
    """A stream that the jobs of a kind have.

    Attributes:
        name: what the endpoint knows it by.
        mode: of the top switch; switches below it are leaves.
        slots: vectors in flight, a power of two; as many as the job asks for when None.
        optional: only jobs that ask for it have it.
        packs: jobs that ask for packed lanes have them in this stream.
        keys_follow: in jobs with tags its keys follow one another while it goes on; else one serves for an epoch.
    """

    name: str
    mode: Mode
    slots: int | None = None
    optional: bool = False
    packs: bool = False
    keys_follow: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of job.

    Attributes:
        name: what users call it.
        summary: what its jobs do, in a few words.
        program: file name of the switch program that serves it.
        streams: of each job, in the order in which they get their generations.
        role: of its workers, as their endpoints know it.
        has_root: whether its jobs have an optimizer node.
        two_steps: whether workers acknowledge every sum with a frame of its own, which the switch counts as it does
            vectors.
    """

    name: str
    summary: str
    program: str
    streams: tuple[StreamKind, ...]
    role: str
    has_root: bool = False
    two_steps: bool = False

    def streams_with(self, optional: tuple[str, ...], job: str) -> tuple[StreamKind, ...]:
        """The streams of a job that asks for these optional ones.

        Raises:
            JobError: the kind has no such optional stream.
        """
        has = [stream.name for stream in self.streams if stream.optional]
        for name in optional:
            if name not in has:
                raise JobError(
                    f"job {job}: a job of kind {self.name} has no optional stream {name!r}; it may have: "
                    f"{', '.join(has) or 'none'}"
                )
        return tuple(stream for stream in self.streams if not stream.optional or stream.name in optional)

    def check_packed(self, job: str) -> None:
        """Refuse packed lanes for a job of a kind that has none.

        Raises:
            JobError: no stream of the kind may have packed lanes.
        """
        if not any(stream.packs for stream in self.streams):
            able = ", ".join(kind.name for kind in all_kinds() if any(stream.packs for stream in kind.streams))
            raise JobError(f"job {job}: jobs of kind {self.name} have 32-bit lanes; packed lanes are for: {able}")


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> Kind:
    """Make a kind known under its name; returns it.

    Raises:
        JobError: another kind has the name.
    """
    if _kinds.setdefault(kind.name, kind) != kind:
        raise JobError(f"there is a kind of job named {kind.name} already; take another name")
    return kind


def kind_of(name: str) -> Kind:
    """A kind by its name.

    Raises:
        JobError: there is none; names those there are.
    """
    try:
        return _kinds[name]
    except KeyError:
        raise JobError(f"{name!r} is no kind of job; there are: {', '.join(sorted(_kinds))}") from None


def all_kinds() -> list[Kind]:
    """Every kind that is registered, by name."""
    return [_kinds[name] for name in sorted(_kinds)]
