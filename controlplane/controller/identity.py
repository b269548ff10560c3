"""Checks the caller of an RPC by its certificate, and keeps secrets as hashes."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Any

from catchment.controlplane.controller.errors import RefusedError
from catchment.wire.service import OPERATOR_NAME, host_name

_SECRET_BYTES = 24


def new_secret() -> str:
    """A token or a session name; printable."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def digest(secret: str) -> bytes:
    """What is kept of a secret. It is random and long, so that a plain hash is enough."""
    return hashlib.sha256(secret.encode()).digest()


def matches(secret: str, kept: bytes) -> bool:
    """Whether a secret is the one whose hash was kept; in constant time."""
    return hmac.compare_digest(digest(secret), kept)


def peer_name(context: Any) -> str:
    """The name in the peer's certificate."""
    names = context.auth_context().get("x509_common_name", [b""])
    return str(names[0].decode("utf-8", errors="replace")) if names else ""


def require_operator(context: Any) -> None:
    """Refuse a caller that is not an operator.

    Raises:
        RefusedError: says who was refused.
    """
    name = peer_name(context)
    if name != OPERATOR_NAME:
        raise RefusedError(f"this takes an operator's certificate; yours is of {name or 'nobody'}")


def require_host(context: Any, host: str) -> None:
    """Refuse a caller that is not the host itself.

    Raises:
        RefusedError: says who was refused.
    """
    name = peer_name(context)
    if name != host_name(host):
        raise RefusedError(f"this takes the certificate of {host_name(host)}; yours is of {name or 'nobody'}")
