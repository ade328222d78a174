"""`podferry inject POD.yaml`: injects pods as the webhook would, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click
import yaml

from podferry.cli.output import print_json
from podferry.cli.pods.manifests import DEFAULT_IMAGE, namespace_of
from podferry.cli.pods.pod_args import add_annotations, chosen_file, pairs_option, pod_options
from podferry.cli.pods.policy_file import read_policy_file
from podferry.cli.yaml_documents import read_text
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
    "--policy", metavar="FILE", help="InjectionPolicy, or its ConfigMap.  [default: the built-in defaults]"
)
@pairs_option("--namespace-label", "labels", "KEY=VALUE", "Label of the namespace. Repeatable.")
@click.option(
    "--output", "-o", type=click.Choice(["yaml", "patch"]), default="yaml", help="Injected pods, or patches."
)
def command(
    file: str | None, filename: str | None, annotations: dict[str, str], output: str, **options: Any
) -> int:
    """Print the pods in FILE as the webhook would inject them; - is standard input.

    Works offline. Apply the output only in clusters without the webhook, which refuses it: its stamps are not
    signed.
    """
    chosen, policy_file = chosen_file(file, filename), options["policy"]
    if chosen is None:
        raise click.UsageError("Give a file with pods, or - for standard input.")
    policy = read_policy_file(*read_text(policy_file)) if policy_file else Policy(image=DEFAULT_IMAGE)
    results: list[Any] = []
    for document in _pods_and_others(*read_text(chosen)):
        if document["kind"] == "Pod":
            check_types(document)
            add_annotations(document, annotations)
            name = namespace_of(document, options["namespace"] or "default")
            patch = _patch(document, Namespace(name, options["labels"]), policy)
            results.append(apply(document, patch) if output == "yaml" else list(patch))
        elif output == "yaml":
            results.append(document)
    _print_documents(results, output)
    return 0


def _patch(pod: dict[str, Any], namespace: Namespace, policy: Policy) -> Sequence[Mapping[str, Any]]:
    """What the webhook would change; prints its warnings, and raises `InvalidSpec` for a refusal."""
    decision = decide(pod, namespace, policy)
    for warning in decision.warnings:
        print_message(f"warning: {warning}", "yellow")
    InvalidSpec.raise_any(decision.problems if decision.outcome in NOT_DONE else ())
    return decision.patch


def _pods_and_others(text: str, source: str) -> list[dict[str, Any]]:
    try:
        loaded = yaml.load_all(text, _TextTimestampLoader)
        documents = [document for document in loaded if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidSpec.of(f"{source} is not YAML", yaml_evidence(error), "Correct it") from error
    kinds = [document.get("kind") if isinstance(document, dict) else None for document in documents]
    if "Pod" not in kinds or None in kinds:
        listed = ", ".join(str(kind) for kind in kinds) or "no document"
        remedy = "Give the YAML of a Pod; `podferry explain` reads Jobs and other templates too"
        missing = "something that is not an object" if None in kinds else "no Pod"
        raise InvalidSpec.of(f"{source} contains {missing}", listed, remedy)
    return documents


def _print_documents(documents: list[Any], output: str) -> None:
    if output == "patch":
        for document in documents:
            print_json(document)
    else:
        click.echo(yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, width=110), nl=False)
