"""A host's place in a job of the controller: joins, lives, learns of changes (docs/explanation/controller.md)."""

from catchment.host.membership.credentials import Credentials
from catchment.host.membership.description import Description
from catchment.host.membership.endpoints import Endpoints
from catchment.host.membership.errors import MembershipError
from catchment.host.membership.member import Membership

__all__ = ["Credentials", "Description", "Endpoints", "Membership", "MembershipError"]
