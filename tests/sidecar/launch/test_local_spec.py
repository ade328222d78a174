"""Settings from a command line or keywords, as a spec."""

from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import Shard
from podferry.sidecar.launch.local_spec import local_spec


def spec(**settings):
    return local_spec(settings, ["train.py"], Path("/base"))


def test_a_mapping_gives_several_datasets_each_with_its_own_settings():
    made = spec(
        dataset={"": "/data", "test": "s3://b/t"},
        include={"test": ["*.jpg", "a b.png"], "": "*.png"},
        dataset_path={"test": "/stage/t"},
        file_mode={"test": "0600"},
    )
    assert [(one.name, one.path) for one in made.datasets] == [("", "/base/dataset"), ("test", "/stage/t")]
    assert [one.include for one in made.datasets] == [("*.png",), ("*.jpg", "a\\ b.png")]
    assert made.datasets[1].file_mode == 0o600


def test_named_datasets_without_a_path_get_sibling_directories():
    made = spec(dataset={"a": "/x", "b": "/y"})
    assert [one.path for one in made.datasets] == ["/base/dataset.a", "/base/dataset.b"]


def test_none_and_an_empty_list_set_nothing():
    assert spec(dataset="/data", include=[], exclude=None).datasets[0].include == ()


def test_a_glob_of_a_list_may_have_blanks():
    assert spec(dataset="/data", include=["my file.txt"]).datasets[0].include == ("my\\ file.txt",)


def test_a_path_may_go_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert spec(dataset="/data", dataset_path="../stage").datasets[0].path == str(tmp_path.parent / "stage")


def test_a_directory_may_be_below_one_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    [dataset] = local_spec({"dataset": "./data", "dataset_path": "nodir/x"}, [], tmp_path).datasets
    assert dataset.path == str(tmp_path / "nodir/x")
    with pytest.raises(InvalidSpec, match="not a valid mount path"):
        local_spec({"dataset": "./data", "dataset_path": "s3://bucket/x"}, [], tmp_path)


def test_problems_name_options():
    with pytest.raises(InvalidSpec) as caught:
        spec(dataset={"": "/data", "test": "/t"}, shard={"test": "3/3"}, unpack="sometimes")
    text = str(caught.value)
    assert "--shard test=: the shard's rank is not below its count" in text
    assert "--unpack: unknown value" in text
    with pytest.raises(InvalidSpec, match="--dataset test= is empty"):
        spec(dataset={"": "/data", "test": " "})


def test_auto_reads_the_environment(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert spec(dataset="/data", shard="auto").datasets[0].shard == Shard(1, 2)


def test_problems_of_ferry_name_its_keywords():
    settings = {"dataset": {"a b": "./x"}, "keep_local": -1, "datset_path": 3, "checkpoints": "s3:/b"}
    with pytest.raises(InvalidSpec) as caught:
        local_spec(settings, ["x"], Path("/base"), keywords=True)
    text = str(caught.value)
    assert "keep_local: not an integer" in text
    assert "datset_path: unknown keyword ('3'). Did you mean 'dataset_path'?" in text
    assert "dataset['a b']: 'a b' is not a valid dataset name" in text
    assert "checkpoints: not a URI ('s3:/b'). Did you mean s3://b?" in text
    assert "--" not in text
    assert "podferry.io" not in text
    with pytest.raises(InvalidSpec, match="Give dataset, checkpoints, outputs, or several of them"):
        local_spec({}, ["x"], Path("/base"), keywords=True)


def test_a_dataset_with_an_invalid_name_is_named_as_it_was_written():
    with pytest.raises(InvalidSpec, match="--dataset a b=: 'a b' is not a valid dataset name") as caught:
        local_spec({"dataset": {"a b": "./x"}}, ["x"], Path("/base"))
    assert "Write --dataset NAME=, where NAME has" in str(caught.value)


def test_only_a_pod_mounts_claims_and_images():
    with pytest.raises(InvalidSpec, match="--mode: only a pod can mount a claim or an image"):
        spec(dataset="pvc://datasets/digits", mode="share")


def test_the_launcher_gives_the_rank_of_processes_that_write_together(monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    made = spec(checkpoints="/results", world=2)
    assert (made.rank, made.world) == (1, 2)
    assert spec(checkpoints="/results").rank is None


def test_processes_that_write_together_need_a_rank_below_their_number(monkeypatch):
    monkeypatch.delenv("RANK", raising=False)
    with pytest.raises(
        InvalidSpec, match=r"nothing says which rank this process has.*RANK, PADDLE_TRAINER_ID"
    ):
        spec(checkpoints="/results", world=2)
    monkeypatch.setenv("RANK", "2")
    with pytest.raises(InvalidSpec, match=r"not above this process's rank.*world 2, RANK=2"):
        spec(checkpoints="/results", world=2)
