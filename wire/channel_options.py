"""What every channel of gRPC is opened with that carries streams, to switches and to the controller."""

from __future__ import annotations

STREAMS_END: tuple[tuple[str, int], ...] = (("grpc.enable_retries", 0),)
"""gRPC's own retries are off: with them, a stream that is under way when its server ends may get its status but never
the end of its messages, so that who reads it waits for ever, whatever the deadline. Callers ask again by themselves."""
