"""Who a sum waits for: what a client asks its proxies before it gives up, and what they say."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from catchment.host.proxy.channel import Channel, Kind, Message
from catchment.host.proxy.errors import ProxyError


class Inquiry:
    """A client's questions to all of its proxies, one at a time. Any thread may bring an answer."""

    def __init__(self, channels: Sequence[Channel]) -> None:
        """`channels`: to the proxies, by number."""
        self._channels = channels
        self._lock = threading.Lock()
        self._asking: dict[int, threading.Thread] = {}
        self._about = (0, 0)
        self._said: dict[int, list[str]] = {}

    def begin(self, tensor: int, step: int) -> None:
        """Ask all proxies; returns at once, as a proxy that stands still may not take the question."""
        with self._lock:
            self._about, self._said = (tensor, step), {}
        for proxy, channel in enumerate(self._channels):
            if proxy not in self._asking or not self._asking[proxy].is_alive():
                self._asking[proxy] = threading.Thread(target=_ask, args=(channel, tensor, step), daemon=True)
                self._asking[proxy].start()

    def take(self, proxy: int, message: Message) -> None:
        """Receive an answer; one to an earlier question is forgotten.

        Raises:
            ProxyError: the proxy is gone, or says what is none.
        """
        channel = self._channels[proxy]
        said = channel.facts().get("awaited")
        if not isinstance(said, list) or not all(isinstance(each, str) for each in said):
            raise ProxyError(f"{channel.peer} does not say who it waits for: run the same release everywhere")
        with self._lock:
            if (message.number, message.step) == self._about:
                self._said[proxy] = said

    def found(self, seconds: float) -> str:
        """What is known `seconds` after the question, as words that may follow a colon."""
        with self._lock:
            said = {proxy: list(each) for proxy, each in self._said.items()}
        silent = [
            f"{channel.peer} has not answered for {seconds:g} s"
            for proxy, channel in enumerate(self._channels)
            if proxy not in said
        ]
        awaited = list(dict.fromkeys(each for proxy in sorted(said) for each in said[proxy]))
        return ", ".join(awaited + silent) or "all clients have pushed it, and all proxies are there: wait for longer"


def _ask(channel: Channel, tensor: int, step: int) -> None:
    try:
        channel.send(Message(Kind.ASK, number=tensor, step=step))
    except ProxyError:
        return  # the thread that receives says so
