"""`podferry explain`: shows what a pod's annotations mean and how much memory they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec

from podferry.cli.options.store_options import access_options, store_config_of
from podferry.cli.output import output_option, print_json, print_table
from podferry.cli.pods.explain_resources import ExplainedResources, explain_resources
from podferry.cli.pods.explanation import NO_MEMORY_SUM, Explanation, add_memory, explain
from podferry.cli.pods.manifests import (
    DEFAULT_IMAGE,
    FoundPod,
    bare_pod,
    namespace_of,
    read_pods,
)
from podferry.cli.pods.pod_args import add_annotations, chosen_file, pairs_option, pod_options
from podferry.cli.pods.policy_file import read_policy_file
from podferry.cli.yaml_documents import read_documents, read_text
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import FerryError, InvalidSpec, Problem
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.spec import DatasetSpec
from podferry.sidecar.dataset.selection import Selection, open_selected, shard_manifest
from podferry.sidecar.runtime.messages import print_message, print_problems
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig
from podferry.webhook.limits.namespace_limits import NamespaceLimits, limits_from
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy


@click.command()
@pod_options
@pairs_option("--declare", "declared", "NAME=URI", "Dataset that the policy declares. Repeatable.")
@click.option(
    "--list", "listing", is_flag=True, help="List the datasets for their real sizes; needs network."
)
@click.option("--policy", metavar="FILE", help="InjectionPolicy, or its ConfigMap; shows resources.")
@click.option(
    "--limits",
    metavar="FILE",
    help="LimitRanges and ResourceQuotas, from kubectl get limitrange,resourcequota -o yaml.",
)
@output_option
@access_options
def command(
    file: str | None, filename: str | None, annotations: dict[str, str], output: str, **options: Any
) -> int:
    """Show what the annotations of the pods in FILE mean, and the memory they cost.

    Reads Pods, Jobs, CronJobs and any other object with a pod template; - is standard input. Without FILE,
    explains only the annotations that are given. Does not read the cluster's policy; the output says where a
    policy decides.

    With --policy or --limits, also shows the resources of each container without and with podferry, and
    whether the namespace's LimitRanges and ResourceQuotas allow them.
    """
    pods = _pods(chosen_file(file, filename), annotations)
    explanations = [explain(pod, options["declared"], options["namespace"]) for pod in pods]
    if options["policy"] or options["limits"]:
        explanations = _with_rules(explanations, pods, options)
    if options["listing"]:
        explanations = [_with_listing(explanation, options) for explanation in explanations]
    if output == "json":
        print_json([explanation.as_json() for explanation in explanations])
    else:
        _print_all(explanations)
    problems = list(_problems(explanations))
    print_problems(problems)
    return 1 if problems else 0


def _pods(filename: str | None, added: dict[str, str]) -> list[FoundPod]:
    if filename is None:
        if not added:
            raise click.UsageError("Give a file, or annotations with --annotation KEY=VALUE.")
        return [bare_pod(added)]
    pods = read_pods(*read_text(filename))
    for found in pods:
        add_annotations(found.pod, added)
    return pods


def _with_rules(
    explanations: Sequence[Explanation], pods: Sequence[FoundPod], options: Mapping[str, Any]
) -> list[Explanation]:
    """Add each pod's resources with the policy and the limits that the options name."""
    policy, limits = Policy(image=DEFAULT_IMAGE), NamespaceLimits()
    if options["policy"]:
        policy = read_policy_file(*read_text(options["policy"]))
    if options["limits"]:
        limits = limits_from(read_documents(*read_text(options["limits"])))
    default = options["namespace"] or "default"
    return [
        _with_resources(one, found.complete, Namespace(namespace_of(found.complete, default)), policy, limits)
        for one, found in zip(explanations, pods, strict=True)
    ]


def _with_resources(
    explanation: Explanation,
    pod: Mapping[str, Any],
    namespace: Namespace,
    policy: Policy,
    limits: NamespaceLimits,
) -> Explanation:
    """Add the resources of the pod as the webhook would inject it, in a namespace with these limits."""
    try:
        resources = explain_resources(pod, namespace, policy, limits)
    except InvalidSpec as error:
        resources = ExplainedResources(problems=error.problems)
    problems = (*explanation.problems, *resources.problems)
    return msgspec.structs.replace(explanation, resources=resources, problems=tuple(dict.fromkeys(problems)))


def _with_listing(explanation: Explanation, access: Mapping[str, Any]) -> Explanation:
    """Compute the memory sum from listed sizes, with this machine's credentials, not the pod's Secret."""
    spec = explanation.spec
    if spec is None or not spec.datasets:
        return explanation
    sizes: dict[str, ListedSize] = {}
    notes = [note for note in explanation.notes if not note.startswith(NO_MEMORY_SUM)]
    problems = list(explanation.problems)
    for dataset in spec.datasets:
        try:
            size = asyncio.run(_listed_size(dataset, _store_config(dataset, access)))
        except FerryError as error:
            problems += error.problems
            continue
        sizes[dataset.name] = size
        part = f", part {dataset.shard}," if dataset.shard else ""
        notes.append(
            f"{dataset.parsed.uri}{part} holds {format_bytes(size.bytes)} in {count_of(size.files, 'file')}"
        )
    listed = msgspec.structs.replace(explanation, notes=tuple(notes), problems=tuple(problems))
    return listed if len(sizes) < len(spec.datasets) else add_memory(listed, spec, sizes)


def _store_config(dataset: DatasetSpec, access: Mapping[str, Any]) -> StoreConfig:
    """The command's access options; the pod's settings fill the gaps."""
    return store_config_of(
        endpoint=access["endpoint"] or dataset.access.endpoint,
        region=access["region"] or dataset.access.region,
        secret_dir=access["secret_dir"],
    )


async def _listed_size(dataset: DatasetSpec, config: StoreConfig) -> ListedSize:
    reference = dataset.parsed
    selection = Selection(dataset.include, dataset.exclude)
    selected = await open_selected(reference.uri, selection, config, dataset.unpack)
    await selected.store.close()
    check_frozen(reference, selected.frozen)
    part = shard_manifest(selected.manifest, dataset.shard)
    return ListedSize.of(part)


def _problems(explanations: Sequence[Explanation]) -> Iterator[Problem]:
    """All problems; those of several pods with the title of each."""
    for one in explanations:
        for problem in one.problems:
            several = len(explanations) > 1
            what = f"{one.title}: {problem.what}" if several else problem.what
            yield msgspec.structs.replace(problem, what=what)


def _print_all(explanations: Sequence[Explanation]) -> None:
    for index, explanation in enumerate(explanations):
        if index:
            click.echo()
        _print(explanation, with_title=len(explanations) > 1 or explanation.title != "annotations")


def _print(explanation: Explanation, *, with_title: bool) -> None:
    if with_title:
        click.echo(f"# {explanation.title}")
    if explanation.values:
        # The value comes last: a reference is long.
        rows = [(value.key, value.source, value.value) for value in explanation.values]
        print_table(("annotation", "from", "value"), rows)
    if explanation.variables and explanation.spec is not None:
        click.echo()
        variables = [(f"$({name})", value) for name, value in explanation.variables.items()]
        print_table(("variable", "value"), variables)
    if explanation.memory:
        click.echo()
        memory = [(row.what, format_bytes(row.bytes), row.why) for row in explanation.memory]
        print_table(("memory", "size", "why"), memory, right=("size",))
    if explanation.resources is not None:
        _print_resources(explanation.resources)
    for note in explanation.notes:
        click.echo(f"note: {note}")


def _print_resources(resources: ExplainedResources) -> None:
    if resources.rows:
        click.echo()
        rows = [(row.name, *row.cells) for row in resources.rows]
        print_table(("resources of", "CPU request", "limit", "memory request", "limit"), rows)
    if resources.quotas:
        click.echo()
        quotas = [(row.quota, row.resource, *row.texts) for row in resources.quotas]
        print_table(("quota", "resource", "used", "this pod", "maximum"), quotas)
    for warning in resources.warnings:
        print_message(f"warning: {warning}", "yellow")
