"""Waits until a proxy may end: what it has yet to hear of clients and other proxies, what it has yet to do.

Clients say BYE when they have all that they want, which may be before this proxy has finished the same sums: others may
have sent them. So it finishes every sum that clients have had, saves what is due, and says BYE to the other proxies; it
ends when all of them have said so too. Until then its connections are open, and a proxy that is gone is an error.
"""

from __future__ import annotations

import threading

from catchment.host.proxy.errors import ProxyError


class Ending:
    """The state of one proxy's end; any thread may call it. A failure ends every wait."""

    def __init__(self, clients: int, peers: int) -> None:
        """So many clients and other proxies have to say BYE."""
        self._clients, self._peers = clients, peers
        self._changed = threading.Condition()
        self._failure: ProxyError | None = None
        self._steps: dict[int, int] = {}
        self._farewells = 0
        self._sums = 0

    @property
    def failure(self) -> ProxyError | None:
        """What failed first."""
        return self._failure

    def fail(self, error: ProxyError) -> None:
        """Something failed; what fails after it is its consequence."""
        with self._changed:
            if self._failure is None:
                self._failure = error
            self._changed.notify_all()

    def client_left(self, client: int, steps: int) -> None:
        """A client said BYE; it has had the sums of all steps before number `steps`."""
        with self._changed:
            self._steps[client] = steps
            self._changed.notify_all()

    def proxy_left(self) -> None:
        """Another proxy said BYE: it has finished all sums and saved what is due."""
        with self._changed:
            self._farewells += 1
            self._changed.notify_all()

    def sum_finished(self) -> None:
        """The sum of one shard is finished here, with all that follows from it."""
        with self._changed:
            self._sums += 1
            self._changed.notify_all()

    def await_service(self, first: int, shards: int) -> None:
        """Wait until all clients have left and the sums that they have had are finished here.

        Args:
            first: the step that the training began with.
            shards: sums of each step.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._failure or self._served(first, shards))

    def await_proxies(self, timeout: float) -> None:
        """Wait until all other proxies have said BYE; it is a failure if they have not after `timeout` seconds."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._failure or self._farewells == self._peers, timeout):
                missing = self._peers - self._farewells
                self._failure = ProxyError(
                    f"{missing} of {self._peers} other proxies had not ended {timeout:g} s after the last client: "
                    "their part of the last snapshot may be missing"
                )

    def _served(self, first: int, shards: int) -> bool:
        return len(self._steps) == self._clients and self._sums >= (max(self._steps.values()) - first) * shards
