"""A host's place in a job of the controller: joins, lives, learns of changes (docs/explanation/controller.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from catchment.host.lazy_exports import lazy_exports as _lazy_exports
from catchment.host.membership.description import Description
from catchment.host.membership.endpoints import Endpoints
from catchment.host.membership.errors import MembershipError

if TYPE_CHECKING:
    from catchment.host.membership.credentials import Credentials
    from catchment.host.membership.guest import Guest
    from catchment.host.membership.member import Membership

# They need gRPC, which a host without a controller would import for nothing.
__getattr__ = _lazy_exports(__name__, {"Credentials": "credentials", "Guest": "guest", "Membership": "member"})

__all__ = ["Credentials", "Description", "Endpoints", "Guest", "Membership", "MembershipError"]
