import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import InvalidWish
from podferry.contract.memory import (
    FILE,
    MIB,
    PAGE,
    Footprint,
    MemorySum,
    charged,
    charged_at_most,
    memory_sum,
)
from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec, OutputSpec

GIB = 1024**3
COUNTS = st.integers(0, 2**42)
FILES = st.integers(0, 10**7)
SIZES = st.none() | st.integers(1, 2**42)
DATASETS = st.builds(DatasetSpec, st.just("s3://b/d"), size=SIZES)
CHECKPOINTS = st.builds(
    CheckpointSpec,
    st.just("s3://b/c"),
    size=st.integers(1, 2**40),
    keep_local=st.integers(0, 9),
    restore=st.sampled_from(["auto", "never", "last.pt"]),
)
OUTPUTS = st.builds(OutputSpec, st.just("s3://b/o"), size=st.integers(1, 2**40))
SPECS = st.builds(
    FerrySpec, st.none() | DATASETS, st.none() | CHECKPOINTS, outputs=st.none() | OUTPUTS, shm_size=SIZES
)
FOOTPRINTS = st.builds(
    Footprint,
    st.integers(1, 2**30),
    st.integers(1, 256),
    st.integers(0, 2**30),
    st.integers(1, 2**32),
    st.integers(0, 4096),
)


def test_pages_and_kernel_memory_of_each_file_count() -> None:
    assert charged([]) == 0
    assert charged([0]) == FILE
    assert charged([1, PAGE, PAGE + 1]) == 4 * PAGE + 3 * FILE


def test_the_measured_case_is_covered_but_not_by_much() -> None:
    # 100,000 files of 1 KiB were charged 482 MiB.
    assert 482 * MIB < charged([1024] * 100_000) < 490 * MIB


@given(st.lists(st.integers(0, 2**40), max_size=20))
def test_totals_alone_bound_the_exact_sum(sizes: list[int]) -> None:
    exact = charged(sizes)
    bound = charged_at_most(sum(sizes), len(sizes))
    assert exact <= bound <= exact + len(sizes) * PAGE


@given(SPECS, COUNTS, FILES, FOOTPRINTS)
def test_a_full_volume_is_met_before_the_limit(
    spec: FerrySpec, size: int, files: int, agent: Footprint
) -> None:
    total = memory_sum(spec, size, files, agent)
    written = total.data_volume + total.restored + files * FILE * bool(spec.dataset)
    if spec.dataset or spec.checkpoints or spec.outputs:
        assert total.data_volume < total.sidecar
        assert written < total.sidecar
    assert total.data_volume % MIB == total.checkpoint_volume % MIB == 0
    assert total.restored <= total.checkpoint_volume
    assert total.trainer == total.checkpoint_volume + total.output_volume
    assert total.output_volume % MIB == 0


@given(SPECS.filter(lambda spec: spec.dataset is not None and spec.dataset.size is None), COUNTS, FILES)
def test_the_dataset_fits_its_volume_with_slack(spec: FerrySpec, size: int, files: int) -> None:
    need = charged_at_most(size, files)
    volume = memory_sum(spec, size, files).data_volume
    assert volume >= max(need * 1.05 - 1, need + 16 * MIB)
    assert volume <= max(need * 1.05 + 1, need + 16 * MIB) + MIB


def grown(spec: FerrySpec, name: str, by: int) -> FerrySpec:
    if name == "shm_size":
        return msgspec.structs.replace(spec, shm_size=(spec.shm_size or 0) + by)
    room, _, field = name.partition(".")
    part = getattr(spec, room)
    old = getattr(part, field, None)
    if old is None:
        return spec
    return msgspec.structs.replace(spec, **{room: msgspec.structs.replace(part, **{field: old + by})})


def at_least(larger: MemorySum, smaller: MemorySum) -> bool:
    fields = ("data_volume", "checkpoint_volume", "output_volume", "shm_volume", "sidecar", "trainer", "pod")
    return all(getattr(larger, field) >= getattr(smaller, field) for field in fields)


@given(
    SPECS,
    COUNTS,
    FILES,
    st.integers(0, 2**30),
    st.sampled_from(
        ["dataset.size", "checkpoints.size", "checkpoints.keep_local", "outputs.size", "shm_size"]
    ),
)
def test_wishing_more_never_needs_less(spec: FerrySpec, size: int, files: int, by: int, name: str) -> None:
    assert at_least(memory_sum(grown(spec, name, by), size, files), memory_sum(spec, size, files))


@given(SPECS, COUNTS, FILES, COUNTS, FILES)
def test_a_larger_dataset_never_needs_less(
    spec: FerrySpec, size: int, files: int, more: int, others: int
) -> None:
    base = memory_sum(spec, size, files)
    assert at_least(memory_sum(spec, size + more, files), base)
    assert at_least(memory_sum(spec, size, files + others), base)
    assert at_least(memory_sum(spec, size + more), memory_sum(spec, size))


@given(
    SPECS, COUNTS, FILES, FOOTPRINTS, st.integers(0, 1000), st.sampled_from(Footprint.__struct_fields__[:5])
)
def test_a_larger_agent_never_needs_less(
    spec: FerrySpec, size: int, files: int, agent: Footprint, by: int, name: str
) -> None:
    larger = msgspec.structs.replace(agent, **{name: getattr(agent, name) + by})
    assert at_least(memory_sum(spec, size, files, larger), memory_sum(spec, size, files, agent))


def test_an_ordinary_pod() -> None:
    spec = FerrySpec(
        DatasetSpec("s3://b/d#bytes=1073741824&files=1000"),
        CheckpointSpec("s3://b/c", size=GIB),
        outputs=OutputSpec("s3://b/o", size=GIB // 2 + 1),
        shm_size=2 * GIB,
    )
    total = memory_sum(spec)
    assert total.checkpoint_volume == 3 * GIB
    assert total.restored == GIB
    assert total.buffers == (128 + 80) * MIB
    assert total.resident == 160 * MIB
    assert total.data_volume == 1081 * MIB
    assert total.sidecar == sum(row.bytes for row in total.rows()[:5])
    assert total.output_volume == 513 * MIB
    assert total.pod == total.sidecar + 3 * GIB + 513 * MIB + 2 * GIB
    assert [row.what for row in total.rows()] == [
        "data volume",
        "restored checkpoint",
        "files",
        "buffers",
        "resident",
        "sidecar",
        "checkpoint volume",
        "output volume",
        "trainer, added",
        "shared memory",
        "pod, added",
    ]
    assert all(row.why for row in total.rows())
    why = {row.what: row.why for row in total.rows()}
    assert why["trainer, added"] == "the checkpoint volume and the output volume, which the trainer fills"


def test_a_pod_with_outputs_alone_pays_for_the_agent_and_for_them() -> None:
    total = memory_sum(FerrySpec(outputs=OutputSpec("s3://b/o", size=GIB)))
    assert (total.trainer, total.sidecar) == (GIB, (128 + 160) * MIB)
    assert {row.what: row.why for row in total.rows()}["trainer, added"].startswith(
        "the output volume, which"
    )


def test_what_is_known_of_the_listing_goes_before_the_reference() -> None:
    spec = FerrySpec(DatasetSpec("s3://b/d#bytes=1&files=1"))
    assert memory_sum(spec, GIB, 9) == memory_sum(FerrySpec(DatasetSpec(f"s3://b/d#bytes={GIB}&files=9")))


def test_a_size_that_the_user_wrote_is_the_volume() -> None:
    assert memory_sum(FerrySpec(DatasetSpec("s3://b/d", size=GIB)), 5, 1).data_volume == GIB


def test_a_pod_that_never_restores_keeps_no_room_for_it() -> None:
    checkpoints = CheckpointSpec("s3://b/c", size=GIB, restore="never")
    assert memory_sum(FerrySpec(checkpoints=checkpoints)).restored == 0


def test_a_pod_that_only_wants_shared_memory_pays_for_no_agent() -> None:
    total = memory_sum(FerrySpec(shm_size=GIB))
    assert (total.sidecar, total.pod) == (0, GIB)


def test_sizes_that_nobody_says_are_all_asked_for() -> None:
    with pytest.raises(InvalidWish) as caught:
        memory_sum(
            FerrySpec(DatasetSpec("s3://b/d"), CheckpointSpec("s3://b/c"), outputs=OutputSpec("s3://b/o"))
        )
    assert [problem.measured for problem in caught.value.problems] == ["s3://b/d", "s3://b/c", "s3://b/o"]
