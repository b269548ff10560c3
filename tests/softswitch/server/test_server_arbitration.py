"""Which client may write: election ids, primary and backups, roles."""

from __future__ import annotations

import grpc
import pytest
from raw_client import Names, RawClient

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

OK, NOT_FOUND, ALREADY_EXISTS = 0, 5, 6
ROUTE = {1: ("lpm", 0x0A000000, 8)}


def refused(call: object, *arguments: object) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value


def test_the_highest_election_id_is_primary_and_the_others_are_told(switch: SwitchProcess, names: Names) -> None:
    entry = names.entry("lpm_t", ROUTE, ("set_lpm", [5]))
    with RawClient(switch.address) as first, RawClient(switch.address) as second, RawClient(switch.address) as third:
        assert first.arbitrate((0, 10)) == OK
        assert second.arbitrate((0, 9)) == ALREADY_EXISTS
        first.insert(entry)
        assert refused(second.insert, entry).code() == grpc.StatusCode.PERMISSION_DENIED

        assert third.arbitrate((1, 0)) == OK  # 2^64: the high word counts
        for loser in (first, second):
            notice = loser.receive().arbitration
            assert notice.status.code == ALREADY_EXISTS
            assert (notice.election_id.high, notice.election_id.low) == (1, 0)
        error = refused(first.delete, entry)
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        assert "1:0" in error.details() and "10" in error.details()
        third.delete(entry)


def test_a_primary_that_leaves_is_not_replaced_until_a_client_asks(switch: SwitchProcess, names: Names) -> None:
    entry = names.entry("lpm_t", ROUTE, ("set_lpm", [5]))
    with RawClient(switch.address) as backup:
        with RawClient(switch.address) as primary:
            assert primary.arbitrate((0, 7)) == OK
            assert backup.arbitrate((0, 6)) == ALREADY_EXISTS
        notice = backup.receive().arbitration
        assert notice.status.code == NOT_FOUND
        assert notice.election_id.low == 7
        assert refused(backup.insert, entry).code() == grpc.StatusCode.PERMISSION_DENIED
        assert backup.arbitrate((0, 6)) == NOT_FOUND  # below the highest ever seen
        assert backup.arbitrate((0, 7)) == OK
        backup.insert(entry)


def test_a_primary_can_step_down(switch: SwitchProcess) -> None:
    with RawClient(switch.address) as one, RawClient(switch.address) as other:
        assert one.arbitrate((0, 5)) == OK
        assert other.arbitrate(None) == ALREADY_EXISTS
        assert one.arbitrate((0, 4)) == NOT_FOUND
        assert other.receive().arbitration.status.code == NOT_FOUND


def test_a_client_without_election_id_never_becomes_primary(switch: SwitchProcess, names: Names) -> None:
    with RawClient(switch.address) as one:
        one.ask_arbitration(None)
        answer = one.receive().arbitration
        assert answer.status.code == NOT_FOUND
        assert not answer.HasField("election_id")
        error = refused(one.insert, names.entry("lpm_t", ROUTE, ("set_lpm", [5])))
        assert error.code() == grpc.StatusCode.PERMISSION_DENIED
        assert one.arbitrate((0, 0)) == OK  # an id of zero is an id


@pytest.mark.parametrize("election_id", [(0, 3), (9, 9)])
def test_an_election_id_in_use_ends_the_stream(switch: SwitchProcess, election_id: tuple[int, int]) -> None:
    with RawClient(switch.address) as one, RawClient(switch.address) as other:
        one.arbitrate(election_id)
        other.ask_arbitration(election_id)
        error = refused(other.receive)
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "in use" in error.details()


def test_an_unknown_device_ends_the_stream_and_every_call(switch: SwitchProcess) -> None:
    with RawClient(switch.address) as stream, RawClient(switch.address, device_id=8) as calls:
        stream.ask_arbitration((0, 1), device_id=8)
        assert refused(stream.receive).code() == grpc.StatusCode.NOT_FOUND
        for call in (calls.read, calls.write, calls.get_pipeline):
            error = refused(call)
            assert error.code() == grpc.StatusCode.NOT_FOUND
            assert "device_id 8" in error.details()


def test_a_stream_stays_with_its_device_and_role(switch: SwitchProcess) -> None:
    for change in ({"device_id": 2}, {"role": "other"}):
        with RawClient(switch.address) as one:
            one.arbitrate((0, 1))
            one.ask_arbitration((0, 1), **change)  # type: ignore[arg-type]
            assert refused(one.receive).code() == grpc.StatusCode.FAILED_PRECONDITION


def test_each_role_has_its_own_primary(switch: SwitchProcess, names: Names) -> None:
    entry = names.entry("lpm_t", ROUTE, ("set_lpm", [5]))
    with RawClient(switch.address) as plain, RawClient(switch.address) as stats:
        assert plain.arbitrate((0, 9)) == OK
        assert stats.arbitrate((0, 2), role="stats") == OK
        stats.write(p4runtime_pb2.Update(type="INSERT", entity=entry), role="stats")
        plain.delete(entry)
        assert refused(lambda: stats.write(role="nobody")).code() == grpc.StatusCode.NOT_FOUND
        assert refused(stats.write).code() == grpc.StatusCode.PERMISSION_DENIED


def test_a_role_config_of_an_unknown_kind_is_refused(switch: SwitchProcess) -> None:
    with RawClient(switch.address) as one:
        request = p4runtime_pb2.StreamMessageRequest()
        request.arbitration.device_id = 1
        request.arbitration.role.config.type_url = "some/config"
        one.send(request)
        error = refused(one.receive)
        assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert "role.config" in error.details()


def test_many_clients_at_once(switch: SwitchProcess) -> None:
    clients = [RawClient(switch.address) for _ in range(40)]
    try:
        for number, one in enumerate(clients):
            one.ask_arbitration((0, number + 1))
        # Every client ends with the same winner, whatever the order the bids came in.
        for number, one in enumerate(clients):
            notice = one.receive().arbitration
            while notice.election_id.low != len(clients):
                notice = one.receive().arbitration
            assert notice.status.code == (OK if number + 1 == len(clients) else ALREADY_EXISTS)
    finally:
        for one in clients:
            one.close()
