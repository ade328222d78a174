"""Reads Paddle Operator's SampleJob: which verb of `podferry cache` does the same. Pure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any

import msgspec

from podferry.cache.manifests.cache_spec import parse_cache_name
from podferry.cache.manifests.document_table import (
    Found,
    Ignored,
    Key,
    Table,
    parse_strings,
    read_table,
    text,
)
from podferry.cache.manifests.sample_set import parse_secret_ref, plain_uri
from podferry.contract.annotation_values import parse_namespace
from podferry.contract.errors import InvalidSpec, Problem

SAMPLE_JOB = ("batch.paddlepaddle.org/v1alpha1", "SampleJob")
TYPES = ("sync", "warmup", "clear", "rmr")
NAMESPACE = "default"
"""Of an object without one."""


class SampleJob(msgspec.Struct, frozen=True):
    """What a SampleJob means here.

    Attributes:
        verb: As in `CacheJob`.
        cache, name, namespace: Of the set and of the job.
        words: The command, after `podferry`.
        schedule: As in a CronJob, or empty.
        secret: With credentials, or None.
        notes: Keys that change nothing, and why.
    """

    verb: str
    cache: str
    name: str
    namespace: str
    words: tuple[str, ...]
    schedule: str
    secret: str | None
    notes: tuple[Problem, ...]


def _refused(reason: str, remedy: str) -> Key:
    def parse(value: Any) -> None:
        if value not in (False, None, ""):
            raise InvalidSpec.of(reason, repr(value), remedy)

    return Key("", parse)


def _parse_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise InvalidSpec.of("not true or false", repr(value), "Write true or false")
    return value


def _parse_type(word: str) -> str:
    if word not in TYPES:
        raise InvalidSpec.of("unknown type", repr(word), f"Write {', '.join(TYPES)}")
    return word


def _parse_set(value: Any) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise InvalidSpec.of("not a reference to a set", repr(value), "Write {name: NAME}")
    return parse_cache_name(value["name"])


DIFFERENT = Ignored("every file that differs is moved, and no other")
PACE = Ignored("the transfer finds its own pace")
WHOLE = Ignored("a holder has all of its dataset, or nothing")
META: Table = {"name": Key("name", text(str)), "namespace": Key("namespace", text(parse_namespace))}
SYNC: Table = {
    "source": Key("source", text(str)),
    "destination": Key("destination", text(str)),
    "include": Key("include", text(str)),
    "exclude": Key("exclude", text(str)),
    "dry": Key("dry", _parse_flag),
    "delete-dst": Key("delete", _parse_flag),
    "delete-src": _refused("files of the source are never removed by a sync", "Remove them where they are"),
    **dict.fromkeys(
        ("start", "end"),
        _refused("ranges of names are unknown here", "Select files with include and exclude"),
    ),
    **dict.fromkeys(("update", "force-update"), DIFFERENT),
    **dict.fromkeys(("threads", "bwlimit"), PACE),
    **dict.fromkeys(("perms", "dirs"), Ignored("stores of objects have neither modes nor directories")),
    **dict.fromkeys(("manager", "worker"), Ignored("--workers N has N pods share the work")),
    "no-https": Ignored("the URL that is given as endpoint says it"),
}
SPEC: Table = {
    "type": Key("type", text(_parse_type)),
    "sampleSetRef": Key("cache", _parse_set),
    "sampleset": Key("cache", text(parse_cache_name)),
    "secretRef": Key("secret", parse_secret_ref),
    "schedule": Key("schedule", text(str)),
    "terminate": Ignored("there is no queue of other jobs"),
    "syncOptions": SYNC,
    "warmupOptions": dict.fromkeys(("paths", "partitions", "strategyName", "file", "threads"), WHOLE),
    "clearOptions": {"paths": WHOLE},
    "rmrOptions": {"paths": Key("paths", parse_strings)},
}


def read_sample_job(document: Any, source: str) -> SampleJob:
    """Read a document.

    Args:
        document: As YAML has read it.
        source: Its name, for messages.

    Raises:
        InvalidSpec: Everything that is wrong with it.
    """
    kind = (document.get("apiVersion"), document.get("kind")) if isinstance(document, dict) else ()
    if kind != SAMPLE_JOB:
        measured = " of ".join(str(word) for word in reversed(kind))
        remedy = f"Write a {SAMPLE_JOB[1]} of {SAMPLE_JOB[0]}"
        raise InvalidSpec.of(f"{source} does not describe a job of a cache", measured, remedy)
    found = Found()
    metadata = document.get("metadata") or {}
    read_table({key: metadata[key] for key in META if key in metadata}, META, "metadata.", found)
    read_table(document.get("spec") or {}, SPEC, "spec.", found)
    wrong = {one.what.partition(":")[0] for one in found.problems}
    problems = [*found.problems, *_missing(found.values, wrong)]
    InvalidSpec.raise_any(Problem(f"{source}: {one.what}", one.measured, one.remedy) for one in problems)
    return _job(found)


def _missing(values: Mapping[str, Any], wrong: Container[str]) -> Iterator[Problem]:
    """What a job needs and does not have, but for the keys that are `wrong`."""
    needed = {"name": "metadata.name", "type": "spec.type", "cache": "spec.sampleSetRef"}
    needed |= {"sync": {"source": "spec.syncOptions.source"}, "rmr": {"paths": "spec.rmrOptions.paths"}}.get(
        values.get("type", ""), {}
    )
    for name, path in needed.items():
        if not values.get(name) and path not in wrong:
            yield Problem(f"{path} is missing", "", "Write it")
    namespace, (secret, where) = values.get("namespace", NAMESPACE), values.get("secret", ("", None))
    if where not in (None, namespace):
        what = "the Secret is not in the namespace of the job"
        yield Problem(what, f"{secret} in {where}", "Copy it there, or write metadata.namespace")


def _job(found: Found) -> SampleJob:
    values = found.values
    namespace, cache = values.get("namespace", NAMESPACE), values["cache"]
    words = WORDS[values["type"]](values)
    verb = "copy" if "destination" in values and values["type"] == "sync" else values["type"]
    command = ("dataset", "sync") if verb == "copy" else ("cache", verb, cache, f"--namespace={namespace}")
    secret = values["secret"][0] if "secret" in values else None
    schedule = values.get("schedule", "")
    return SampleJob(
        verb, cache, values["name"], namespace, (*command, *words), schedule, secret, tuple(found.notes)
    )


def _sync_words(values: Mapping[str, Any]) -> tuple[str, ...]:
    source, access = plain_uri(values["source"])
    target, target_access = plain_uri(values.get("destination", ""))
    options = {**access, **{f"to-{name}": value for name, value in target_access.items()}}
    options |= {name: values[name] for name in ("include", "exclude") if values.get(name)}
    flags = {"delete": "--delete", "dry": "--dry-run"}
    given = (*(f"--{name}={value}" for name, value in options.items()),)
    return *filter(None, (source, target)), *given, *(flags[name] for name in flags if values.get(name))


def _rmr_words(values: Mapping[str, Any]) -> tuple[str, ...]:
    # JuiceFS's paths begin at the root of its volume, which is the source here.
    return *(path.lstrip("/") for path in values["paths"]), "--yes", "--missing-ok"


WORDS: Mapping[str, Callable[[Mapping[str, Any]], tuple[str, ...]]] = {
    "sync": _sync_words,
    "warmup": lambda _: (),
    "clear": lambda _: ("--empty",),
    "rmr": _rmr_words,
}
"""What follows the verb and the cache."""
