"""Checkpoints that cross from shards over ranks to a store over devices, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from out_of_core import TABLE, create, node_options, train, train_in_memory
from test_groups import Model
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

from catchment.host.layers import TrainingError
from catchment.host.optimizer.dcp import export_dcp, look_at_dcp
from catchment.host.optimizer.store.importing import import_model

SHARDS = 2


def sharded() -> tuple[nn.Module, torch.optim.Optimizer]:
    """The model of TABLE, every parameter divided among the ranks, and trained for a step."""
    torch.manual_seed(4)
    model = Model()
    model.block[0].scale = nn.Parameter(torch.empty(1))  # torch does not shard what has no dimension
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for parameter in model.parameters():
        parameter.grad = 0.5 * parameter.detach()
    optimizer.step()
    return model, optimizer


def rank_main(rank: int, folder: str) -> None:
    """Save what is sharded, and load what a store exported, if it is there."""
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/rendezvous", rank=rank, world_size=SHARDS)
    try:
        model, optimizer = sharded()
        state = dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))
        exported = Path(folder) / "exported"
        if not exported.exists():
            dcp.save(state, checkpoint_id=Path(folder) / "saved")
        else:
            dcp.load(state, checkpoint_id=exported)
            set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        whole = get_state_dict(model, optimizer, options=StateDictOptions(full_state_dict=True))
        if rank == 0:
            torch.save(dict(zip(("model", "optimizer"), whole, strict=True)), Path(folder) / "whole.pt")
        with pytest.raises(TrainingError, match="full_state_dict"):
            train_in_memory([], node_options(), {"model": model.state_dict()})
    finally:
        dist.destroy_process_group()


def in_ranks(folder: Path) -> dict[str, dict[str, torch.Tensor]]:
    """Run the ranks; gives the whole state that they end with."""
    (folder / "rendezvous").unlink(missing_ok=True)
    torch.multiprocessing.spawn(rank_main, args=(str(folder),), nprocs=SHARDS)
    return torch.load(folder / "whole.pt", weights_only=True)


@pytest.mark.sampled(4)
def test_from_shards_to_devices_and_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    whole = in_ranks(tmp_path)
    source = look_at_dcp(tmp_path / "saved")
    with import_model(source, [tmp_path / name for name in "abc"]) as store:
        assert store.state.trained == 1
        for layer in source.table:
            for tensor in layer.tensors:
                assert torch.equal(source.weights(tensor), whole["model"][tensor.name])
                held = whole["optimizer"]["state"][tensor.name]
                assert torch.equal(source.moment("second", tensor), held["exp_avg_sq"])
        export_dcp(store, tmp_path / "exported")
    again = in_ranks(tmp_path)
    for name, value in whole["model"].items():
        assert torch.equal(again["model"][name], value)
        for key, moment in whole["optimizer"]["state"][name].items():
            assert torch.equal(again["optimizer"]["state"][name][key], moment)


def test_a_scalar_parameter_is_no_exception(tmp_path: Path) -> None:
    with create([tmp_path / "a"]) as store:
        train(store, 1)
        export_dcp(store, tmp_path / "out")
    table = look_at_dcp(tmp_path / "out").table
    assert table == TABLE
