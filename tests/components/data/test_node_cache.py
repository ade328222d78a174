"""The steps of a cache, on an API server on loopback and when they are compiled."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import subprocess
from pathlib import Path

import pytest
from google.protobuf import json_format
from kfp import dsl

from podferry.components import clear_cache, remove_from_cache, warmup_cache
from podferry.components.data.node_cache import runner
from podferry.components.data.node_cache.component import cache_verb
from podferry.components.data.node_cache.runner import CacheVerb, run_verb
from podferry.contract.errors import InvalidSpec
from tests.support.live_api import live_api

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
    place = ["--endpoint=http://s:9", "--region=r"]
    removal = ["cache", "rmr", "digits", *WORDS, "--yes", "--missing-ok", *place]
    assert commands == [
        ["cache", "warmup", "digits", *WORDS, "--timeout=60"],
        ["cache", "clear", "digits", *WORDS, "--node=n1", "--force"],
        ["cache", "clear", "digits", *WORDS, "--empty"],
        [*removal, f"--secret-dir={tmp_path}", "--", "a/b", "c d"],
        [*removal, "--", "a/b", "c d"],
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


def test_inputs_that_are_wrong_are_named_all_at_once() -> None:
    with pytest.raises(InvalidSpec) as raised:
        run_verb(CacheVerb("rmr", "Digits", "", "../x", endpoint="store"))
    assert [one.what.partition(":")[0] for one in raised.value.problems] == [
        *("cache", "namespace", "paths", "endpoint")
    ]
    with pytest.raises(InvalidSpec, match="verb: unknown"):
        run_verb(CacheVerb("delete", "digits", "podferry"))


def test_constants_are_checked_when_the_pipeline_is_compiled() -> None:
    with pytest.raises(InvalidSpec) as raised:
        remove_from_cache("Digits", ["a//b"], namespace="My_Space", force="yes", secret="S")
    named = [one.what.partition(":")[0] for one in raised.value.problems]
    assert sorted(named) == ["cache", "force", "namespace", "paths", "secret"]
    with pytest.raises(InvalidSpec, match="empty: neither True nor False"):
        clear_cache("digits", empty=1)


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
