"""The layers of well-known models: from their module trees, from the names in their files, and both alike."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hub_models import HUB, bert, gpt2, t5
from safetensors.torch import save_file
from torch import nn
from typer.testing import CliRunner

from catchment.cli import app
from catchment.host.optimizer.store import Store, StoreError
from catchment.host.optimizer.store.importing import import_model
from catchment.host.optimizer.store.interchange import look_at
from catchment.host.optimizer.store.layer_names import grouped
from catchment.host.torch import layers_of, table_of


def written(model: nn.Module) -> dict[str, torch.Tensor]:
    """What the hub's files have: shared tensors once, under the first name; buffers, too."""
    seen: set[int] = set()
    state = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            state[name] = tensor.detach()
    return state


def filled(model: nn.Module) -> nn.Module:
    torch.manual_seed(8)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize("name", HUB)
def test_layers_of_a_model_of_real_size(name: str) -> None:
    make, layers, parameters = HUB[name]
    with torch.device("meta"):
        model = make()
    table = table_of(layers_of(model))
    assert [layer.name for layer in table] == layers
    assert table.numel == parameters
    weights = {key for key, _ in model.named_parameters(remove_duplicate=False)}
    by_names = grouped([key for key in written(model) if key in weights])
    assert list(by_names) == layers
    for layer in table:
        assert sorted(by_names[layer.name]) == sorted(tensor.name for tensor in layer.tensors)


SMALL = {
    "gpt2": lambda: gpt2(layers=2, width=16, vocabulary=31, places=8),
    "bert": lambda: bert(layers=2, width=16, vocabulary=31, places=8),
    "t5": lambda: t5(layers=2, width=16, vocabulary=31),
}


def small_bert() -> nn.Module:
    """A model for the command."""
    return SMALL["bert"]()


@pytest.mark.parametrize("name", SMALL)
def test_a_model_goes_from_its_files_into_the_table_of_its_workers(name: str, tmp_path: Path) -> None:
    model = filled(SMALL[name]())
    state = written(model)
    if name != "t5":
        assert any(not tensor.is_floating_point() for tensor in state.values())
    save_file({key: tensor.contiguous() for key, tensor in state.items()}, tmp_path / "model.safetensors")
    layers = layers_of(model)
    source = look_at(tmp_path, table=table_of(layers))
    with import_model(source, [tmp_path / "store"]) as store:
        assert store.geometry.table.digest == table_of(layers).digest
        names = {tensor.name for layer in store.geometry.table for tensor in layer.tensors}
        assert names == {key for key, _ in model.named_parameters()}
    assert all(
        torch.equal(source.weights(t), dict(model.named_parameters())[t.name]) for x in source.table for t in x.tensors
    )
    by_names = look_at(tmp_path)
    assert {t.name for layer in by_names.table for t in layer.tensors} == names


def test_by_command_with_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = filled(small_bert())
    save_file({key: tensor.contiguous() for key, tensor in written(model).items()}, tmp_path / "model.safetensors")
    monkeypatch.syspath_prepend(Path(__file__).parent)
    arguments = ["optimizer", "import", str(tmp_path), "-s", str(tmp_path / "store"), "--model"]
    run = CliRunner().invoke(app, [*arguments, "test_hub_layers:small_bert"])
    assert run.exit_code == 0, run.output
    with Store.open([tmp_path / "store"]) as store:
        assert store.geometry.table.digest == table_of(layers_of(model)).digest
    for wrong in ("test_hub_layers:small_bart", "no_such_module:x", "test_hub_layers"):
        run = CliRunner().invoke(app, [*arguments, wrong])
        assert run.exit_code == 2
        assert "MODULE:FUNCTION" in run.output


def test_files_of_another_model(tmp_path: Path) -> None:
    save_file({key: t.contiguous() for key, t in written(filled(small_bert())).items()}, tmp_path / "model.safetensors")
    with pytest.raises(StoreError, match=r"bert\.encoder\.layer\.2\.attention.*is not there"):
        look_at(tmp_path, table=table_of(layers_of(bert(layers=3, width=16, vocabulary=31, places=8))))
    with pytest.raises(StoreError, match=r"has the shape \(31, 16\)"):
        look_at(tmp_path, table=table_of(layers_of(bert(layers=2, width=16, vocabulary=32, places=8))))
