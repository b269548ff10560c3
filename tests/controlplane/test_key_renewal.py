"""Jobs with tags get other keys before theirs have served for all frames that they may."""

from __future__ import annotations

import grpc
import pytest
from live_job import JOB, LiveJob
from running_controller import until

from catchment.controlplane.deployment.store import open_store
from catchment.host.membership import Membership
from catchment.wire.generated import controller_pb2 as pb

KEY_FRAMES = 30_000
"""Far more than members send from when they look until they have other keys."""


def keys(live: LiveJob) -> set[str]:
    """The keys of the job's streams, as the controller has stored them."""
    with open_store(live.topology, live.controller.settings.folder) as stored:
        return {stream.key for plan in stored.get(JOB).plans for stream in plan.streams}


def epoch(live: LiveJob) -> int:
    with live.controller.operator() as operator:
        return int(operator.job(JOB).epoch)


def ask(member: Membership, epoch: int) -> None:
    member._stub.RenewKeys(pb.RenewKeysRequest(session=member.session, epoch=epoch), timeout=60.0)


@pytest.mark.sampled(4)
def test_members_ask_before_their_keys_are_spent(seed: int) -> None:
    """Sums and parameters stay right over renewals; no member ever finds that its key serves for no more."""
    with LiveJob(seed, key_frames=KEY_FRAMES) as live:
        seen = [keys(live)]
        for _ in range(2):
            before = epoch(live)
            until(lambda before=before: epoch(live) > before, "the job gets other keys")
            seen.append(keys(live))
            live.until_exchanged(2)
        assert live.wrong() == []
        assert all(len(each) == 2 for each in seen) and len(set.union(*seen)) >= 6
        kinds = {getattr(error, "kind", "") for member in live.members.values() for error in member.errors}
        assert kinds and "spent" not in kinds
        assert "has used half of what its keys serve for" in live.audit()


@pytest.mark.sampled(4)
def test_members_of_one_epoch_ask_for_one_renewal(seed: int) -> None:
    """Who asks late, for the keys of an epoch that is over, changes nothing; a job without tags has no keys."""
    with LiveJob(seed, key_frames=1 << 30) as live:
        live.until_exchanged(1)
        first, before = epoch(live), keys(live)
        for host in live.members:
            ask(live.members[host].membership, first)
        assert epoch(live) == first + 1
        assert not before & keys(live)
        live.until_exchanged(2)
        assert live.wrong() == []
    with LiveJob(seed) as plain, pytest.raises(grpc.RpcError, match="its frames carry no tags"):
        ask(plain.members["w0"].membership, epoch(plain))
