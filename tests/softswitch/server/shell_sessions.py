"""What test_server_shell.py runs in p4runtime-shell's environment, which has neither catchment nor pytest.

usage: python shell_sessions.py SESSION ADDRESS P4INFO SHARED_OBJECT
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable

import p4runtime_sh.shell as sh
from p4runtime_sh.p4runtime import P4RuntimeClient, P4RuntimeWriteException

DEVICE = 3


def refusal(write: Callable[[], object]) -> str:
    """What the shell says of a write that the switch refuses."""
    try:
        write()
    except P4RuntimeWriteException as error:
        return str(error)
    raise AssertionError("the switch took it")


def entries_of_every_kind() -> None:
    entry = sh.TableEntry("exact_t")(action="forward")
    entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:01"
    entry.match["standard_metadata.ingress_port"] = "3"
    entry.action["port"] = "7"
    entry.insert()

    entry = sh.TableEntry("lpm_t")(action="set_lpm")
    entry.match["hdr.probe.address"] = "10.1.0.0/16"
    entry.action["value"] = "99"
    entry.insert()

    entry = sh.TableEntry("ternary_t")(action="set_ternary", priority=5)
    entry.match["hdr.probe.kind"] = "0x0100&&&0xff00"
    entry.match["hdr.probe.number"] = "1"
    entry.action["value"] = "3"
    entry.insert()

    entry = sh.TableEntry("range_t")(action="set_range", priority=6)
    entry.match["hdr.probe.number"] = "10..20"
    entry.action["value"] = "4"
    entry.insert()

    entry = sh.TableEntry("optional_t")(action="set_optional", priority=7)
    entry.match["hdr.probe.number"] = "77"
    entry.action["value"] = "5"
    entry.insert()

    seen = {}
    for table in ("exact_t", "lpm_t", "ternary_t", "range_t", "optional_t"):
        (read,) = list(sh.TableEntry(table).read())
        parameter = read.action.msg().params[0].value
        seen[table] = int.from_bytes(parameter, "big")
    assert seen == {"exact_t": 7, "lpm_t": 99, "ternary_t": 3, "range_t": 4, "optional_t": 5}

    entry.action["value"] = "6"
    entry.modify()
    entry.delete()
    assert list(sh.TableEntry("optional_t").read()) == []


def default_entry() -> None:
    entry = sh.TableEntry("keyless_t")(is_default=True, action="set_default")
    entry.action["value"] = "12"
    entry.modify()
    (read,) = list(sh.TableEntry("keyless_t")(is_default=True).read())
    assert read.action.msg().params[0].value == b"\x0c"


def errors_are_printed_one_by_one() -> None:
    entry = sh.TableEntry("lpm_t")(action="set_lpm")
    entry.match["hdr.probe.address"] = "10.0.0.0/8"
    entry.action["value"] = "1"
    entry.insert()
    text = refusal(entry.insert)
    assert "At index 0: ALREADY_EXISTS" in text
    assert "lpm_t" in text
    entry.delete()
    assert "NOT_FOUND" in refusal(entry.delete)


def counters() -> None:
    cell = sh.CounterEntry("by_port")(index=4)
    cell.packet_count = 40
    cell.byte_count = 400
    cell.modify()
    read = {one.index: (one.packet_count, one.byte_count) for one in sh.CounterEntry("by_port").read()}
    assert read == {index: (40, 400) if index == 4 else (0, 0) for index in range(16)}

    entry = sh.TableEntry("exact_t")(action="forward")
    entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:01"
    entry.match["standard_metadata.ingress_port"] = "3"
    entry.action["port"] = "7"
    entry.insert()
    direct = sh.DirectCounterEntry("exact_packets")
    direct.table_entry.match["hdr.ethernet.dst"] = "02:00:00:00:00:01"
    direct.table_entry.match["standard_metadata.ingress_port"] = "3"
    direct.packet_count = 5
    direct.modify()
    (read_back,) = list(sh.DirectCounterEntry("exact_packets").read())
    assert read_back.packet_count == 5


def multicast_and_clone() -> None:
    group = sh.MulticastGroupEntry(7)
    group.add(1, 1).add(2, 1)
    group.insert()
    (read,) = list(sh.MulticastGroupEntry(7).read())
    assert [(replica.egress_port, replica.instance) for replica in read.replicas] == [(1, 1), (2, 1)]
    group.delete()

    session = sh.CloneSessionEntry(9)
    session.add(4, 2)
    session.packet_length_bytes = 128
    session.insert()
    (read_session,) = list(sh.CloneSessionEntry(9).read())
    assert read_session.packet_length_bytes == 128
    session.delete()


def a_second_shell_reads_the_p4info_and_is_told_it_is_a_backup() -> None:
    tables = {table.preamble.name for table in sh.context.p4info.tables}
    sh.teardown()
    address = sys.argv[2]
    first = P4RuntimeClient(DEVICE, address, (0, 5))
    try:
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            sh.setup(device_id=DEVICE, grpc_addr=address, election_id=(0, 2), verbose=False)
        assert "not the primary" in said.getvalue()
        assert {table.preamble.name for table in sh.context.p4info.tables} == tables
        assert sh.APIVersion().startswith("1.")
    finally:
        first.tear_down()


def main() -> None:
    session, address, p4info, shared_object = sys.argv[1:]
    config = sh.FwdPipeConfig(p4info, shared_object)
    sh.setup(device_id=DEVICE, grpc_addr=address, election_id=(0, 1), config=config, verbose=False)
    try:
        globals()[session]()
    finally:
        sh.teardown()
    print("done")


if __name__ == "__main__":
    main()
