"""Whose certificates count: the controller's own may be replaced while it runs, and those of others be revoked."""

from __future__ import annotations

import contextlib
import logging
from functools import lru_cache
from pathlib import Path
from typing import Any

import grpc
from cryptography import x509

from catchment.controlplane.controller import certificates
from catchment.controlplane.controller.errors import ControllerError, RefusedError
from catchment.controlplane.controller.identity import peer_name
from catchment.wire.service import CONTROLLER_NAME

_log = logging.getLogger(__name__)


class Trust:
    """The files of a folder of certificates as they are now; read again when they change.

    Args:
        folder: with the controller's credentials and, if any certificate was revoked, the list of those.

    Raises:
        ControllerError: a file cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own = certificates.load(folder, CONTROLLER_NAME)
        self._list_state: tuple[int, int] | None = None
        self._revoked: frozenset[int] = frozenset()

    def server_credentials(self) -> Any:
        """Credentials of a server that takes certificates of our authority alone, and shows its own as it is then."""
        return grpc.dynamic_ssl_server_credentials(
            _configuration(self._own), self._newer, require_client_authentication=True
        )

    def _newer(self) -> Any:
        """What a handshake shows; None: the same as before."""
        with contextlib.suppress(ControllerError):
            found = certificates.load(self._folder, CONTROLLER_NAME)
            if found != self._own and certificates.belong_together(found):
                self._own = found
                _log.info("the controller shows its new certificate from now on")
                return _configuration(found)
        return None

    def peer(self, context: Any) -> str:
        """The caller in words: the name in its certificate, and its serial number."""
        serial = _serial(context)
        return f"{peer_name(context) or 'nobody'}" + ("" if serial is None else f" ({serial:x})")

    def check(self, context: Any) -> None:
        """Refuse a caller whose certificate was revoked.

        Raises:
            RefusedError: it was.
        """
        serial = _serial(context)
        if serial is not None and serial in self._list():
            raise RefusedError(f"the certificate {serial:x} of {peer_name(context)} was revoked")

    def _list(self) -> frozenset[int]:
        path = self._folder / certificates.REVOKED
        try:
            stat = path.stat()
        except OSError:
            return self._revoked  # a list that vanished makes no certificate good again
        state = stat.st_mtime_ns, stat.st_size
        if state != self._list_state:
            self._revoked |= certificates.revoked(self._folder)
            self._list_state = state
        return self._revoked


def _configuration(own: certificates.Credentials) -> Any:
    return grpc.ssl_server_certificate_configuration([(own.key, own.certificate)], root_certificates=own.authority)


def _serial(context: Any) -> int | None:
    found = context.auth_context().get("x509_pem_cert")
    return _serial_of(found[0]) if found else None


@lru_cache(maxsize=4096)
def _serial_of(certificate: bytes) -> int:
    return x509.load_pem_x509_certificate(certificate).serial_number
