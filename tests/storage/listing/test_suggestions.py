import pytest

from podferry.contract.errors import AccessDenied, EmptyDataset, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.memory.store import Fault
from podferry.storage.store import StoreConfig
from tests.support.memory_bucket import put

ANY = StoreConfig()


async def test_an_empty_dataset_suggests_similar_prefixes(bucket):
    put(bucket, "data/digits/1", "data/digests/1", "data/faces/1", "else/1")
    with pytest.raises(EmptyDataset) as caught:
        await open_dataset(bucket / "data/digit/train", ANY)
    (problem,) = caught.value.problems
    assert problem.measured == f"no object below {bucket / 'data/digit/train'}"
    assert problem.remedy.startswith(f"Did you mean {bucket / 'data/digits'}")
    assert str(bucket / "else") not in problem.remedy


async def test_existing_prefixes_are_suggested_if_none_is_similar(bucket):
    put(bucket, "zz/1", "yy/1")
    with pytest.raises(EmptyDataset, match=f"Did you mean {bucket / 'yy'} or {bucket / 'zz'}"):
        await open_dataset(bucket / "digits", ANY)


async def test_an_empty_bucket_is_reported(bucket):
    put(bucket)
    for uri in (bucket, bucket / "a/b"):
        with pytest.raises(EmptyDataset, match="is empty: check the bucket"):
            await open_dataset(uri, ANY)


@pytest.mark.parametrize("error", [AccessDenied.of("no listing there"), Unavailable.of("gone")])
async def test_a_failed_search_for_suggestions_hides_nothing(bucket, error):
    """A policy may allow a listing below the dataset's prefix alone."""
    put(bucket, "data/1").faults.append(Fault("children", times=99, error=error))
    with pytest.raises(EmptyDataset, match="Check the bucket and the path") as caught:
        await open_dataset(bucket / "digits/x", ANY)
    assert "is empty: check" not in str(caught.value)


async def test_only_local_directories_with_similar_names_are_suggested(tmp_path):
    for name in ("faces/1", "digits.tar", "etc/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    for name in ("digits", "digits/train", "else"):
        with pytest.raises(EmptyDataset) as caught:
            await open_dataset(parse_uri(str(tmp_path)) / name, ANY)
        (problem,) = caught.value.problems
        assert problem.what == f"the dataset {tmp_path}/{name} does not exist"
        assert problem.remedy == "Check the path"


async def test_a_local_directory_without_files_is_empty(tmp_path):
    (tmp_path / "digits/train").mkdir(parents=True)
    with pytest.raises(EmptyDataset) as caught:
        await open_dataset(parse_uri(str(tmp_path)) / "digits", ANY)
    (problem,) = caught.value.problems
    assert problem.what == "the dataset is empty"
    assert problem.measured == f"no file below {tmp_path}/digits"


async def test_an_empty_directory_suggests_neither_itself_nor_its_parent(tmp_path):
    (tmp_path / "only" / "empty").mkdir(parents=True)
    with pytest.raises(EmptyDataset) as caught:
        await open_dataset(parse_uri(str(tmp_path / "only/empty")), ANY)
    assert "Did you mean" not in str(caught.value)


async def test_an_empty_prefix_does_not_suggest_itself(bucket):
    put(bucket, "data/digits/", "data/digest/1")
    with pytest.raises(EmptyDataset) as caught:
        await open_dataset(bucket / "data/digits", ANY)
    assert caught.value.problems[0].remedy == f"Did you mean {bucket / 'data/digest'}?"


async def test_a_pattern_in_a_uri_is_something_to_include(bucket):
    with pytest.raises(EmptyDataset) as caught:
        await open_dataset(bucket / "data/*/a*.jpg", ANY)
    remedy = caught.value.problems[0].remedy
    assert remedy == f"A URI has no patterns: write {bucket / 'data'}, and include the files */a*.jpg"
