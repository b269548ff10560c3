"""Many clients at once: batches stay whole, nothing is lost, readers see no half of a batch."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from raw_client import Names, RawClient, UpdatesFailedError

from catchment.softswitch.process import SwitchProcess
from catchment.wire.generated import p4runtime_pb2

BATCH = 50


def route(names: Names, number: int, value: int) -> p4runtime_pb2.Entity:
    return names.entry("exact_t", {1: number, 2: number % 512}, ("forward", [value]))


def test_concurrent_writers_of_different_roles_lose_nothing(switch: SwitchProcess, names: Names) -> None:
    writers = 8

    def write(writer: int) -> None:
        with RawClient(switch.address) as client:
            assert client.arbitrate((0, 1), role=f"role{writer}") == 0
            for batch in range(10):
                first = (writer * 10 + batch) * BATCH
                updates = [
                    p4runtime_pb2.Update(type="INSERT", entity=route(names, first + k, writer)) for k in range(BATCH)
                ]
                client.write(*updates, role=f"role{writer}")

    with ThreadPoolExecutor(writers) as pool:
        list(pool.map(write, range(writers)))
    with RawClient(switch.address) as client:
        read = client.read(names.entry("exact_t"))
    owners = {
        int.from_bytes(e.table_entry.match[0].exact.value, "big"): e.table_entry.action.action.params[0].value[0]
        for e in read
    }
    assert owners == {number: number // BATCH // 10 for number in range(writers * 10 * BATCH)}


def test_of_two_inserts_of_one_key_exactly_one_wins(switch: SwitchProcess, names: Names) -> None:
    rounds = 60
    barrier = threading.Barrier(4)

    def write(writer: int) -> list[int]:
        outcomes = []
        with RawClient(switch.address) as client:
            client.arbitrate((0, 1), role=f"role{writer}")
            for number in range(rounds):
                barrier.wait(120)
                insert = p4runtime_pb2.Update(type="INSERT", entity=route(names, number, writer))
                try:
                    client.write(insert, role=f"role{writer}")
                    outcomes.append(0)
                except UpdatesFailedError as error:
                    outcomes.append(error.errors[0][0])
        return outcomes

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(write, range(4)))
    already_exists = 6
    for outcomes in zip(*results, strict=True):
        assert sorted(outcomes) == [0] + [already_exists] * 3


def test_a_reader_never_sees_half_a_batch(switch: SwitchProcess, names: Names) -> None:
    """The writer changes every entry in one batch; each read must show one value only."""
    done = threading.Event()

    def read() -> int:
        seen = 0
        with RawClient(switch.address) as client:
            while not done.is_set() or seen == 0:
                values = {
                    entity.table_entry.action.action.params[0].value for entity in client.read(names.entry("exact_t"))
                }
                assert len(values) == 1
                seen += 1
        return seen

    with RawClient(switch.address) as client:
        client.arbitrate()
        client.insert(*[route(names, number, 0) for number in range(BATCH)])
        with ThreadPoolExecutor(3) as pool:
            readers = [pool.submit(read) for _ in range(3)]
            try:
                for value in range(1, 100):
                    client.modify(*[route(names, number, value) for number in range(BATCH)])
            finally:
                done.set()
            assert all(reader.result() > 0 for reader in readers)


def test_writes_of_a_former_primary_never_land_after_its_successor_knows(switch: SwitchProcess, names: Names) -> None:
    """Primaries take over from one another while each writes; the last one's value must stand."""
    stop = threading.Event()

    def keep_writing(client: RawClient, value: int) -> None:
        while not stop.is_set():
            try:
                client.modify(route(names, 1, value))
            except Exception:
                return

    with RawClient(switch.address) as first:
        first.arbitrate((0, 1))
        first.insert(route(names, 1, 1))
        threads = []
        clients = [first]
        threads.append(threading.Thread(target=keep_writing, args=(first, 1)))
        threads[0].start()
        for number in range(2, 12):
            client = RawClient(switch.address)
            assert client.arbitrate((0, number)) == 0
            client.modify(route(names, 1, number))
            read = client.read(route(names, 1, 0))
            assert read[0].table_entry.action.action.params[0].value == bytes([number])
            clients.append(client)
            threads.append(threading.Thread(target=keep_writing, args=(client, number)))
            threads[-1].start()
        stop.set()
        for thread in threads:
            thread.join(120)
        for client in clients:
            client.close()
