import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.lineage import (
    HASHED,
    MAX_LINEAGE_LENGTH,
    former_local_lineage,
    lineage_of,
    lineage_problem,
    local_lineage,
)
from podferry.contract.pod_owner import PodOwner, pod_owner_of
from podferry.contract.program import Program, read_program

Pod = dict[str, Any]
Run = tuple[Program, str, tuple[tuple[str, str], ...]]
# Few characters, and those that matter, so that equal slugs are met often.
PARTS = st.text(alphabet="aA.-_/é", max_size=4) | st.sampled_from(
    ["kfp", "local", "job", "x" * 250, "x" * 251]
)
OWNED = st.builds(PodOwner, PARTS, PARTS.filter(lambda kind: kind != "kfp"), PARTS)
STEPS = st.builds(PodOwner, PARTS, st.just("kfp"), st.just(""), PARTS, PARTS, PARTS)
ORIGINS = OWNED | STEPS | st.builds(PodOwner, PARTS, st.just("kfp"), PARTS.filter(bool))


def identity(owner: PodOwner) -> PodOwner:
    return msgspec.structs.replace(owner, run_id="", rank=None)


@pytest.mark.parametrize(
    ("owner", "lineage"),
    [
        (PodOwner("team", "job", "digits"), "team.job.digits"),
        (PodOwner("team", "jobset", "a.b-1"), "team.jobset.a.b-1"),
        (PodOwner("team", "pod", "train-"), "team.pod.train-"),
        (
            PodOwner("team", "kfp", "", "pipe", "train", "0123456789ab", "run"),
            "team.kfp.pipe.train.0123456789ab",
        ),
        (
            PodOwner("team", "kfp", "", "pipe", "tune.train", "0" * 12),
            "team.kfp.pipe.tune.train.000000000000",
        ),
    ],
)
def test_plain_owners_are_readable(owner: PodOwner, lineage: str) -> None:
    assert lineage_of(owner) == lineage


def test_what_slugging_changed_ends_in_a_hash() -> None:
    lineage = lineage_of(PodOwner("team", "kfp", "", "My Pipe (v2)", "train", "0" * 12))
    assert lineage.startswith("team.kfp.my-pipe--v2-.train.000000000000_")
    assert HASHED.fullmatch(lineage)


@given(ORIGINS)
def test_a_lineage_is_one_plain_path_segment(owner: PodOwner) -> None:
    assert lineage_problem(lineage_of(owner)) is None


@given(st.lists(ORIGINS, min_size=2, max_size=12))
def test_different_owners_never_share_a_lineage(owners: list[PodOwner]) -> None:
    different = {identity(owner) for owner in owners}
    assert len({lineage_of(owner) for owner in different}) == len(different)


@given(ORIGINS)
def test_an_owner_that_looks_like_anothers_lineage_is_distinguished(owner: PodOwner) -> None:
    namespace, _, rest = lineage_of(owner).partition(".")
    kind, _, name = rest.partition(".")
    mimic = PodOwner(namespace, kind, name)
    if mimic != identity(owner):
        assert lineage_of(mimic) != lineage_of(owner)


@given(ORIGINS, st.text(max_size=5), st.integers(0, 9))
def test_run_and_rank_are_not_part_of_it(owner: PodOwner, run: str, rank: int) -> None:
    assert lineage_of(msgspec.structs.replace(owner, run_id=run, rank=rank)) == lineage_of(owner)


def test_a_retried_step_and_a_re_run_keep_it(recorded: Callable[[str], Pod]) -> None:
    pod = recorded("executor-retry")
    again = copy.deepcopy(pod)
    again["metadata"]["name"] = "more-zzzzz-retry-system-container-impl-1"
    again["metadata"]["annotations"]["workflows.argoproj.io/node-name"] = (
        "more-zzzzz(0).root(0).flaky(0).executor(1)"
    )
    command = again["spec"]["containers"][1]["command"]
    command[command.index("--run_id") + 1] = "another"
    assert pod_owner_of(again).run_id == "another"
    assert lineage_of(pod_owner_of(again)) == lineage_of(pod_owner_of(pod))


def test_iterations_differ_by_their_inputs(executor: Callable[..., Pod]) -> None:
    node = (
        "f(0).root(0).for-loop-1(0).iteration-iterations({0}:{0})(0).iteration-item(0).train(0).executor(0)"
    )
    pods = [executor({"lr": lr}, node=node.format(at)) for at, lr in enumerate((0.1, 0.2, 0.3))]
    assert len({lineage_of(pod_owner_of(pod)) for pod in pods}) == 3


def test_recorded_steps_all_differ(recorded: Callable[[str], Pod]) -> None:
    names = ("plain", "annotated-emptydir", "fstring", "fstring-annotated", "parallelfor", "retry")
    lineages = {lineage_of(pod_owner_of(recorded(f"executor-{name}"))) for name in names}
    assert len(lineages) == len(names)
    assert not any(HASHED.fullmatch(lineage) for lineage in lineages)


def test_a_re_created_job_keeps_it(owned: Callable[..., Pod]) -> None:
    one, other = owned("Job", "digits"), owned("Job", "digits")
    one["metadata"]["ownerReferences"][0]["uid"] = "1"
    assert lineage_of(pod_owner_of(one)) == lineage_of(pod_owner_of(other)) == "team.job.digits"


@pytest.mark.parametrize(
    ("command", "program"),
    [
        (["python", "train.py", "--lr", "0.1"], "train"),
        (["/usr/bin/python3.11", "-u", "src/Fit Model.py"], "fit-model"),
        (["python", "-m", "pkg.train"], "pkg-train"),
        (["torchrun", "--nproc-per-node", "4", "train.py"], "train"),
        (["bash", "run.sh"], "run"),
        (["python"], "python"),
        (["./trainer"], "trainer"),
        ([], "run"),
        (["-"], "run"),
        (["x" * 300], "x" * 60),
    ],
)
def test_a_local_run_was_known_by_its_program(command: list[str], program: str) -> None:
    word, name, digits = former_local_lineage(command).split(".")
    assert (word, name, len(digits)) == ("local", program, 12)
    assert lineage_problem(former_local_lineage(command)) is None


RUNS = st.builds(
    lambda words, folder, datasets: (read_program(words), folder, tuple(sorted(datasets))),
    st.lists(st.text(alphabet="ab-./é", max_size=5), max_size=4),
    st.sampled_from(["/a", "/a/b"]),
    st.sets(st.tuples(st.sampled_from(["", "val"]), st.sampled_from(["s3://x/", "file:///y"])), max_size=2),
)


@given(RUNS, RUNS)
def test_other_runs_on_this_machine_are_other_lineages(one: Run, other: Run) -> None:
    assert (local_lineage(*one) == local_lineage(*other)) == (identity_of(one) == identity_of(other))
    assert lineage_problem(local_lineage(*one)) is None


def identity_of(run: Run) -> tuple[list[str], str, tuple[tuple[str, str], ...]]:
    return run[0].words, run[1], run[2]


def test_the_lineage_of_a_run_never_changes() -> None:
    """A release that changed it would start all training runs again."""
    program = read_program(["python", "train.py", "--lr", "0.1"])
    assert local_lineage(program, "/work", [("", "s3://data/digits")]) == "local.train.26873e22283b"
    assert former_local_lineage(["python", "train.py", "--lr", "0.1"]) == "local.train.61fa0ded6f06"


@given(ORIGINS, RUNS)
def test_no_pod_has_the_lineage_of_a_local_run(owner: PodOwner, run: Run) -> None:
    word, program, digits = local_lineage(*run).split(".")
    assert lineage_of(owner) != local_lineage(*run)
    assert lineage_of(PodOwner(word, program, digits)) != local_lineage(*run)


@pytest.mark.parametrize("text", ["a", "team.digits", "run-1_b", "-x", "0" * MAX_LINEAGE_LENGTH])
def test_lineages_that_users_may_write(text: str) -> None:
    assert lineage_problem(text) is None


def test_a_password_is_not_suggested() -> None:
    problem = lineage_problem("sftp://me:pw55@nas/x")
    assert problem is not None
    assert "pw55" not in str(problem)
    assert "sftp---me" in str(problem)


@pytest.mark.parametrize("text", ["", ".podferry", "..", "a/b", "Digits", "a b", "a\n", "ä", "0" * 201])
def test_lineages_that_users_may_not_write(text: str) -> None:
    problem = lineage_problem(text)
    assert problem is not None
    assert problem.remedy


@pytest.mark.parametrize(
    ("text", "suggested"),
    [
        ("../x", "x"),
        ("a/b", "a-b"),
        ("-/x", "x"),
        ("...", "run-1"),
        ("ä", "run-1"),
        ("A b", "a-b"),
    ],
)
def test_the_suggested_lineage_is_valid_and_no_option(text: str, suggested: str) -> None:
    problem = lineage_problem(text)
    assert problem is not None
    assert problem.remedy.rpartition(": ")[2] == suggested
    assert lineage_problem(suggested) is None
