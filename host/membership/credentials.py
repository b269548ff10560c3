"""What a host proves to the controller, and how it knows the controller."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc

from catchment.host.membership.errors import MembershipError
from catchment.host.membership.given import check_texts
from catchment.wire.channel_options import STREAMS_END
from catchment.wire.service import AUTHORITY_FILE, CONTROLLER_NAME, credential_files, host_name


@dataclass(frozen=True, slots=True)
class Credentials:
    """Files in PEM.

    Attributes:
        authority: certificate of the authority that signed the controller's.
        certificate: of this host.
        key: its private key.

    Raises:
        MembershipError: one is no Path.
    """

    authority: Path
    certificate: Path
    key: Path

    def __post_init__(self) -> None:
        for name in ("authority", "certificate", "key"):
            if not isinstance(file := getattr(self, name), Path):
                raise MembershipError(f"{name} is {file!r:.80}: give the Path of a file in PEM")

    @classmethod
    def of(cls, folder: Path, host: str) -> Self:
        """The credentials of a host in a folder that `catchment controller certificates` made.

        Raises:
            MembershipError: the folder is no Path, or the host no name.
        """
        check_texts({"host": host})
        if not isinstance(folder, Path):
            raise MembershipError(f"folder is {folder!r:.80}: give the Path of the certificates' folder")
        certificate, key = credential_files(host_name(host))
        return cls(folder / AUTHORITY_FILE, folder / certificate, folder / key)

    def channel(self, address: str) -> Any:
        """A channel to the controller at `host:port` or `unix:PATH`.

        Raises:
            MembershipError: a file cannot be read.
        """
        try:
            authority, certificate, key = (p.read_bytes() for p in (self.authority, self.certificate, self.key))
        except OSError as error:
            raise MembershipError(f"cannot read {error.filename}: {error.strerror}") from None
        options = (
            *STREAMS_END,
            # Whatever its address: what it proves is that it is the controller.
            ("grpc.ssl_target_name_override", CONTROLLER_NAME),
            ("grpc.default_authority", CONTROLLER_NAME),
            ("grpc.initial_reconnect_backoff_ms", 100),
            ("grpc.min_reconnect_backoff_ms", 100),
            ("grpc.max_reconnect_backoff_ms", 500),
        )
        return grpc.secure_channel(address, grpc.ssl_channel_credentials(authority, key, certificate), options)
