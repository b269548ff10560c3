"""Sizes of groups and action sets of a selector that counts members, not their weights (P4Runtime 1.4, "Rules on
Setting max_size")."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from raw_client import Names, RawClient, UpdatesFailedError, as_bytes
from server_programs import Program

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

INVALID_ARGUMENT, RESOURCE_EXHAUSTED = 3, 8
MEMBERS, HEAVIEST = 4, 3


@pytest.fixture
def names(extras: Program) -> Names:
    return Names(extras.p4info)


@pytest.fixture
def client(start: Callable[..., SwitchProcess], extras: Program, names: Names) -> Iterator[RawClient]:
    """The primary of a switch with members 1 to MEMBERS + 1 of the selector."""
    config = extras.config()
    (profile,) = [profile for profile in config.p4info.action_profiles if profile.preamble.alias == "groups"]
    profile.max_group_size = MEMBERS
    profile.sum_of_members.max_member_weight = HEAVIEST
    with RawClient(start(program_dir=extras.shared_object.parent).address) as client:
        assert client.arbitrate() == 0
        client.set_pipeline("VERIFY_AND_COMMIT", config)
        yield client


def member(names: Names, number: int) -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    entry = entity.action_profile_member
    entry.action_profile_id, entry.member_id = names.profile_id("groups"), number
    entry.action.action_id = names.action_id("set_group")
    entry.action.params.add(param_id=1, value=as_bytes(number))
    return entity


def group(names: Names, *weights: int) -> p4runtime_pb2.Entity:
    entity = p4runtime_pb2.Entity()
    entry = entity.action_profile_group
    entry.action_profile_id, entry.group_id, entry.max_size = names.profile_id("groups"), 1, MEMBERS
    for number, weight in enumerate(weights, 1):
        entry.members.add(member_id=number, weight=weight)
    return entity


def action_set(names: Names, *weights: int) -> p4runtime_pb2.Entity:
    entity = names.entry("group_t", {1: 5})
    for number, weight in enumerate(weights, 1):
        one = entity.table_entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        one.action.action_id = names.action_id("set_group")
        one.action.params.add(param_id=1, value=as_bytes(number))
    return entity


def refusal(client: RawClient, entity: p4runtime_pb2.Entity) -> int:
    with pytest.raises(UpdatesFailedError) as caught:
        client.insert(entity)
    ((code, _),) = caught.value.errors
    return code


def test_a_group_has_as_many_members_as_its_size(client: RawClient, names: Names) -> None:
    client.insert(*[member(names, number) for number in range(1, MEMBERS + 2)])
    assert refusal(client, group(names, *[1] * (MEMBERS + 1))) == RESOURCE_EXHAUSTED
    assert refusal(client, group(names, HEAVIEST + 1)) == INVALID_ARGUMENT
    whole = group(names, *[HEAVIEST] * MEMBERS)
    client.insert(whole)
    assert client.read(group(names)) == [whole]
    client.modify(group(names, *[HEAVIEST - 1] * MEMBERS))


def test_an_action_set_has_as_many_actions(client: RawClient, names: Names) -> None:
    assert refusal(client, action_set(names, *[1] * (MEMBERS + 1))) == INVALID_ARGUMENT
    assert refusal(client, action_set(names, HEAVIEST + 1)) == INVALID_ARGUMENT
    client.insert(action_set(names, *[HEAVIEST] * MEMBERS))
