"""The text: the same for everyone, different for each worker, training and validation apart."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from catchment.sim.lab.errors import LabError
from catchment.sim.training.data import Corpus, Shard, find_texts, load_corpus


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return load_corpus()


def test_every_machine_has_enough_text_in_a_fixed_order(corpus: Corpus) -> None:
    assert corpus.files == len(find_texts()) > 100
    assert len(corpus.train) > 1_000_000
    assert 10_000 < len(corpus.validation) < len(corpus.train) / 4
    assert load_corpus().digest == corpus.digest
    assert [path.name for path in find_texts() if path.suffix == ".py"] == sorted(
        path.name for path in find_texts() if path.suffix == ".py"
    )


@pytest.mark.parametrize("workers", [1, 3, 4])
def test_workers_share_nothing_within_an_epoch(corpus: Corpus, workers: int) -> None:
    small = Corpus(corpus.train[: 64 * 48], corpus.validation[: 64 * 20], 1)
    size, steps = 2, 48 // (2 * workers)
    shards = [Shard(small, worker=w, workers=workers, sequence=64, seed=9) for w in range(workers)]
    seen = [bytes(row.tolist()) for shard in shards for step in range(steps) for row in shard.batch(step, size)]
    assert len(seen) == steps * size * workers
    distinct = {bytes(small.train[i : i + 64]) for i in range(0, len(small.train), 64)}
    assert len(set(seen)) >= len(seen) - (48 - len(distinct))
    validation = [tuple(map(tuple, shard.validation(2).tolist())) for shard in shards]
    assert len(set(validation)) == workers


def test_batches_repeat_for_a_seed_and_differ_between_seeds(corpus: Corpus) -> None:
    def batch(seed: int, step: int = 3) -> torch.Tensor:
        return Shard(corpus, worker=1, workers=4, sequence=32, seed=seed).batch(step, 5)

    assert torch.equal(batch(1), batch(1))
    assert not torch.equal(batch(1), batch(2))
    assert not torch.equal(batch(1), batch(1, 4))
    assert batch(1).shape == (5, 32)
    assert batch(1).dtype == torch.int64


def test_files_decide_what_validates(tmp_path: Path) -> None:
    for number in range(60):
        (tmp_path / f"text{number}").write_bytes(bytes([number]) * 10)
    corpus = load_corpus(sorted(tmp_path.iterdir()))
    assert set(corpus.train.tolist()).isdisjoint(corpus.validation.tolist())
    assert len(corpus.train) + len(corpus.validation) == 600


def test_too_little_text() -> None:
    with pytest.raises(LabError, match="too little"):
        load_corpus([])
    corpus = load_corpus()
    with pytest.raises(LabError, match="too few sequences"):
        Shard(Corpus(corpus.train[:100], corpus.validation[:100], 1), worker=0, workers=4, sequence=64, seed=1)
