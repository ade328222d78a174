from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.reference import parse_reference
from podferry.contract.spec import (
    Access,
    CheckpointSpec,
    Completion,
    DatasetSpec,
    FerrySpec,
    OutputSpec,
    decode_spec,
    encode_spec,
)
from podferry.contract.uri import Uri

GOLDEN = Path(__file__).parent / "golden"
WORDS = st.none() | st.text(min_size=1, max_size=8)
SIZES = st.none() | st.integers(1, 2**62)
ACCESS = st.builds(Access, WORDS, WORDS, WORDS)
DATASETS = st.builds(
    DatasetSpec, st.sampled_from(["s3://b/k#bytes=3", "file:///d"]), st.just("/data"), SIZES, ACCESS
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
    st.none() | DATASETS,
    st.none() | CHECKPOINTS,
    WORDS,
    st.integers(1, 512),
    SIZES,
    SIZES,
    WORDS,
    st.none() | OUTPUTS,
    st.none() | st.integers(0, 511),
)


def test_the_first_format_stays_readable() -> None:
    data = (GOLDEN / "spec-v1.json").read_bytes()
    spec = decode_spec(data, "golden")
    assert spec == FerrySpec(
        dataset=DatasetSpec(
            f"s3://datasets/digits#sha256={'3f' * 32}&bytes=5000000003&files=1797",
            "/dev/shm/dataset",
            6_442_450_944,
            Access("reader", "https://s3.example.org:9000", "eu-central-1"),
        ),
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
        format=1,
    )
    assert encode_spec(spec) == data


def test_a_spec_without_later_fields_stays_readable() -> None:
    spec = decode_spec((GOLDEN / "spec-v1-early.json").read_bytes(), "golden")
    assert spec.checkpoints is not None
    assert (spec.checkpoints.keep_remote, spec.checkpoints.upload_limit) == (None, None)
    assert spec.checkpoints.complete is Completion.AUTO
    assert (spec.outputs, spec.rank, spec.world) == (None, None, 4)


@given(SPECS)
def test_a_spec_survives_its_document(spec: FerrySpec) -> None:
    assert decode_spec(encode_spec(spec)) == spec


def test_places_are_values() -> None:
    assert DatasetSpec("s3://b/k#bytes=3").parsed == parse_reference("s3://b/k#bytes=3")
    assert CheckpointSpec("gs://b/c").parsed == Uri("gs", "b", "c")


@pytest.mark.parametrize(
    "data",
    [
        b'{"format":1,"world":0}',
        b'{"format":1,"dataset":{"reference":"digits"}}',
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
    with pytest.raises(FormatTooNew, match="ferryspec"):
        decode_spec(b'{"format":2}')
