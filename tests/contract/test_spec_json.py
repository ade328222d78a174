from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.spec import (
    Access,
    CheckpointSpec,
    Completion,
    DatasetSpec,
    FerrySpec,
    Medium,
    OutputSpec,
    Shard,
    Unpack,
)
from podferry.contract.spec_json import decode_spec, encode_spec

GOLDEN = Path(__file__).parent / "golden"
WORDS = st.none() | st.text(min_size=1, max_size=8)
SIZES = st.none() | st.integers(1, 2**62)
ACCESS = st.builds(Access, WORDS, WORDS, WORDS)
GLOBS = st.lists(st.sampled_from(["*.jpg", "train/**", "a\\,b"]), max_size=2).map(tuple)
SHARDS = st.tuples(st.integers(0, 9), st.integers(1, 9)).map(lambda pair: Shard(pair[0], sum(pair)))
NAMES = st.sampled_from(["", "train", "test-2", "a" * 32])
DATASETS = st.builds(
    DatasetSpec,
    st.sampled_from(["s3://b/k#bytes=3", "file:///d"]),
    st.just("/data"),
    SIZES,
    ACCESS,
    NAMES,
    GLOBS,
    GLOBS,
    st.integers(0o400, 0o777),
    st.sampled_from(Unpack),
    st.none() | SHARDS,
    st.sampled_from(Medium),
)
CHECKPOINTS = st.builds(
    CheckpointSpec,
    st.just("gs://b/c"),
    st.just("/c"),
    SIZES,
    st.integers(0, 9),
    st.text(max_size=5),
    ACCESS,
    st.none() | st.integers(1, 99),
    st.sampled_from(Completion),
    SIZES,
)
OUTPUTS = st.builds(OutputSpec, st.just("gs://b/o"), st.just("/o"), SIZES, SIZES, ACCESS)
SPECS = st.builds(
    FerrySpec,
    st.lists(DATASETS, max_size=3, unique_by=lambda dataset: dataset.name).map(tuple),
    st.none() | CHECKPOINTS,
    WORDS,
    st.integers(1, 512),
    SIZES,
    SIZES,
    WORDS,
    st.none() | OUTPUTS,
    st.none() | st.integers(0, 511),
)


FIRST = DatasetSpec(
    f"s3://datasets/digits#sha256={'3f' * 32}&bytes=5000000003&files=1797",
    "/dev/shm/dataset",
    6_442_450_944,
    Access("reader", "https://s3.example.org:9000", "eu-central-1"),
)
SECOND = DatasetSpec(
    "s3://datasets/labels",
    "/dev/shm/labels",
    name="labels",
    include=("*.csv", "test/**"),
    exclude=("draft-*",),
    file_mode=0o444,
    unpack=Unpack.ALWAYS,
    shard=Shard(3, 4),
    medium=Medium.DISK,
)


def golden(*datasets: DatasetSpec) -> FerrySpec:
    return FerrySpec(
        datasets=datasets,
        checkpoints=CheckpointSpec(
            "gs://models/runs",
            "/work/ckpt",
            1_073_741_824,
            2,
            "never",
            Access(secret="writer"),
            keep_remote=20,
            complete=Completion.MARKED,
            upload_limit=52_428_800,
        ),
        lineage="team.digits",
        world=4,
        shm_size=8_589_934_592,
        grace=600,
        container="trainer",
        outputs=OutputSpec("gs://models/logs", "/work/runs", 1_073_741_824, 60, Access(region="eu-west-3")),
        rank=3,
    )


def test_the_first_format_stays_readable() -> None:
    assert decode_spec((GOLDEN / "spec-v1.json").read_bytes(), "golden") == golden(FIRST)


def test_the_second_format_is_what_is_written() -> None:
    data = (GOLDEN / "spec-v2.json").read_bytes()
    assert decode_spec(data, "golden") == golden(FIRST, SECOND)
    assert encode_spec(golden(FIRST, SECOND)) == data


def test_a_spec_without_later_fields_stays_readable() -> None:
    spec = decode_spec((GOLDEN / "spec-v1-early.json").read_bytes(), "golden")
    assert spec.checkpoints is not None
    assert (spec.checkpoints.keep_remote, spec.checkpoints.upload_limit) == (None, None)
    assert spec.checkpoints.complete is Completion.AUTO
    assert (spec.outputs, spec.rank, spec.world) == (None, None, 4)
    assert len(spec.datasets) == 1


@given(SPECS)
def test_a_spec_survives_its_document(spec: FerrySpec) -> None:
    assert decode_spec(encode_spec(spec)) == spec


@pytest.mark.parametrize(
    "data",
    [
        b'{"format":1,"world":0}',
        b'{"format":1,"dataset":{"reference":"digits"}}',
        b'{"format":1,"dataset":"digits"}',
        b'{"format":2,"datasets":[{"reference":"digits"}]}',
        b'{"format":2,"datasets":[{"reference":"s3://b","name":"../x"}]}',
        b'{"format":2,"datasets":[{"reference":"s3://b","name":"x\\n"}]}',
        b'{"format":2,"datasets":[{"reference":"s3://b"},{"reference":"s3://c"}]}',
        b'{"format":2,"datasets":[{"reference":"s3://b","file_mode":255}]}',
        b'{"format":2,"datasets":[{"reference":"s3://b","shard":{"rank":2,"count":2}}]}',
        b'{"format":2,"datasets":[{"reference":"s3://b","medium":"tape"}]}',
        b'{"format":1,"checkpoints":{"uri":"s3://b","keep_local":-1}}',
        b'{"format":1,"checkpoints":{"uri":"s3:///x"}}',
        b'{"format":1,"shm_size":0}',
        b'{"format":1,"rank":-1}',
        b'{"format":1,"checkpoints":{"uri":"s3://b","keep_remote":0}}',
        b'{"format":1,"checkpoints":{"uri":"s3://b","complete":"never"}}',
        b'{"format":1,"outputs":{"uri":"runs"}}',
        b'{"format":1,"outputs":{"uri":"s3://b","every":0}}',
    ],
)
def test_a_spec_that_cannot_be_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt):
        decode_spec(data)


def test_a_later_format_is_refused_by_name() -> None:
    with pytest.raises(FormatTooNew, match="ferry spec"):
        decode_spec(b'{"format":3}')
