"""A host's place in a job of the controller: joins it, lives in it, learns of changes (docs/control-plane.md)."""

from host.membership.credentials import Credentials
from host.membership.description import Description
from host.membership.errors import MembershipError
from host.membership.member import Membership

__all__ = ["Credentials", "Description", "Membership", "MembershipError"]
