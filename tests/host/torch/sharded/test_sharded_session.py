"""A sharded model besides its sums: its plan, its memory, what it refuses, and what it says when a rank is gone."""

from __future__ import annotations

import itertools
import mmap
import random
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from catchment.host.torch.sharded.errors import ShardingError
from catchment.host.torch.sharded.footprint import footprint
from catchment.host.torch.sharded.gradients import SHARED
from catchment.host.torch.sharded.groups import Groups
from catchment.host.torch.sharded.links import Links
from catchment.host.torch.sharded.options import MiCSOptions
from catchment.host.torch.sharded.session import ShardedModel
from catchment.sim.lab.rank_lab import RankLab, together

SIZE, WIDTH, LAYERS = 4, 16, 8


@pytest.fixture(scope="module")
def lab() -> Iterator[RankLab]:
    """A switch of four ranks, whose ports lose frames."""
    faults = [f"{port}:loss=0.03,seed={port}" for port in range(1, SIZE + 1)]
    with RankLab(SIZE, faults=faults).running() as running:
        yield running


class Stack(nn.Module):
    """Equal layers, which run in the order of `order`."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(layers))
        self.order = list(range(layers))
        with torch.no_grad():
            for number, value in enumerate(itertools.chain(self.parameters(), self.buffers())):
                value.copy_(torch.sin(torch.arange(value.numel()) + number).view(value.shape) / 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for number in self.order:
            x = torch.tanh(self.layers[number](x))
        return x


def step(mics: ShardedModel, rank: int, number: int = 0) -> None:
    with mics.micro_step(number):
        mics.model(torch.full((2, WIDTH), 0.1 * rank + 0.1)).sum().backward()


def on_all(
    lab: RankLab, groups: Groups, options: MiCSOptions, body: Callable[[ShardedModel], object], layers: int = LAYERS
) -> list[object]:
    """`body` on every rank."""

    def run(own: Links) -> object:
        with ShardedModel(Stack(layers), options, own) as mics:
            return body(mics)

    with lab.linked(groups) as links:
        return together([lambda own=own: run(own) for own in links])


def test_layers_are_gathered_ahead_and_those_in_memory_are_not_gathered_again(lab: RankLab) -> None:
    def body(mics: ShardedModel) -> list[int]:
        counts = []
        for _ in range(3):
            before = mics.gathers
            step(mics, mics.links.rank)
            counts.append(mics.gathers - before)
        return counts

    prefetch = 1
    turned = prefetch + 2  # these are in memory when forward ends, and backward begins with them
    assert (
        on_all(lab, Groups.of(SIZE, 4, 2), MiCSOptions(prefetch=prefetch), body) == [[2 * LAYERS - turned] * 3] * SIZE
    )


def test_small_layers_stay_until_the_optimizer_steps(lab: RankLab) -> None:
    def body(mics: ShardedModel) -> int:
        for number in range(2):
            step(mics, mics.links.rank, number)
        return mics.gathers

    options = MiCSOptions(persist_below=WIDTH * WIDTH * 2, micro_steps=2)
    assert on_all(lab, Groups.of(SIZE, 2, 2), options, body) == [LAYERS] * SIZE


def test_a_micro_step_does_not_wait_for_its_sums_until_the_step_ends(lab: RankLab) -> None:
    """The last rank goes backward only when all others have left their first micro-step."""
    left = threading.Semaphore(0)

    def body(mics: ShardedModel) -> None:
        rank = mics.links.rank
        with mics.micro_step(0):
            loss = mics.model(torch.full((2, WIDTH), 0.1 * rank + 0.1)).sum()
            if rank == SIZE - 1:
                assert all(left.acquire(timeout=60) for _ in range(SIZE - 1))
            loss.backward()
        left.release()
        step(mics, rank, 1)
        assert all(parameter.grad is not None for parameter in mics.parameters())

    kept = MiCSOptions(persist_below=WIDTH * WIDTH * 2, micro_steps=2)  # no gather in backward would wait for that rank
    on_all(lab, Groups.of(SIZE, 4, 2), kept, body, layers=SHARED)  # one more would wait for memory of the first


def test_a_step_that_leaves_the_plan_is_told_and_still_right(lab: RankLab, rng: random.Random) -> None:
    new = list(range(LAYERS))
    rng.shuffle(new)
    new[:2] = sorted(new[:2], reverse=True)  # never the first order

    def body(mics: ShardedModel) -> tuple[int, torch.Tensor]:
        for order in (None, None, new, new):
            if order is not None:
                mics.model.order = order
            step(mics, mics.links.rank)
        return mics.deviations, torch.cat([value.grad for value in mics.parameters() if value.grad is not None])

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = on_all(lab, Groups.of(SIZE, 2, 2), MiCSOptions(accumulate="int"), body)
    assert any("uses layer layers." in str(each.message) for each in told)
    right = Stack(LAYERS)
    right.order = new
    sum(right(torch.full((2, WIDTH), 0.1 * rank + 0.1)).sum() / SIZE for rank in range(SIZE)).backward()
    for rank, (deviations, gradients) in enumerate(found):
        assert deviations == 1
        chunk = WIDTH * (WIDTH + 1) // 2
        for number, layer in enumerate(right.layers):
            flat = torch.cat([value.grad.reshape(-1) for value in layer.parameters()])
            own = gradients[number * chunk : (number + 1) * chunk]
            torch.testing.assert_close(own, flat[rank % 2 * chunk :][:chunk], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "options", [MiCSOptions(), MiCSOptions(accumulate="int"), MiCSOptions(param_dtype=torch.bfloat16)]
)
def test_memory_is_what_the_footprint_says_and_stays_where_it_is(lab: RankLab, options: MiCSOptions) -> None:
    def body(mics: ShardedModel) -> tuple[int, int]:
        optimizer = torch.optim.SGD(mics.parameters(), lr=0.01)
        where: list[set[int]] = []
        for _ in range(4):
            step(mics, mics.links.rank)
            places = {value.grad.data_ptr() for value in mics.parameters() if value.grad is not None}
            places |= {value.data_ptr() for value in (*mics.parameters(), *mics.model.parameters())}
            where.append(places)
            optimizer.step()
            optimizer.zero_grad()
        assert all(places == where[0] for places in where)
        need = footprint([WIDTH * (WIDTH + 1)] * LAYERS, options, 4)
        adam = 8 * sum(layout.chunk for layout in mics.shards.layouts)
        return need.states + need.layers, sum(mics.memory.values()) + adam

    for predicted, taken in on_all(lab, Groups.of(SIZE, 4, 2), options, body):
        assert taken == pytest.approx(predicted, rel=0.02)


@pytest.mark.slow
def test_memory_does_not_grow_in_a_thousand_steps(lab: RankLab) -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * mmap.PAGESIZE

    def body(mics: ShardedModel) -> list[int]:
        optimizer = torch.optim.AdamW(mics.parameters(), lr=1e-4)
        sizes = []
        for number in range(1000):
            step(mics, mics.links.rank)
            optimizer.step()
            optimizer.zero_grad()
            if number % 100 == 99:
                sizes.append(resident())
        return sizes

    for sizes in on_all(lab, Groups.of(SIZE, 4, 2), MiCSOptions(), body):
        assert max(sizes[2:]) - sizes[1] < 4 << 20, sizes


def test_a_micro_step_that_is_left_early_or_out_of_order_is_refused(lab: RankLab) -> None:
    def body(mics: ShardedModel) -> None:
        with pytest.raises(ShardingError, match="micro-step 1, where 0 of 2 follows"), mics.micro_step(1):
            pass
        with pytest.raises(ShardingError, match="ended without a forward and a backward"), mics.micro_step(0):
            pass
        with pytest.raises(ShardingError, match="outside of micro_step"):
            mics.model(torch.zeros(1, WIDTH))
        with torch.no_grad():
            assert mics.model(torch.zeros(1, WIDTH)).shape == (1, WIDTH)

    on_all(lab, Groups.of(SIZE, 2, 2), MiCSOptions(micro_steps=2), body)


@pytest.mark.filterwarnings("ignore:a training pass")
def test_gradients_are_clipped_by_the_norm_of_all_shards(lab: RankLab) -> None:
    def body(mics: ShardedModel) -> tuple[float, float, float]:
        step(mics, mics.links.rank)
        norms = (mics.clip_gradients(1e9), mics.clip_gradients(0.5), mics.clip_gradients(0.1))
        with mics.micro_step(0):
            mics.model(torch.ones(1, WIDTH)).sum().backward()
            again = mics.model(torch.ones(1, WIDTH)).sum()
            with pytest.raises(ShardingError, match="backward ran twice"):
                again.backward()
        return norms

    right = Stack(LAYERS)
    sum(right(torch.full((2, WIDTH), 0.1 * rank + 0.1)).sum() / SIZE for rank in range(SIZE)).backward()
    norm = float(torch.cat([value.grad.reshape(-1) for value in right.parameters()]).norm())
    assert norm > 0.5
    for first, second, third in on_all(lab, Groups.of(SIZE, 4, 2), MiCSOptions(), body):
        assert (first, second, third) == pytest.approx((norm, norm, 0.5), rel=1e-4)


class Named(Stack):
    """Takes what it computes by name, in a list of a dictionary."""

    def forward(self, *, inputs: dict[str, list[torch.Tensor]]) -> torch.Tensor:
        return super().forward(inputs["x"][0])


def test_inputs_by_name_are_computed_in_the_chosen_type(lab: RankLab) -> None:
    def run(own: Links) -> torch.dtype:
        with ShardedModel(Named(2), MiCSOptions(param_dtype=torch.bfloat16), own) as mics, mics.micro_step(0):
            output = mics.model(inputs={"x": [torch.ones(2, WIDTH)]})
            output.float().sum().backward()
        return output.dtype

    with lab.linked(Groups.of(SIZE, 2, 2)) as links:
        assert together([lambda own=own: run(own) for own in links]) == [torch.bfloat16] * SIZE


class Bypassing(Stack):
    """Uses the last layer's weight, and not the layer."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *first, last = self.layers
        for layer in first:
            x = layer(x)
        return x @ last.weight.T


class Reusing(Stack):
    """Uses the first layer's weight once more when the layer is over."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first = self.layers[0]
        assert isinstance(first, nn.Linear) and first.weight.shape == (WIDTH, WIDTH)  # which is no use
        return super().forward(x) @ first.weight.T


@pytest.mark.parametrize(("model", "layer"), [(Bypassing, 2), (Reusing, 0)])
def test_parameters_that_are_used_outside_of_their_layer_are_refused(
    lab: RankLab, model: type[Stack], layer: int
) -> None:
    """They may be another layer's memory then: what is computed of them would be wrong without a word."""

    def run(own: Links) -> None:
        told = rf"of layer layers\.{layer} are used while it does not compute.*kept="
        with ShardedModel(model(3), MiCSOptions(), own) as mics:
            with pytest.raises(ShardingError, match=told):
                step(mics, own.rank)
            with torch.no_grad(), pytest.raises(ShardingError, match=told):
                mics.model(torch.ones(1, WIDTH))
            torch.cat([parameter.flatten() for parameter in mics.model.parameters()])  # nobody looks any more

    with lab.linked(Groups.of(SIZE, 2, 2)) as links:
        together([lambda own=own: run(own) for own in links])


class Unseen(Stack):
    """Uses the last layer's weight where nobody sees calls of torch, as compiled code does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        *first, last = self.layers
        for layer in first:
            x = layer(x)
        with torch._C.DisableTorchFunction():
            return x @ last.weight.T


def test_parameters_of_a_layer_that_did_not_run_get_no_gradient(lab: RankLab) -> None:
    """Backward tells where a call of torch is not seen."""

    def run(own: Links) -> None:
        told = r"of layer layers\.2 were used without its forward"
        with ShardedModel(Unseen(3), MiCSOptions(), own) as mics, pytest.raises(ShardingError, match=told):
            step(mics, own.rank)

    with lab.linked(Groups.of(SIZE, 2, 2)) as links:
        together([lambda own=own: run(own) for own in links])


def test_a_loss_of_parameters_is_refused(lab: RankLab) -> None:
    def body(mics: ShardedModel) -> None:
        stack = mics.model
        assert isinstance(stack, Stack)
        with mics.micro_step(0):
            output = stack(torch.ones(1, WIDTH))
            with pytest.raises(ShardingError, match=r"of layer layers\.0 are used"):
                torch.cat([output, *stack.layers[0].parameters()])
            output.sum().backward()

    on_all(lab, Groups.of(SIZE, 2, 2), MiCSOptions(), body)


@pytest.mark.parametrize("persist_below", [0, 2 * WIDTH * WIDTH])
def test_kept_layers_may_be_used_outside_of_them(lab: RankLab, persist_below: int) -> None:
    """And so may small ones, which have memory of their own; both train as they do unsharded."""
    inputs, rate = torch.linspace(-1, 1, WIDTH).expand(1, WIDTH), 0.5
    kept = [] if persist_below else ["layers.0"]

    def run(own: Links) -> torch.Tensor:
        options = MiCSOptions(persist_below=persist_below)
        with ShardedModel(Reusing(LAYERS), options, own, kept=kept) as mics:
            optimizer = torch.optim.SGD(mics.parameters(), lr=rate)
            step(mics, own.rank)
            optimizer.step()
            with torch.no_grad():
                output: torch.Tensor = mics.model(inputs)
            return output

    right = Reusing(LAYERS)
    sum(right(torch.full((2, WIDTH), 0.1 * rank + 0.1)).sum() / SIZE for rank in range(SIZE)).backward()
    torch.optim.SGD(right.parameters(), lr=rate).step()
    with lab.linked(Groups.of(SIZE, 4, 2)) as links:
        for output in together([lambda own=own: run(own) for own in links]):
            torch.testing.assert_close(output, right(inputs).detach(), rtol=1e-4, atol=1e-5)


def test_gradients_that_are_cut_are_counted(lab: RankLab) -> None:
    def body(mics: ShardedModel) -> int:
        step(mics, mics.links.rank)
        return mics.saturated

    counts = on_all(lab, Groups.of(SIZE, 4, 2), MiCSOptions(accumulate="int", exponent=-20), body)
    assert all(isinstance(count, int) and count > 0 for count in counts)


def test_a_frozen_parameter_is_refused(lab: RankLab) -> None:
    with lab.linked(Groups.of(SIZE, 1, 1)) as links:
        frozen = Stack(LAYERS)
        frozen.layers[3].bias.requires_grad_(False)
        with pytest.raises(ShardingError, match=r"parameter bias of layer layers\.3 is frozen"):
            ShardedModel(frozen, MiCSOptions(), links[0])


def test_a_rank_that_is_gone_is_named_on_all_its_groups() -> None:
    gone = 2
    with RankLab(SIZE, timeout=1.5).running() as lab, lab.linked(Groups.of(SIZE, 4, 2)) as links:

        def body(own: Links) -> ShardingError | None:
            with ShardedModel(Stack(LAYERS), MiCSOptions(), own) as mics:
                step(mics, own.rank)
                if own.rank == gone:
                    own.close(0.0)
                    return None
                with pytest.raises(ShardingError) as raised:
                    step(mics, own.rank)
                return raised.value

        errors = together([lambda own=own: body(own) for own in links])
    for rank in (0, 3):  # those that share a lane or a node with it
        assert errors[rank].ranks == (gone,), errors[rank]
        assert "layer layers." in str(errors[rank])
        assert f"rank {gone} of the world" in str(errors[rank])
    assert errors[1] is not None
