"""States in and out as torch has them: in memory, out of core, by number, by name, as DCP checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from out_of_core import TABLE, WORKERS, create, digest, gradient, node_options, train, train_in_memory
from test_groups import FASTER, FROZEN, NO_DECAY, Model
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from typer.testing import CliRunner

from catchment.cli import app
from catchment.host.layers import TrainingError
from catchment.host.optimizer import Adam, DynamicLossScale, Sgd, UpdateRule
from catchment.host.optimizer.dcp import export_dcp, look_at_dcp
from catchment.host.optimizer.store import Precision, Rule, Store, StoreError
from catchment.host.optimizer.store.importing import import_model
from catchment.host.optimizer.torch_state import by_name, numbered

GROUPED = replace(node_options(), groups=(NO_DECAY, FASTER))
RULES = [Adam(lr=0.01, decay=0.1), Sgd(lr=0.05, momentum=0.8, decay=0.02, nesterov=True)]


def torch_optimizer(model: Model, rule: UpdateRule) -> torch.optim.Optimizer:
    """The same kind, with other constants: those of the state are to be taken."""
    if isinstance(rule, Adam):
        return torch.optim.AdamW(model.named_parameters(), lr=1.0)
    return torch.optim.SGD(model.named_parameters(), lr=1.0, momentum=0.1)


def steps_of_torch(model: Model, optimizer: torch.optim.Optimizer, first: int, steps: int) -> None:
    """Training steps with the mean of the workers' gradients, exact to fp32."""
    named = dict(model.named_parameters())
    for step in range(first, first + steps):
        for layer in TABLE:
            for number, tensor in enumerate(layer.tensors):
                parts = [gradient(step, worker, layer.index, number).astype(np.float64) for worker in range(WORKERS)]
                mean = torch.from_numpy((np.sum(parts, axis=0) / WORKERS).astype(np.float32))
                named[tensor.name].grad = mean.view(tensor.shape)
        optimizer.step()


def assert_near(model: Model, state: dict[str, Any], lr: float, steps: int) -> None:
    """The documented rounding of each step; four times that, for the sums' own rounding (2^-23 of their range)."""
    for name, parameter in model.named_parameters():
        bound = 4 * steps * 2.0**-21 * (parameter.detach().abs() + 10 * lr)
        assert ((parameter.detach() - state[name]).abs() <= bound).all(), name


@pytest.mark.parametrize("rule", RULES, ids=["adamw", "sgd"])
@pytest.mark.parametrize("way", ["number", "name"])
def test_torch_goes_on_from_the_node_in_memory(rule: UpdateRule, way: str) -> None:
    options = replace(node_options(rule), rate=lambda _: 1.0)
    state = train_in_memory([True] * 4, options)[0].state_dict()
    further = train_in_memory([True] * 3, options, state)[0]
    assert further.trained == 7
    model = Model()
    optimizer = torch_optimizer(model, rule)
    if way == "number":
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(numbered(state["optimizer"]))
    else:
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    assert optimizer.param_groups[0]["lr"] == rule.lr
    steps_of_torch(model, optimizer, 4, 3)
    assert_near(model, further.state_dict()["model"], rule.lr, 3)
    assert not torch.equal(model.head.weight, state["model"]["head.weight"])


@pytest.mark.parametrize("rule", RULES, ids=["adamw", "sgd"])
@pytest.mark.parametrize("way", ["number", "name"])
def test_the_node_goes_on_from_torch(rule: UpdateRule, way: str) -> None:
    options = replace(node_options(rule), rate=lambda _: 1.0)
    model = Model()
    torch.manual_seed(5)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter)
    optimizer = torch_optimizer(model, rule)
    fitting = train_in_memory([], options)[0].state_dict()["optimizer"]["param_groups"][0]
    optimizer.param_groups[0].update({name: value for name, value in fitting.items() if name != "params"})
    steps_of_torch(model, optimizer, 3, 2)
    if way == "number":
        names = [name for name, _ in model.named_parameters()]
        by_torch: dict[str, Any] = {"model": model.state_dict(), "optimizer": by_name(optimizer.state_dict(), names)}
        assert by_name(optimizer.state_dict())["state"].keys() == by_torch["optimizer"]["state"].keys()
    else:
        by_torch = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    by_torch["model"] = {name: tensor.clone() for name, tensor in by_torch["model"].items()}
    node = train_in_memory([], options, by_torch)[0]
    assert node.trained == (2 if isinstance(rule, Adam) else 0)
    found = node.state_dict()
    for name, kept in by_torch["optimizer"]["state"].items():
        for key, value in kept.items():
            assert torch.equal(found["optimizer"]["state"][name][key], torch.as_tensor(value))
    assert all(torch.equal(found["model"][name], value) for name, value in by_torch["model"].items())


def test_a_resumed_node_in_memory_goes_on_to_the_same_bits() -> None:
    """Exponents, step counts, groups and the schedule, too."""
    whole = train_in_memory([True] * 6, GROUPED)[0].state_dict()
    half = train_in_memory([True] * 3, GROUPED)[0].state_dict()
    again = train_in_memory([True] * 3, GROUPED, half)[0].state_dict()
    assert again["catchment"] == whole["catchment"]
    assert all(torch.equal(again["model"][name], whole["model"][name]) for name in whole["model"])
    other = train_in_memory([True] * 3, GROUPED, {"model": half["model"]})[0].state_dict()
    assert not torch.equal(other["model"]["head.weight"], whole["model"]["head.weight"])


@pytest.mark.parametrize("moments", list(Precision))
def test_a_checkpoint_goes_to_another_number_of_devices_with_the_same_bits(tmp_path: Path, moments: Precision) -> None:
    how = {"options": replace(GROUPED, loss_scale=DynamicLossScale(2.0**15, growth=2)), "half": True}
    with create([tmp_path / "a"], moments=moments) as store:
        train(store, 5, **how)
        store.take_snapshot("fifth")
        train(store, 7, **how)
        export_dcp(store, tmp_path / "out", state=store.snapshots["fifth"])
        wanted = digest(store)
        with pytest.raises(StoreError, match="a checkpoint already"):
            export_dcp(store, tmp_path / "out")
    places = [tmp_path / name for name in "xyz"]
    with import_model(look_at_dcp(tmp_path / "out"), places, moments=moments) as store:
        assert store.state.trained == 5
        assert store.geometry.table == TABLE
        train(store, 7, **how)
        assert digest(store) == wanted


def test_memory_and_disk_take_each_others_checkpoints(tmp_path: Path) -> None:
    state = train_in_memory([True] * 3, GROUPED)[0].state_dict()
    dcp.save(state, checkpoint_id=tmp_path / "memory", no_dist=True)
    further = train_in_memory([True] * 2, GROUPED, state)[0]
    with import_model(look_at_dcp(tmp_path / "memory"), [tmp_path / "a", tmp_path / "b"]) as store:
        node, _ = train(store, 5, options=GROUPED)
        for layer in range(len(TABLE)):
            assert torch.equal(node.weights(layer), further.weights(layer))
        export_dcp(store, tmp_path / "disk")
    loaded = train_in_memory([], GROUPED)[0].state_dict()
    dcp.load(loaded, checkpoint_id=tmp_path / "disk", no_dist=True)
    expected = further.state_dict()
    for name, tensor in expected["model"].items():
        assert torch.equal(loaded["model"][name], tensor)
        for key, value in expected["optimizer"]["state"][name].items():
            assert torch.equal(loaded["optimizer"]["state"][name][key], value)
    assert loaded["optimizer"]["param_groups"] == expected["optimizer"]["param_groups"]
    again = train_in_memory([True], GROUPED, loaded)[0]
    assert torch.equal(again.weights(3), train_in_memory([True], GROUPED, expected)[0].weights(3))


@pytest.mark.parametrize("rule", RULES, ids=["adamw", "sgd"])
def test_plain_torch_loads_and_writes_checkpoints(tmp_path: Path, rule: UpdateRule) -> None:
    """Both ways by torch's own functions; groups, one of which stays as it is, come with it."""
    groups = (FROZEN,)
    options = replace(node_options(rule), rate=lambda _: 1.0, groups=groups)
    with create([tmp_path / "a", tmp_path / "b"], rule) as store:
        train(store, 4, options=options)
        export_dcp(store, tmp_path / "out")
        train(store, 6, options=options)
        export_dcp(store, tmp_path / "later")
    model = Model()
    model.embedding.weight.requires_grad_(False)
    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
    kind = torch.optim.AdamW if isinstance(rule, Adam) else torch.optim.SGD
    optimizer = kind(trained, lr=1.0, **({} if isinstance(rule, Adam) else {"momentum": 0.1}))
    _load_by_torch(tmp_path / "out", model, optimizer)
    assert optimizer.param_groups[0]["lr"] == rule.lr
    steps_of_torch(model, optimizer, 4, 2)
    later = {"model": Model().state_dict()}
    dcp.load(later, checkpoint_id=tmp_path / "later", no_dist=True)
    assert_near(model, later["model"], rule.lr, 2)
    written = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.save(written, checkpoint_id=tmp_path / "back", no_dist=True)
    with import_model(look_at_dcp(tmp_path / "back"), [tmp_path / "c"], rule=rule.kind) as store:
        assert store.state.layers[0].steps == (0,)
        if rule.kind is Rule.ADAM:
            assert store.state.layers[3].steps == (6,)
            assert store.state.trained == 6
        node, _ = train(store, store.state.trained, options=options)
        head = next(layer.index for layer in store.geometry.table if layer.name == "head")
        assert torch.equal(node.weights(head).view(7, 9), model.head.weight)


def _load_by_torch(folder: Path, model: Model, optimizer: torch.optim.Optimizer) -> None:
    state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    dcp.load(state, checkpoint_id=folder, no_dist=True)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])


def test_by_command(tmp_path: Path) -> None:
    with create([tmp_path / "a"]) as store:
        train(store, 2, options=GROUPED)
        wanted = digest(store)
    run = CliRunner().invoke
    written = run(app, ["optimizer", "export", str(tmp_path / "out"), "-s", str(tmp_path / "a"), "--dcp"])
    assert written.exit_code == 0, written.output
    read = run(
        app, ["optimizer", "import", str(tmp_path / "out"), "-s", str(tmp_path / "b"), "-s", str(tmp_path / "c")]
    )
    assert read.exit_code == 0, read.output
    with Store.open([tmp_path / "b", tmp_path / "c"]) as store:
        assert digest(store) == wanted


def _without(state: dict[str, Any], name: str) -> dict[str, Any]:
    return {**state, "model": {key: value for key, value in state["model"].items() if key != name}}


def _nameless(optimizer: dict[str, Any]) -> dict[str, Any]:
    """The state of an optimizer that was given parameters without names."""
    for group in optimizer["param_groups"]:
        del group["param_names"]
    return optimizer


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s: _without(s, "head.weight"), "no weights of head.weight"),
        (lambda s: {"model": {**s["model"], "head.weight": torch.ones(9, 7)}}, r"shape \(9, 7\), the table says"),
        (lambda s: {**s, "optimizer": _nameless(numbered(s["optimizer"]))}, "7 parameters, and 0 names"),
        (
            lambda s: {
                **s,
                "optimizer": {"state": {"head.weight": {"momentum_buffer": torch.ones(7, 9)}}, "param_groups": []},
            },
            "momentum_buffer",
        ),
        (
            lambda s: {**s, "optimizer": {"state": {"head.weight": {"exp_avg": torch.ones(7, 9)}}, "param_groups": []}},
            "lacks",
        ),
    ],
)
def test_states_that_do_not_fit(spoil: Callable[[dict[str, Any]], dict[str, Any]], message: str) -> None:
    state = train_in_memory([True], node_options())[0].state_dict()
    with pytest.raises(TrainingError, match=message):
        train_in_memory([True], node_options(), spoil(state))


def _noted(state: dict[str, Any], notes: Any) -> dict[str, Any]:
    """A state whose last layer has other notes."""
    own = json.loads(state["catchment"])
    own["layers"][-1]["notes"] = notes
    return {**state, "catchment": json.dumps(own)}


def _counted(state: dict[str, Any], step: float) -> dict[str, Any]:
    held = state["optimizer"]["state"]
    held = {**held, "head.weight": {**held["head.weight"], "step": torch.tensor(step)}}
    return {**state, "optimizer": {**state["optimizer"], "state": held}}


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda s: {**s, "catchment": "{"}, "entry 'catchment' of the state is damaged"),
        (lambda s: {**s, "catchment": "[]"}, "entry 'catchment' of the state is damaged"),
        (lambda s: {**s, "catchment": '{"trained": -1}'}, "-1 training passes"),
        (lambda s: _noted(s, []), "entry 'catchment' of the state is damaged"),
        (lambda s: _noted(s, [["x"]]), "entry 'catchment' of the state is damaged"),
        (lambda s: _noted(s, [[1]]), "entry 'catchment' of the state is damaged"),
        (lambda s: _counted(s, float("nan")), "head.weight was updated nan times"),
        (lambda s: _counted(s, -3.0), "head.weight was updated -3 times"),
        (lambda s: {"model": {**s["model"], "head.weight": [1.0]}}, "head.weight are list, no tensor"),
    ],
)
def test_a_damaged_state_leaves_the_node_as_it_was(
    spoil: Callable[[dict[str, Any]], dict[str, Any]], message: str
) -> None:
    node = train_in_memory([True] * 2, node_options())[0]
    before = node.state_dict()
    with pytest.raises(TrainingError, match=message):
        node.load_state_dict(spoil(train_in_memory([True], node_options())[0].state_dict()))
    after = node.state_dict()
    assert after["catchment"] == before["catchment"]
    assert all(torch.equal(after["model"][name], value) for name, value in before["model"].items())


def test_checkpoints_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no checkpoint"):
        look_at_dcp(tmp_path)
    model = Model()
    dcp.save({"net": model.state_dict()}, checkpoint_id=tmp_path / "elsewhere", no_dist=True)
    with pytest.raises(StoreError, match="no weights below 'model': there is net"):
        look_at_dcp(tmp_path / "elsewhere")
    optimizer = torch.optim.AdamW(model.parameters())
    steps_of_torch(model, optimizer, 0, 1)
    by_number = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    dcp.save(by_number, checkpoint_id=tmp_path / "numbers", no_dist=True)
    with pytest.raises(StoreError, match="by number"):
        look_at_dcp(tmp_path / "numbers")
    amsgrad = torch.optim.AdamW(model.parameters(), amsgrad=True)
    steps_of_torch(model, amsgrad, 0, 1)
    state = dict(zip(("model", "optimizer"), get_state_dict(model, amsgrad), strict=True))
    dcp.save(state, checkpoint_id=tmp_path / "amsgrad", no_dist=True)
    with pytest.raises(StoreError, match="max_exp_avg_sq"):
        look_at_dcp(tmp_path / "amsgrad")


def test_a_damaged_store_is_named_by_the_export(tmp_path: Path) -> None:
    with create([tmp_path / "a"]) as store:
        train(store, 1)
    path = tmp_path / "a"
    raw = bytearray(path.read_bytes())
    with Store.open([tmp_path / "a"]) as store:
        plane = store.state.layers[3].plane
        shard = next(iter(store.geometry.shards(3, store.geometry.state[0])))
        at = store._manifest.plane_offset(0, plane) + shard.offset
    raw[at] ^= 1
    path.write_bytes(raw)
    with Store.open([tmp_path / "a"]) as store, pytest.raises(StoreError, match="head") as caught:
        export_dcp(store, tmp_path / "out")
    assert caught.value.kind == "corrupt"


@pytest.mark.parametrize("entry", ["", "[]", "3", "{}", '{"trained": -1}', '{"trained": true}', '{"trained": "2"}', 5,
    '{"trained": 2, "store": 3}', '{"trained": 2, "layers": 3}', '{"trained": 2, "layers": [{"name": 3}]}',
    '{"trained": 2, "layers": [{"name": "a", "tensors": []}]}', "[" * 100_000,
])  # fmt: skip
def test_an_entry_of_ours_that_is_damaged_is_said(tmp_path: Path, entry: object) -> None:
    state = {"model": Model().state_dict(), "catchment": entry}
    dcp.save(state, checkpoint_id=tmp_path / "in", no_dist=True)
    with pytest.raises(StoreError, match=r"in: the entry 'catchment' is damaged .*: restore the checkpoint") as caught:
        look_at_dcp(tmp_path / "in")
    assert caught.value.kind == "corrupt"


@pytest.mark.parametrize("step", [[1.0, 2.0], float("nan"), float("inf"), -1.0, 1.5])
def test_a_number_of_updates_that_is_none_is_said(tmp_path: Path, step: Any) -> None:
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters())
    steps_of_torch(model, optimizer, 0, 1)
    state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
    state["optimizer"]["state"]["head.weight"]["step"] = torch.tensor(step)
    dcp.save(state, checkpoint_id=tmp_path / "in", no_dist=True)
    with pytest.raises(StoreError, match=r"in: optimizer\.state\.head\.weight\.step is .*, no number of updates"):
        look_at_dcp(tmp_path / "in")
