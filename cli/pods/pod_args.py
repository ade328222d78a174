"""The arguments that `explain` and `inject` share: where the pods come from, and what is set on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

from podferry.cli.options.named_options import Verb, add_options
from podferry.contract.spec import PREFIX


def pod_options(verb: Verb) -> Verb:
    """Add FILE (or -f FILE), --annotation and --namespace."""
    options = (
        click.argument("file", required=False),
        click.option("-f", "--filename", metavar="FILE", help="The same as FILE, as in kubectl."),
        click.option(
            "--annotation",
            "annotations",
            multiple=True,
            metavar="KEY=VALUE",
            callback=lambda _, __, texts: parse_annotations(texts),
            help="Set it on each pod. Repeatable.",
        ),
        click.option("--namespace", "-n", help="Namespace of pods that set none."),
    )
    return add_options(verb, options)


def pairs_option(flag: str, name: str, metavar: str, text: str) -> Callable[[Verb], Verb]:
    """An option whose values, such as `NAME=URI`, become a dictionary."""
    return click.option(
        flag,
        name,
        multiple=True,
        metavar=metavar,
        callback=lambda _, __, texts: parse_pairs(texts, flag),
        help=text,
    )


def chosen_file(file: str | None, filename: str | None) -> str | None:
    """The one file that is given, if any."""
    if file is not None and filename is not None:
        raise click.UsageError(f"two files are given, {file} and -f {filename}: give one of them")
    return filename if file is None else file


def parse_annotations(texts: Sequence[str]) -> dict[str, str]:
    """Annotations from `KEY=VALUE`; a key without a prefix is podferry's."""
    pairs = parse_pairs(texts, "--annotation")
    return {key if "/" in key else PREFIX + key: value for key, value in pairs.items()}


def parse_pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    """Names and values from `NAME=VALUE`."""
    for text in texts:
        if "=" not in text or text.startswith("="):
            raise click.UsageError(f"{option} {text!r}: write {option} NAME=VALUE.")
    return {name: value for name, _, value in (text.partition("=") for text in texts)}


def add_annotations(pod: dict[str, Any], added: Mapping[str, str]) -> None:
    """Set annotations on a pod, over its own."""
    if added:
        metadata = pod["metadata"] = pod.get("metadata") or {}
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **added}
