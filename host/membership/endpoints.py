"""One endpoint for each job of a group, as a worker has them that trains with several optimizer nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import TracebackType
from typing import Self

from catchment.host.transport.endpoint import Endpoint, Stall


class Endpoints(Mapping[str, Endpoint]):
    """Label of the job in its group -> endpoint; opened and closed together."""

    def __init__(self, makers: Mapping[str, Callable[[], Endpoint]]) -> None:
        """Make all; when one cannot be made, those before it are closed and its error is raised."""
        self._opened: dict[str, Endpoint] = {}
        try:
            for label, make in makers.items():
                self._opened[label] = make()
        except BaseException:
            self.close(0.0)
            raise

    def __getitem__(self, label: str) -> Endpoint:
        return self._opened[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._opened)

    def __len__(self) -> int:
        return len(self._opened)

    def stalled(self) -> tuple[Stall, ...]:
        """Streams of any endpoint that stand still, as Endpoint.stalled has them."""
        return tuple(stall for endpoint in self._opened.values() for stall in endpoint.stalled())

    @property
    def wants_keys(self) -> bool:
        """Whether any of them wants keys, as Endpoint.wants_keys has it."""
        return any(endpoint.wants_keys for endpoint in self._opened.values())

    def close(self, linger: float = 1.0) -> None:
        """Close all of them, as Endpoint.close does."""
        for endpoint in self._opened.values():
            endpoint.close(linger)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes; without waiting for the peers when the block failed."""
        if kind is None:
            self.close()
        else:
            self.close(0.0)
