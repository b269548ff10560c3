"""Sum homes and their clients for tests: a job for each home on one switch, everybody a thread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

from proxy_group import LIMIT, group_of, run_group

from catchment.host.proxy import HomeClient, SumClient, SumHome, TensorTable
from catchment.sim.lab.shm_lab import ShmLab

Work = Callable[[Any, int], Any]
Tables = TensorTable | Callable[[int], TensorTable]


def run_homes(  # noqa: PLR0917
    homes: int,
    clients: int,
    table: Tables,
    work: Work,
    routes: Sequence[Sequence[int] | None] = (),
    timeout: float = 4 * LIMIT,
    serve: Callable[[SumHome], None] = SumHome.run,
) -> list[Any]:
    """Start everybody; what `work` gives for each client, by number, or the first client's error."""
    ports = [[f"w{client}h{home}" for client in range(clients)] for home in range(homes)]
    roots = [f"home{home}" for home in range(homes)]
    with ExitStack() as exits:
        lab = exits.enter_context(ShmLab([*(host for own in ports for host in own), *roots]))
        jobs = [lab.luwu(own, root=root, slots=64, name=root) for own, root in zip(ports, roots, strict=True)]

        def home(number: int) -> None:
            with lab.endpoint(jobs[number], roots[number], timeout=timeout) as port:
                serve(SumHome(port, number, homes, clients))

        def client(number: int) -> Any:
            own = table if isinstance(table, TensorTable) else table(number)
            with ExitStack() as mine:
                ends = [
                    mine.enter_context(lab.endpoint(job, ports[at][number], timeout=timeout))
                    for at, job in enumerate(jobs)
                ]
                chosen = routes[number] if routes else None
                with HomeClient(ends, number, clients, own, chosen, timeout=LIMIT / 2) as one:
                    return work(one, number)

        threads = exits.enter_context(ThreadPoolExecutor(homes + clients))
        served: list[Future[None]] = [threads.submit(home, number) for number in range(homes)]
        found = [threads.submit(client, number) for number in range(clients)]
        exits.callback(lambda: [each.exception(LIMIT) for each in served])
        values = [each.result(LIMIT) for each in found]
        for each in served:
            each.result(LIMIT)
        return values


def run_variant(variant: str, count: int, clients: int, table: Tables, work: Work, **options: Any) -> list[Any]:
    """The same clients' work by proxies on a ring ("proxies") or by sum homes ("homes")."""
    if variant == "homes":
        return run_homes(count, clients, table, work, **options)
    with group_of(count, clients) as group:
        return run_group(group, table, work, **options)


VARIANTS = ("proxies", "homes")
__all__ = ["VARIANTS", "SumClient", "run_homes", "run_variant"]
