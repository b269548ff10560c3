"""What a ring holds of the kernel: forked children keep nothing of it, and it lives through having nothing left."""

from __future__ import annotations

import contextlib
import os
import random
import resource
import select
import signal
import socket
from contextlib import ExitStack

from forked import begin_child, in_child
from test_ring_links import Rank


def test_a_forked_child_keeps_nothing_of_a_ring(rng: random.Random) -> None:
    with ExitStack() as exits:
        rank = Rank(exits, rng.getrandbits(32))
        rank.connected(rank.greeting())
        rank.until_joined()
        port = rank.links.port
        runs, says = os.pipe()
        child = begin_child(lambda: bool(os.write(says, b".") and signal.pause()))
        try:
            assert os.read(runs, 1) == b"."  # fork() may return here before the child does anything
            del rank.links
            socket.create_server(("127.0.0.1", port)).close()  # nobody listens there any more
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(runs)
            os.close(says)


def test_a_rank_without_a_descriptor_goes_on_when_there_is_one(rng: random.Random) -> None:
    """It neither ends, nor is it woken again and again by who wants to come in."""

    def body() -> bool:
        with ExitStack() as exits:
            rank = Rank(exits, rng.getrandbits(32))
            before = exits.enter_context(socket.socket())
            looks = select.poll()
            looks.register(rank.links.descriptor, select.POLLIN)
            taken = []
            _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.open("/dev/null", os.O_RDONLY))
            before.connect(("127.0.0.1", rank.links.port))
            for _ in range(5):
                rank.links.keep()
                assert looks.poll(1) == []
            for descriptor in taken:
                os.close(descriptor)
            before.sendall(rank.greeting())
            rank.until_joined()
            return rank.hears(before, b"a vector")

    assert in_child(body)
