"""`podferry inject POD.yaml`: what the webhook would do with a pod, without a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TextIO

import click
import msgspec
import yaml

from podferry.contract.errors import InvalidSpec
from podferry.webhook.inject import Decision, inject
from podferry.webhook.patch import apply
from podferry.webhook.policy import Policy
from podferry.webhook.policy_yaml import read_policy
from podferry.webhook.resolve import Namespace

IMAGE = "podferry"
"""Stands for the image where no policy names one."""


class _Loader(yaml.SafeLoader):
    """Leaves timestamps as text: they are the API's, and would come out in another form."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _Named(msgspec.Struct):
    name: str


class _Mount(_Named, rename="camel"):
    mount_path: str


class _Container(_Named, rename="camel"):
    command: list[str] | None = None
    env: list[_Named] | None = None
    volume_mounts: list[_Mount] | None = None
    resources: dict[str, Any] | None = None
    security_context: dict[str, Any] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    containers: list[_Container]
    init_containers: list[_Container] | None = None
    volumes: list[_Named] | None = None
    security_context: dict[str, Any] | None = None
    termination_grace_period_seconds: int | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_Owner] | None = None


class _Owner(_Named):
    kind: str


class _Pod(msgspec.Struct):
    """What the core reads of a pod, for its types alone: the pod itself stays plain JSON."""

    spec: _Spec
    metadata: _Metadata | None = None


@click.command()
@click.argument("file", type=click.File())
@click.option("--policy", type=click.File(), help="The InjectionPolicy.  [default: its defaults]")
@click.option("--namespace", "-n", help="Where the pod is made.  [default: the pod's own]")
@click.option("--namespace-label", "labels", multiple=True, metavar="KEY=VALUE", help="One of its labels.")
@click.option("--output", "-o", type=click.Choice(["yaml", "patch"]), default="yaml", show_default=True)
def command(
    file: TextIO, policy: TextIO | None, namespace: str | None, labels: tuple[str, ...], output: str
) -> int:
    """Show what the webhook makes of the pods in FILE ("-" for standard input). Nothing is sent anywhere."""
    rules = read_policy(policy.read()) if policy else Policy(image=IMAGE)
    labelled = dict(label.partition("=")[::2] for label in labels)
    documents: list[Any] = []
    for document in _documents(file):
        if document["kind"] != "Pod":
            documents += [document] if output == "yaml" else []
            continue
        _check(document)
        own = (document.get("metadata") or {}).get("namespace")
        decision = inject(document, Namespace(namespace or own or "default", labelled), rules)
        _tell(decision)
        documents.append(apply(document, decision.patch) if output == "yaml" else list(decision.patch))
    _show(documents, output)
    return 0


def _documents(file: TextIO) -> Iterator[dict[str, Any]]:
    try:
        every = yaml.load_all(file, _Loader)
        found = [document for document in every if document is not None]
    except yaml.YAMLError as error:
        raise InvalidSpec.of("the file is no YAML", " ".join(str(error).split()), "Correct it") from error
    kinds = [document.get("kind") if isinstance(document, dict) else None for document in found]
    if "Pod" not in kinds or None in kinds:
        named = ", ".join(str(kind) for kind in kinds) or "no document"
        remedy = "Give the YAML of a Pod; `podferry explain` reads Jobs and other templates too"
        what = "the file holds something that is no object" if None in kinds else "the file holds no Pod"
        raise InvalidSpec.of(what, named, remedy)
    yield from found


def _check(pod: dict[str, Any]) -> None:
    """The API server would refuse a malformed pod before it asked the webhook."""
    try:
        msgspec.convert(pod, _Pod)
    except msgspec.ValidationError as error:
        what = "the pod is malformed"
        raise InvalidSpec.of(what, str(error), 'Correct it; annotations are texts: "true"') from error


def _tell(decision: Decision) -> None:
    for warning in decision.warnings:
        click.secho(f"warning: {warning}", err=True, fg="yellow")
    InvalidSpec.raise_any(decision.problems)


def _show(documents: list[Any], output: str) -> None:
    if output == "patch":
        for document in documents:
            click.echo(msgspec.json.format(msgspec.json.encode(document), indent=2).decode())
    else:
        click.echo(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=110), nl=False)
