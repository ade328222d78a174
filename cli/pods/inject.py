"""`podferry inject POD.yaml`: injects pods as the webhook would, without a cluster."""

from __future__ import annotations

from typing import Any, TextIO

import click
import yaml

from podferry.cli.output import print_json
from podferry.cli.pods.manifests import DEFAULT_IMAGE
from podferry.cli.pods.pod_args import (
    add_annotations,
    chosen_file,
    parse_annotations,
    parse_pairs,
    pod_options,
    read_text,
)
from podferry.cli.pods.policy_check import read_policy_file
from podferry.contract.errors import InvalidSpec
from podferry.contract.yaml_evidence import yaml_evidence
from podferry.sidecar.runtime.messages import print_message
from podferry.webhook.admission.decide import NOT_DONE, decide
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_schema import check_types
from podferry.webhook.policy.policy import Policy


class _TextTimestampLoader(yaml.SafeLoader):
    """Keeps timestamps as text, so that the output repeats them unchanged."""


_TextTimestampLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


@click.command()
@pod_options
@click.option(
    "--policy",
    type=click.File(),
    help="InjectionPolicy, or a ConfigMap with one.  [default: the built-in defaults]",
)
@click.option(
    "--namespace-label",
    "labels",
    multiple=True,
    metavar="KEY=VALUE",
    help="Label of the namespace. Repeatable.",
)
@click.option(
    "--output", "-o", type=click.Choice(["yaml", "patch"]), default="yaml", help="Injected pods, or patches."
)
def command(
    file: str | None,
    filename: str | None,
    annotations: tuple[str, ...],
    policy: TextIO | None,
    labels: tuple[str, ...],
    **options: Any,
) -> int:
    """Print the pods in FILE as the webhook would inject them; - is standard input.

    Works offline. Apply the output only in clusters without the webhook, which refuses it: its stamps are not
    signed.
    """
    namespace, output = options["namespace"], options["output"]
    chosen, added = chosen_file(file, filename), parse_annotations(annotations)
    if chosen is None:
        raise click.UsageError("Give a file with pods, or - for standard input.")
    rules = read_policy_file(policy.read(), policy.name) if policy else Policy(image=DEFAULT_IMAGE)
    namespace_labels = parse_pairs(labels, "--namespace-label")
    results: list[Any] = []
    for document in _read_documents(*read_text(chosen)):
        if document["kind"] != "Pod":
            results += [document] if output == "yaml" else []
            continue
        check_types(document)
        add_annotations(document, added)
        own = (document.get("metadata") or {}).get("namespace")
        decision = decide(document, Namespace(own or namespace or "default", namespace_labels), rules)
        for warning in decision.warnings:
            print_message(f"warning: {warning}", "yellow")
        InvalidSpec.raise_any(decision.problems if decision.outcome in NOT_DONE else ())
        results.append(apply(document, decision.patch) if output == "yaml" else list(decision.patch))
    _print_documents(results, output)
    return 0


def _read_documents(text: str, source: str) -> list[dict[str, Any]]:
    try:
        loaded = yaml.load_all(text, _TextTimestampLoader)
        documents = [document for document in loaded if document is not None]
    except yaml.YAMLError as error:
        raise InvalidSpec.of(f"{source} is not YAML", yaml_evidence(error), "Correct it") from error
    kinds = [document.get("kind") if isinstance(document, dict) else None for document in documents]
    if "Pod" not in kinds or None in kinds:
        listed = ", ".join(str(kind) for kind in kinds) or "no document"
        remedy = "Give the YAML of a Pod; `podferry explain` reads Jobs and other templates too"
        what = (
            f"{source} contains something that is not an object"
            if None in kinds
            else f"{source} contains no Pod"
        )
        raise InvalidSpec.of(what, listed, remedy)
    return documents


def _print_documents(documents: list[Any], output: str) -> None:
    if output == "patch":
        for document in documents:
            print_json(document)
    else:
        click.echo(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=110), nl=False)
