"""What checkpoints are made of, by the names of their files."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from podferry.contract.destination.kind import (
    SMALL_BYTES,
    Kind,
    by_kind,
    kind_of,
    main_kind,
    of_main_kind,
)


@dataclass(frozen=True)
class One:
    name: str
    kind: Kind


@pytest.mark.parametrize(
    "names",
    [
        ["epoch_1.pt"],
        ["step-5/config.json", "step-5/model.safetensors"],
        ["config.json", "model.safetensors", "tokenizer.json"],
        ["model_10.ubj"],
        ["weights.npy"],
        ["params.npz"],
        ["model.txt.snapshot_iter_10"],
        ["ckpt.100"],
        ["val_loss=0.30.pt"],
        ["best_loss.pkl"],
        ["model.pkl.gz"],
        ["step-5/w"],
        ["latest", "step-5/w"],
        ["test.npy"],
        ["runs/events.out.tfevents.1.host.1.0", "runs/model.bin"],
        [],
    ],
)
def test_one_file_that_may_be_a_state_makes_a_state(names: list[str]) -> None:
    assert kind_of(names) is Kind.STATE


@pytest.mark.parametrize(
    "names", [["model_10.json"], ["model.txt"], ["m.json.gz"], ["a.png", "tokenizer.json"]]
)
def test_documents_may_be_entire_models(names: list[str]) -> None:
    assert kind_of(names) is Kind.DOCUMENT


@pytest.mark.parametrize(
    "names",
    [
        ["metrics.json"],
        ["Val_Loss.JSON"],
        ["loss.npy"],
        ["train_losses_3.npy"],
        ["history.pkl"],
        ["losses.pt"],
        ["config.yaml"],
        ["log"],
        ["samples_3.png"],
        ["progress.csv", "train.log"],
        ["train.jsonl.gz"],
        ["runs/Nov28_host/events.out.tfevents.1.host.1.0"],
        ["20260101/20260101.log", "20260101/vis_data/scores.json"],
    ],
)
def test_what_a_run_leaves_for_people_is_a_record(names: list[str]) -> None:
    assert kind_of(names) is Kind.RECORD


def test_the_main_kind_is_the_most_telling_one() -> None:
    assert main_kind([Kind.RECORD, Kind.DOCUMENT]) is Kind.DOCUMENT
    assert main_kind(Kind) is main_kind([]) is Kind.STATE


def test_checkpoints_of_the_main_kind_keep_their_order() -> None:
    epoch, metrics, plot = One("e1", Kind.STATE), One("metrics", Kind.RECORD), One("plot", Kind.RECORD)
    assert of_main_kind([metrics, epoch, plot]) == [epoch]
    assert of_main_kind([plot, metrics]) == [plot, metrics]
    assert by_kind([plot, epoch, metrics]) == [[epoch], [plot, metrics]]
    assert of_main_kind([]) == by_kind([]) == []


@pytest.mark.parametrize(
    "name",
    ["last_step", "last_epoch.pt", "global_step.npy", "current_iteration.pkl", "train.pid", "gpu.lock"],
)
def test_counters_and_the_files_of_processes_are_records(name: str) -> None:
    assert kind_of([name], [3]) is Kind.RECORD


@pytest.mark.parametrize("name", ["marker", "vocab.pkl", "scaler.joblib", "w.bin", "study.db", "seen.dat"])
def test_small_files_are_extras(name: str) -> None:
    assert kind_of([name], [SMALL_BYTES]) is Kind.EXTRA


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("last_epoch.pt", SMALL_BYTES + 1),
        ("vocab.pkl", SMALL_BYTES + 1),
        ("model.bin", 1),
        ("best.pt", 1),
        ("step-5", 1),
        ("epoch_5.pt", 1),
        ("ckpt.100", 1),
        ("step-5/w", 1),
    ],
)
def test_a_small_state_is_a_state_by_its_name(name: str, size: int) -> None:
    assert kind_of([name], [size]) is Kind.STATE


def test_a_database_is_an_extra_of_any_size() -> None:
    assert kind_of(["study.db"], [10**9]) is Kind.EXTRA
    assert main_kind([Kind.DOCUMENT, Kind.EXTRA]) is Kind.EXTRA
