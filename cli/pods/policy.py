"""`podferry policy`: checks an injection policy before it is applied, and prints its JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import click

from podferry.cli.live_cluster import LiveCluster
from podferry.cli.options.cluster_options import cluster_options
from podferry.cli.output import output_option, print_json, print_table
from podferry.cli.pods.cluster_objects import read_objects
from podferry.cli.pods.policy_check import PodCheck, changed_checks, check_pods, namespaces_of
from podferry.cli.pods.policy_file import read_policy_file
from podferry.cli.yaml_documents import read_documents, read_text
from podferry.contract.quantity import format_bytes
from podferry.sidecar.runtime.messages import print_message
from podferry.webhook.policy.loose_lists import loose_lists
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.policy_schema import policy_schema
from podferry.webhook.policy.rule_webhooks import RULE_WEBHOOK_SUFFIX, rule_names
from podferry.webhook.policy.rules import shadowed_rules


@click.group()
def command() -> None:
    """Check an injection policy: what it does to which pods."""


@command.command()
@click.argument("file")
@click.argument("pods", nargs=-1)
@click.option("--current", metavar="FILE", help="The policy in use: show only what changes.")
@click.option("--live", is_flag=True, help="Also check the pods and templates of a cluster.")
@cluster_options
@click.option("--namespace", "-n", help="Of pods in files that set none; with --live, the only one.")
@output_option
def check(file: str, pods: tuple[str, ...], output: str, **options: Any) -> int:
    """Check the policy in FILE, and show what it does to the pods in the files PODS.

    FILE is an InjectionPolicy, or a ConfigMap with one. PODS contain pods, Jobs and other objects with pod
    templates; namespaces in them have labels for the rules. - is standard input. Nothing is changed.

    The exit code is 1 if the policy is invalid or a pod is refused.
    """
    policy = read_policy_file(*read_text(file))
    documents = {name: read_documents(*read_text(name)) for name in pods}
    if options["live"]:
        cluster = LiveCluster(options["kubeconfig"], options["context"])
        documents["the cluster"] = read_objects(cluster, options["namespace"])
    labels = namespaces_of(document for found in documents.values() for document in found)
    namespace = options["namespace"] or "default"
    checks = check_pods(policy, documents, labels, namespace)
    if options["current"]:
        current = read_policy_file(*read_text(options["current"]))
        checks = changed_checks(check_pods(current, documents, labels, namespace), checks)
    if output == "json":
        print_json({"digest": policy.digest, "pods": checks})
    else:
        _print(policy, checks)
    return int(any(one.refused for one in checks))


@command.command()
def schema() -> None:
    """Print the JSON Schema of policies."""
    print_json(policy_schema())


def _print(policy: Policy, checks: Iterable[PodCheck]) -> None:
    checks = list(checks)
    click.echo(f"the policy is valid: {policy.digest}, enforcement {policy.enforcement}")
    for name in rule_names(policy):
        click.echo(f"rule {name}: pods without annotations are sent by {name}{RULE_WEBHOOK_SUFFIX}")
    for rule, earlier in shadowed_rules(policy.rules):
        print_message(
            f"warning: rule {rule.name} never applies: rule {earlier.name}, before it, selects all its pods",
            "yellow",
        )
    for text in loose_lists(policy):
        print_message(f"warning: {text}", "yellow")
    if not checks:
        return
    click.echo()
    rows = [
        (one.pod, one.namespace, one.outcome_text, one.rule or "-", _size(one.sidecar), one.added_text or "-")
        for one in checks
    ]
    print_table(("pod", "namespace", "outcome", "rule", "sidecar", "added by the rule"), rows, ("sidecar",))
    for one in checks:
        # A warning of the webhook may repeat a problem.
        notes = (note for note in one.notes if not any(problem in note for problem in one.problems))
        for text in (*one.problems, *notes):
            click.echo(f"{one.pod}: {text}")


def _size(sidecar: int | None) -> str:
    return "-" if sidecar is None else format_bytes(sidecar)
