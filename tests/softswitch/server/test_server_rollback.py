"""ROLLBACK_ON_ERROR: a batch happens whole, or the switch is as it was."""

from __future__ import annotations

import pytest
from raw_client import Names, RawClient, UpdatesFailedError, update
from switch_memory import MIB, peak_memory
from test_server_state import cell, clone, counter, multicast

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

ABORTED, ALREADY_EXISTS = 10, 6
Entity = p4runtime_pb2.Entity


def write_whole(client: RawClient, *updates: p4runtime_pb2.Update) -> None:
    request = client.write_request(*updates)
    request.atomicity = p4runtime_pb2.WriteRequest.ROLLBACK_ON_ERROR
    client.send_write(request)


def route(names: Names, number: int, value: int) -> Entity:
    return names.entry("exact_t", {1: number, 2: 1}, ("forward", [value]))


def rule(names: Names, number: int | None, value: int, priority: int) -> Entity:
    match = {} if number is None else {1: ("range", number, number + 1)}
    return names.entry("range_t", match, ("set_range", [value]), priority=priority)


def everything(client: RawClient) -> list[bytes]:
    """All state, in an order of its own."""
    entries = Entity()
    entries.table_entry.counter_data.SetInParent()
    defaults = Entity()
    defaults.table_entry.is_default_action = True
    requests = [
        entries, defaults, multicast(0), clone(0), Entity(counter_entry={}), Entity(register_entry={}),
    ]  # fmt: skip
    return sorted(entity.SerializeToString(deterministic=True) for entity in client.read(*requests))


def test_a_batch_that_goes_well_is_done(client: RawClient, names: Names) -> None:
    write_whole(client, update("INSERT", route(names, 1, 5)), update("INSERT", multicast(3, (1, 1))))
    assert client.read(route(names, 1, 0)) == [route(names, 1, 5)]
    assert client.read(multicast(3)) == [multicast(3, (1, 1))]


def test_a_long_status_says_why_nothing_was_done(client: RawClient, names: Names) -> None:
    """It is cut to what gRPC's clients take, and what was done before the failure comes first in it."""
    routes = [route(names, number, 5) for number in range(1000)]
    with pytest.raises(UpdatesFailedError) as caught:
        write_whole(client, *(update("INSERT", one) for one in [*routes, routes[0]]))
    assert {code for code, _ in caught.value.errors} == {ABORTED}
    why = "none of 1001 updates was done, because that at index 1000 failed: table KindsIngress.exact_t has an entry"
    assert str(caught.value).startswith(why)


def test_every_kind_of_update_is_taken_back(client: RawClient, names: Names) -> None:
    counted = route(names, 1, 5)
    counted.table_entry.counter_data.packet_count = 77
    counted.table_entry.metadata = b"mine"
    client.insert(
        counted,
        route(names, 2, 6),
        rule(names, 4, 1, 9),
        rule(names, None, 2, 9),  # matches everything, with the same priority
        multicast(3, (1, 1), (2, 1), metadata=b"m"),
        clone(4, (1, 1), length=99),
    )
    client.modify(
        counter(names, 3, 100, 1000),
        cell(names, "cells", 5, b"\x55"),
        cell(names, "cells", 6, b"\x66"),
        names.entry("keyless_t", action=("set_default", [70]), default=True),
    )
    before = everything(client)
    changes = [
        update("MODIFY", route(names, 1, 500)),
        update("DELETE", route(names, 1, 0)),
        update("INSERT", route(names, 1, 501)),
        update("DELETE", route(names, 2, 0)),
        update("INSERT", route(names, 3, 3)),
        update("DELETE", rule(names, None, 0, 9)),
        update("MODIFY", rule(names, 4, 3, 9)),
        update("MODIFY", names.entry("keyless_t", action=("set_default", [71]), default=True)),
        update("MODIFY", names.entry("keyless_t", default=True)),
        update("MODIFY", multicast(3, (4, 4))),
        update("INSERT", multicast(5)),
        update("DELETE", clone(4)),
        update("MODIFY", counter(names, None, 1, 1)),
        update("MODIFY", cell(names, "cells", None, b"\x01")),
        update("MODIFY", cell(names, "cells", 5, b"\x02")),
    ]
    with pytest.raises(UpdatesFailedError) as caught:
        write_whole(client, *changes, update("INSERT", route(names, 3, 4)), update("INSERT", route(names, 9, 9)))
    codes = [code for code, _ in caught.value.errors]
    assert codes == [ABORTED] * len(changes) + [ALREADY_EXISTS, ABORTED]
    assert f"update {len(changes)} failed" in caught.value.errors[0][1]
    assert everything(client) == before
    write_whole(client, *changes)
    assert everything(client) != before


def test_a_wrong_update_takes_nothing_with_it(client: RawClient, names: Names) -> None:
    client.insert(route(names, 1, 5))
    before = everything(client)
    wrong = [
        update("DELETE", route(names, 8, 0)),
        update("MODIFY", names.entry("exact_t", {1: 1}, ("forward", [1]))),
        update("DELETE", Entity()),
        update("MODIFY", cell(names, "cells", 64, b"\x01")),
        p4runtime_pb2.Update(entity=route(names, 1, 1)),
    ]
    for one in wrong:
        with pytest.raises(UpdatesFailedError):
            write_whole(client, update("DELETE", route(names, 1, 0)), one)
        assert everything(client) == before


def test_a_batch_of_which_too_much_would_be_taken_back_is_refused(
    client: RawClient, names: Names, switch: SwitchProcess
) -> None:
    """Each update has some 24 bytes, and writes 64 cells: to remember all that would take a gigabyte."""
    client.modify(cell(names, "cells", 5, b"\x55"))
    before, memory = everything(client), peak_memory(switch)
    every_cell = update("MODIFY", cell(names, "cells", None, b"\x01"))
    with pytest.raises(UpdatesFailedError) as caught:
        write_whole(client, *[every_cell] * 40_000)
    assert "more than 128 MiB" in str(caught.value)
    assert "CONTINUE_ON_ERROR" in str(caught.value)
    assert everything(client) == before
    assert peak_memory(switch) - memory < 512 * MIB
    write_whole(client, *[every_cell] * 100)
