"""Four workers train a model through proxies, sum homes, and an all-reduce with the same exponent: the same bits."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
import torch
from home_group import run_homes
from proxy_group import group_of, run_group
from torch import nn

from catchment.host.collectives import Communicator, Fixed
from catchment.host.proxy import Client, ProxyError, SumClient
from catchment.host.torch import ProxiedGradients, ProxiedParameters, gradient_table, parameters_of
from catchment.sim.lab.shm_lab import ShmLab

WORKERS, STEPS, EXPONENT = 4, 3, 3

pytestmark = pytest.mark.usefixtures("one_thread")


class Model(nn.Module):
    """Two layers and a parameter that no loss uses."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.body = nn.Sequential(nn.Linear(6, 33), nn.Tanh(), nn.Linear(33, 3))
        self.idle = nn.Parameter(torch.ones(5))

    def forward(self, x: torch.Tensor) -> Any:
        return self.body(x)


def train(
    model: Model, seed: int, rank: int, average: Any, optimizer: torch.optim.Optimizer | None = None
) -> list[torch.Tensor]:
    optimizer = optimizer or torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(STEPS):
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(seed + 1000 * step + rank))
        optimizer.zero_grad()
        (model(x) - x[:, :3].square()).square().mean().backward()
        average()
        optimizer.step()
    return [parameter.detach() for parameter in model.parameters()]


def test_proxies_train_to_the_bits_of_an_all_reduce_with_the_same_exponent(rng: random.Random) -> None:
    """DDP divides by the ranks and sums; so is done here by hand, over one switch for all."""
    seed = rng.randrange(1 << 20)
    table = gradient_table(Model(seed), EXPONENT, shard_bytes=256)
    models = [[Model(seed) for _ in range(WORKERS)] for _ in range(4)]  # torch's seed is the whole process's

    def by_proxies(which: int) -> Any:
        def work(client: SumClient, rank: int) -> list[torch.Tensor]:
            gradients = ProxiedGradients(models[which][rank], client)
            return train(models[which][rank], seed, rank, gradients.wait)

        return work

    with group_of(WORKERS, WORKERS, groups=2) as group:
        by_ring = run_group(group, table, by_proxies(0))
    by_homes = run_homes(2, WORKERS, table, by_proxies(3))
    proxies, ranks = [f"x{at}" for at in range(WORKERS)], [f"r{at}" for at in range(WORKERS)]
    with ShmLab([*proxies, *ranks]) as lab, ExitStack() as exits, ThreadPoolExecutor(WORKERS) as threads:
        job = lab.allreduce(proxies, name="proxies")
        ports = [[exits.enter_context(lab.endpoint(job, host, timeout=120.0))] for host in proxies]
        with group_of(WORKERS, WORKERS, sync="switch") as group:
            by_switch = run_group(group, table, by_proxies(1), ports=ports)
        summed = lab.allreduce(ranks, name="ranks")
        members = [exits.enter_context(lab.communicator(summed, host, timeout=120.0)) for host in ranks]
        by_ranks = list(threads.map(lambda rank: _by_ranks(models[2][rank], members[rank], seed, rank), range(WORKERS)))
    for rank in range(WORKERS):
        for ring, switch, home, plain in zip(
            by_ring[rank], by_switch[rank], by_homes[rank], by_ranks[rank], strict=True
        ):
            assert torch.equal(ring, plain)
            assert torch.equal(home, plain)
            assert torch.equal(switch, plain)
    assert not torch.equal(by_ranks[0][1], Model(seed).body[0].weight)


def _by_ranks(model: Model, member: Communicator, seed: int, rank: int) -> list[torch.Tensor]:
    def average() -> None:
        for parameter in model.parameters():
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad / WORKERS
            member.all_reduce(grad, scaling=Fixed(EXPONENT)).wait()
            parameter.grad = grad

    return train(model, seed, rank, average)


def test_proxies_that_keep_parameters_train_as_an_optimizer_node_does(rng: random.Random) -> None:
    """All models begin with client 0's; torch's own SGD, from the same sums, is the same but for its rounding."""
    seed = rng.randrange(1 << 20)
    table = gradient_table(Model(seed), EXPONENT, shard_bytes=256)
    models, plain = [Model(seed + rank) for rank in range(2)], [Model(seed) for _ in range(2)]

    def kept(client: Client, rank: int) -> list[torch.Tensor]:
        parameters = ProxiedParameters(models[rank], client)
        for step in range(client.step, STEPS):
            x = torch.randn(8, 6, generator=torch.Generator().manual_seed(seed + 1000 * step + rank))
            (models[rank](x) - x[:, :3].square()).square().mean().backward()
            parameters.wait()
        return [parameter.detach() for parameter in models[rank].parameters()]

    def summed(client: Client, rank: int) -> list[torch.Tensor]:
        optimizer = torch.optim.SGD(plain[rank].parameters(), lr=0.05, momentum=0.9)
        gradients = ProxiedGradients(plain[rank], client)
        return train(plain[rank], seed, rank, gradients.wait, optimizer)

    with group_of(2, 2, rule={"name": "sgd", "lr": 0.05}) as group:
        by_proxies = run_group(group, table, kept, parameters=parameters_of(Model(seed)))
    with group_of(2, 2) as group:
        by_workers = run_group(group, table, summed)
    for mine, other, own in zip(by_proxies[0], by_proxies[1], by_workers[0], strict=True):
        assert torch.equal(mine, other)
        torch.testing.assert_close(mine, own, rtol=1e-5, atol=1e-6)


def test_another_models_table_is_refused() -> None:
    def work(client: Client, number: int) -> None:
        del number
        with pytest.raises(ProxyError, match="not the model's"):
            ProxiedGradients(nn.Linear(2, 3), client)
        model = Model(1)
        ProxiedGradients(model, client).detach()
        model(torch.ones(1, 6)).sum().backward()  # nothing is pushed any more: the client may leave

    with group_of(1, 1) as group:
        run_group(group, gradient_table(Model(1), EXPONENT), work)
