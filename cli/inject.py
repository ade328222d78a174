"""`podferry inject POD.yaml`: injects pods as the webhook would, without a cluster."""

from __future__ import annotations

from typing import Any, TextIO

import click
import msgspec
import yaml

from podferry.cli.output import print_json
from podferry.contract.errors import InvalidSpec
from podferry.webhook.inject import inject
from podferry.webhook.json_patch import apply
from podferry.webhook.policy import Policy
from podferry.webhook.policy_yaml import read_policy
from podferry.webhook.resolve import Namespace

DEFAULT_IMAGE = "podferry"
"""The sidecar image if no policy is given."""


class _TextTimestampLoader(yaml.SafeLoader):
    """Keeps timestamps as text, so that the output repeats them unchanged."""


_TextTimestampLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class _NamedSchema(msgspec.Struct):
    name: str


class _MountSchema(_NamedSchema, rename="camel"):
    mount_path: str


class _ContainerSchema(_NamedSchema, rename="camel"):
    command: list[str] | None = None
    env: list[_NamedSchema] | None = None
    volume_mounts: list[_MountSchema] | None = None
    resources: dict[str, Any] | None = None
    security_context: dict[str, Any] | None = None


class _SpecSchema(msgspec.Struct, rename="camel"):
    containers: list[_ContainerSchema]
    init_containers: list[_ContainerSchema] | None = None
    volumes: list[_NamedSchema] | None = None
    security_context: dict[str, Any] | None = None
    termination_grace_period_seconds: int | None = None


class _MetadataSchema(msgspec.Struct, rename="camel"):
    name: str | None = None
    generate_name: str | None = None
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[_OwnerSchema] | None = None


class _OwnerSchema(_NamedSchema):
    kind: str


class _PodSchema(msgspec.Struct):
    """The types of the fields that the webhook reads. Only for validation: the pod stays plain JSON."""

    spec: _SpecSchema
    metadata: _MetadataSchema | None = None


@click.command()
@click.argument("file", type=click.File())
@click.option("--policy", type=click.File(), help="InjectionPolicy file.  [default: the built-in defaults]")
@click.option("--namespace", "-n", help="Namespace of the pods.  [default: each pod's own]")
@click.option(
    "--namespace-label", "labels", multiple=True, metavar="KEY=VALUE", help="Its label. Repeatable."
)
@click.option(
    "--output", "-o", type=click.Choice(["yaml", "patch"]), default="yaml", help="Injected pods, or patches."
)
def command(
    file: TextIO, policy: TextIO | None, namespace: str | None, labels: tuple[str, ...], output: str
) -> int:
    """Print the pods in FILE as the webhook would inject them. FILE may be - for standard input.

    Works offline.
    """
    rules = read_policy(policy.read()) if policy else Policy(image=DEFAULT_IMAGE)
    namespace_labels = dict(label.partition("=")[::2] for label in labels)
    results: list[Any] = []
    for document in _read_documents(file):
        if document["kind"] != "Pod":
            results += [document] if output == "yaml" else []
            continue
        _validate(document)
        own = (document.get("metadata") or {}).get("namespace")
        decision = inject(document, Namespace(namespace or own or "default", namespace_labels), rules)
        for warning in decision.warnings:
            click.secho(f"warning: {warning}", err=True, fg="yellow")
        InvalidSpec.raise_any(decision.problems)
        results.append(apply(document, decision.patch) if output == "yaml" else list(decision.patch))
    _print_documents(results, output)
    return 0


def _read_documents(file: TextIO) -> list[dict[str, Any]]:
    try:
        loaded = yaml.load_all(file, _TextTimestampLoader)
        documents = [document for document in loaded if document is not None]
    except yaml.YAMLError as error:
        raise InvalidSpec.of("the file is not YAML", " ".join(str(error).split()), "Correct it") from error
    kinds = [document.get("kind") if isinstance(document, dict) else None for document in documents]
    if "Pod" not in kinds or None in kinds:
        listed = ", ".join(str(kind) for kind in kinds) or "no document"
        remedy = "Give the YAML of a Pod; `podferry explain` reads Jobs and other templates too"
        what = (
            "the file contains something that is not an object"
            if None in kinds
            else "the file contains no Pod"
        )
        raise InvalidSpec.of(what, listed, remedy)
    return documents


def _validate(pod: dict[str, Any]) -> None:
    """Refuse a malformed pod, as the API server does before it calls the webhook."""
    try:
        msgspec.convert(pod, _PodSchema)
    except msgspec.ValidationError as error:
        what = "the pod is malformed"
        raise InvalidSpec.of(
            what, str(error), 'Correct it; quote the values of annotations: "true"'
        ) from error


def _print_documents(documents: list[Any], output: str) -> None:
    if output == "patch":
        for document in documents:
            print_json(document)
    else:
        click.echo(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=110), nl=False)
