"""An unmodified p4runtime-shell drives the switch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import p4runtime_sh.shell as sh
import pytest
from p4runtime_sh.p4runtime import P4RuntimeClient, P4RuntimeWriteException
from server_programs import Program

from catchment.softswitch.process import SwitchProcess


@pytest.fixture
def shell(start: Callable[..., SwitchProcess], kinds: Program) -> Iterator[SwitchProcess]:
    """The shell connected to a switch, the pipeline pushed by the shell itself."""
    process = start(device_id=3)
    sh.setup(
        device_id=3,
        grpc_addr=process.address,
        election_id=(0, 1),
        config=sh.FwdPipeConfig(str(kinds.p4info_file), str(kinds.shared_object)),
        verbose=False,
    )
    yield process
    sh.teardown()


@pytest.mark.usefixtures("shell")
def test_entries_of_every_kind() -> None:
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


@pytest.mark.usefixtures("shell")
def test_default_entry() -> None:
    entry = sh.TableEntry("keyless_t")(is_default=True, action="set_default")
    entry.action["value"] = "12"
    entry.modify()
    (read,) = list(sh.TableEntry("keyless_t")(is_default=True).read())
    assert read.action.msg().params[0].value == b"\x0c"


@pytest.mark.usefixtures("shell")
def test_errors_are_printed_one_by_one() -> None:
    entry = sh.TableEntry("lpm_t")(action="set_lpm")
    entry.match["hdr.probe.address"] = "10.0.0.0/8"
    entry.action["value"] = "1"
    entry.insert()
    with pytest.raises(P4RuntimeWriteException) as caught:
        entry.insert()
    text = str(caught.value)
    assert "At index 0: ALREADY_EXISTS" in text
    assert "lpm_t" in text
    entry.delete()
    with pytest.raises(P4RuntimeWriteException, match="NOT_FOUND"):
        entry.delete()


@pytest.mark.usefixtures("shell")
def test_counters() -> None:
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


@pytest.mark.usefixtures("shell")
def test_multicast_and_clone() -> None:
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


def test_a_second_shell_reads_the_p4info_and_is_told_it_is_a_backup(
    shell: SwitchProcess, kinds: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    sh.teardown()
    first = P4RuntimeClient(3, shell.address, (0, 5))
    try:
        sh.setup(device_id=3, grpc_addr=shell.address, election_id=(0, 2), verbose=False)
        assert "not the primary" in capsys.readouterr().out
        assert {table.preamble.name for table in sh.context.p4info.tables} == {
            table.preamble.name for table in kinds.p4info.tables
        }
        assert sh.APIVersion().startswith("1.")
    finally:
        first.tear_down()
