"""The steps of a cache, on an API server on loopback and when they are compiled."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import subprocess
from pathlib import Path

import pytest
import yaml
from google.protobuf import json_format
from kfp import dsl

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests
from podferry.cli.cache.applied_objects import KINDS
from podferry.cli.cache.live_objects import NAMESPACED
from podferry.components import clear_cache, create_cache, delete_cache, remove_from_cache, warmup_cache
from podferry.components.data.node_cache import component, runner
from podferry.components.data.node_cache.component import cache_verb
from podferry.components.data.node_cache.new_cache import NewCache, run_create
from podferry.components.data.node_cache.runner import CacheVerb, run_verb
from podferry.contract.errors import InvalidSpec
from tests.support.live_api import live_api

DEPLOY = Path(__file__).parents[3] / "deploy" / "kfp-caches"
WORDS = ["--namespace=podferry"]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments of the commands that steps run; each succeeds."""
    found: list[list[str]] = []

    def run(words: list[str], **_: object) -> "subprocess.CompletedProcess[bytes]":
        found.append(words[3:])
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(runner.subprocess, "run", run)
    return found


def test_each_verb_has_its_options(commands: list[list[str]], tmp_path: Path) -> None:
    run_verb(CacheVerb("warmup", "digits", "podferry", timeout=60))
    run_verb(CacheVerb("clear", "digits", "podferry", node="n1", force=True))
    run_verb(CacheVerb("clear", "digits", "podferry", empty=True))
    rmr = CacheVerb("rmr", "digits", "podferry", "a/b\nc d", endpoint="http://s:9", region="r")
    run_verb(rmr, tmp_path)
    run_verb(rmr, tmp_path / "absent")
    run_verb(CacheVerb("delete", "digits", "podferry", force=True))
    place = ["--endpoint=http://s:9", "--region=r"]
    removal = ["cache", "rmr", "digits", *WORDS, "--yes", "--missing-ok", *place]
    assert commands == [
        ["cache", "warmup", "digits", *WORDS, "--timeout=60"],
        ["cache", "clear", "digits", *WORDS, "--node=n1", "--force"],
        ["cache", "clear", "digits", *WORDS, "--empty"],
        [*removal, f"--secret-dir={tmp_path}", "--", "a/b", "c d"],
        [*removal, "--", "a/b", "c d"],
        ["cache", "delete", "digits", *WORDS, "--missing-ok", "--force"],
    ]


def test_a_new_cache_has_the_options_of_the_command(commands: list[list[str]]) -> None:
    run_create(NewCache("digits", "s3://b/c", "1Gi", wait=False))
    everything = NewCache(
        *("digits", "s3://b/c", "1Gi", 3, "pool=gpu zone=a", "team", "team-a lab-*"),
        disk=True,
        shared="/var/lib/podferry",
        max_rate="200Mi",
        refresh="10m",
        holder_image="team/podferry:7",
        secret="keys",
        endpoint="http://s:9",
        region="r",
        timeout=60,
    )
    run_create(everything)
    place = "--namespace=team"
    assert commands == [
        ["cache", "create", "digits", *WORDS, "--source=s3://b/c", "--size=1Gi", "--nodes=1", "--apply"],
        [
            *("cache", "create", "digits", place, "--source=s3://b/c", "--size=1Gi"),
            *("--shared=/var/lib/podferry", "--refresh=10m", "--secret=keys", "--endpoint=http://s:9"),
            *("--region=r", "--max-rate=200Mi", "--image=team/podferry:7"),
            *("--selector=pool=gpu", "--selector=zone=a", "--readers=team-a", "--readers=lab-*"),
            *("--nodes=3", "--disk", "--apply"),
        ],
        ["cache", "warmup", "digits", place, "--timeout=60"],
    ]


def test_the_verb_s_end_is_that_of_the_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with live_api(tmp_path) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
        with pytest.raises(SystemExit) as ended:
            cache_verb.python_func(verb="clear", cache="digits")
    assert ended.value.code == 1
    assert "there is no cache digits in the namespace podferry" in capfd.readouterr().err


def test_a_cache_is_created_once_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def outcomes() -> set[str]:
        lines = capfd.readouterr().out.splitlines()
        return {line.split()[-1] for line in lines if line.partition("/")[0].isalpha()}

    create = component.create_cache.python_func
    with live_api(tmp_path) as api:
        monkeypatch.setenv("KUBECONFIG", str(api.kubeconfig))
        given = {"cache": "digits", "source": "s3://b/c", "size": "1Gi", "wait": False}
        assert create(**given) == "digits"
        assert outcomes() == {"created"}
        assert create(**given) == "digits"
        assert outcomes() == {"unchanged"}
        cache_verb.python_func(verb="delete", cache="digits")
        assert [path.rpartition("/")[2] for path in api.objects] == ["podferry-cache"]


def test_inputs_that_are_wrong_are_named_all_at_once() -> None:
    with pytest.raises(InvalidSpec) as raised:
        run_verb(CacheVerb("rmr", "Digits", "", "../x", endpoint="store"))
    assert [one.what.partition(":")[0] for one in raised.value.problems] == [
        *("cache", "namespace", "paths", "endpoint")
    ]
    with pytest.raises(InvalidSpec, match="verb: unknown"):
        run_verb(CacheVerb("serve", "digits", "podferry"))
    with pytest.raises(InvalidSpec) as raised:
        run_create(NewCache("Digits", "", "lots", 1, "gpu", "", "A_b", max_rate="1", refresh="0"))
    named = [one.what.partition(":")[0] for one in raised.value.problems]
    assert sorted(named) == sorted(
        ("cache", "namespace", "source", "size", "selector", "readers", "max_rate", "refresh")
    )


def test_constants_are_checked_when_the_pipeline_is_compiled() -> None:
    with pytest.raises(InvalidSpec) as raised:
        remove_from_cache("Digits", ["a//b"], namespace="My_Space", force="yes", secret="S")
    named = [one.what.partition(":")[0] for one in raised.value.problems]
    assert sorted(named) == ["cache", "force", "namespace", "paths", "secret"]
    with pytest.raises(InvalidSpec, match="empty: neither True nor False"):
        clear_cache("digits", empty=1)
    with pytest.raises(InvalidSpec) as raised:
        create_cache(
            "Digits",
            "s3://b/c",
            nodes=0,
            selector={"pool": "a b"},
            readers=["team-a", "Lab"],
            wait="no",
            shared="here",
            image="my image",
        )
    named = [one.what.partition(":")[0] for one in raised.value.problems]
    words = "cache nodes selector readers shared wait image size"
    assert sorted(named) == sorted(words.split())
    with pytest.raises(InvalidSpec, match="force: neither True nor False"):
        delete_cache("digits", force="yes")


@pytest.mark.parametrize("timeout", [1800, 1800.0])
def test_a_number_of_seconds_of_either_type_is_whole(timeout: float) -> None:
    @dsl.pipeline(name="p")
    def warm() -> None:
        warmup_cache("digits", timeout=timeout)

    tasks = json_format.MessageToDict(warm.pipeline_spec)["root"]["dag"]["tasks"]
    [task] = tasks.values()
    assert task["inputs"]["parameters"]["timeout"]["runtimeValue"]["constant"] == 1800


def test_channels_and_the_order_of_steps() -> None:
    @dsl.pipeline(name="p")
    def refresh(name: str, path: str) -> None:
        removed = remove_from_cache(name, [path, "b"])
        cleared = clear_cache(name, empty=True).after(removed)
        warmup_cache(name, timeout=60.0).after(cleared)

    spec = json_format.MessageToDict(refresh.pipeline_spec)
    tasks = spec["root"]["dag"]["tasks"]
    verbs = {one["inputs"]["parameters"]["verb"]["runtimeValue"]["constant"] for one in tasks.values()}
    assert verbs == {"rmr", "clear", "warmup"}
    paths = tasks["cache-verb"]["inputs"]["parameters"]["paths"]["runtimeValue"]["constant"]
    assert paths == "{{$.inputs.parameters['pipelinechannel--path']}}\nb"


def test_a_cache_of_channels_returns_its_name() -> None:
    @dsl.pipeline(name="p")
    def cached(name: str, uri: str, team: str, holders: int) -> None:
        readers = [team, "lab-*"]
        made = create_cache(name, uri, nodes=holders, readers=readers, selector={"pool": team}, secret=team)
        warmup_cache(made.output)
        delete_cache(name, force=True).after(made)

    spec = json_format.MessageToDict(cached.pipeline_spec)
    inputs = spec["root"]["dag"]["tasks"]["create-cache"]["inputs"]["parameters"]
    team = "{{$.inputs.parameters['pipelinechannel--team']}}"
    assert inputs["readers"]["runtimeValue"]["constant"] == f"{team} lab-*"
    assert inputs["selector"]["runtimeValue"]["constant"] == f"pool={team}"
    assert inputs["secret"] == {"componentInputParameter": "team"}
    assert inputs["run"] == {"runtimeValue": {"constant": dsl.PIPELINE_JOB_ID_PLACEHOLDER}}
    assert not json_format.MessageToDict(cached.platform_spec).get("platforms")  # the holders mount it
    tasks = spec["root"]["dag"]["tasks"]
    verbs = [one["inputs"]["parameters"].get("verb") for one in tasks.values()]
    assert {"runtimeValue": {"constant": "delete"}} in verbs


def test_a_frozen_source_has_its_size() -> None:
    frozen = "s3://b/c#sha256=" + "0" * 64 + "&bytes=1000000&files=10"

    @dsl.pipeline(name="p")
    def cached() -> None:
        create_cache("digits", frozen)

    inputs = json_format.MessageToDict(cached.pipeline_spec)["root"]["dag"]["tasks"]["create-cache"]["inputs"]
    assert inputs["parameters"]["size"]["runtimeValue"]["constant"] == ""


def test_the_rights_are_those_of_every_object() -> None:
    """`deploy/kfp-caches` allows what `create --apply` and `delete` do, and grants what holders may do."""
    objects = manifests(CacheSpec("digits", "kubeflow", "s3://b/c", 1 << 20, "image"))
    allowed = {name: _rights(name) for name in ("role", "cluster-role")}
    for one in objects:
        api, plural = KINDS[one["kind"]]
        scope = "role" if "namespace" in one["metadata"] else "cluster-role"
        verbs = allowed[scope][api.removeprefix("/api/v1").removeprefix("/apis/").partition("/")[0], plural]
        assert {"get", "create", "patch"} <= verbs
        for rule in one.get("rules", ()):
            for resource in rule["resources"]:
                assert set(rule["verbs"]) <= allowed[scope][rule["apiGroups"][0], resource]
    for kind, (api, plural) in NAMESPACED.items():
        group = api.removeprefix("/api/v1").removeprefix("/apis/").partition("/")[0]
        assert {"list", "delete"} <= allowed["role"][group, plural], kind


def _rights(name: str) -> dict[tuple[str, str], set[str]]:
    role, _ = yaml.safe_load_all((DEPLOY / f"{name}.yaml").read_text())
    found: dict[tuple[str, str], set[str]] = {}
    for rule in role["rules"]:
        for resource in rule["resources"]:
            found.setdefault((rule["apiGroups"][0], resource), set()).update(rule["verbs"])
    return found
