"""What a shared-memory port raises."""

from __future__ import annotations


class ShmError(Exception):
    """A shared-memory port refuses, or cannot be attached; says what and why."""


class DetachedError(ShmError):
    """The switch is gone for now.  The port attaches again by itself; frames in flight are lost."""
