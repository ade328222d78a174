"""`podferry cache job`: prints a Job that runs a verb in the cluster, once or by a schedule."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import click
import msgspec
import yaml

from podferry.cache.manifests.cache_job import CacheJob, job_manifests
from podferry.cache.manifests.cache_spec import parse_image
from podferry.cache.manifests.sample_job import read_sample_job
from podferry.cli.cache.cache_args import IMAGE
from podferry.cli.cache.clear import clear
from podferry.cli.cache.rmr import checked_paths, rmr
from podferry.cli.cache.sync import sync
from podferry.cli.cache.warmup import warmup
from podferry.cli.options.param_types import ParsedParam
from podferry.cli.options.store_options import parse_dataset
from podferry.cli.yaml_documents import read_documents, read_text
from podferry.contract.annotation_values import parse_secret
from podferry.contract.errors import InvalidSpec, Problem
from podferry.sidecar.runtime.messages import print_problems

VERBS: Mapping[str, click.Command] = {"sync": sync, "warmup": warmup, "clear": clear, "rmr": rmr}
SCHEDULE = re.compile(r"@(yearly|annually|monthly|weekly|daily|midnight|hourly)|[\w*/,?-]+( +[\w*/,?-]+){4}")
"""As in a CronJob: five fields, or a name."""
LOCAL = {
    "kubeconfig": "Leave it out: the pod has an account",
    "context": "Leave it out: the pod has an account",
    "secret_dir": "Give --secret before the verb",
    "to_secret_dir": "Give --to-secret before the verb",
    "shard": "Give --workers before the verb",
}
"""Options that mean nothing in a pod of the Job, and what does."""
CHECKS: Mapping[str, Callable[[Mapping[str, Any]], object]] = {
    "sync": lambda params: parse_dataset(params["dataset"]),
    "rmr": lambda params: checked_paths(params["paths"]),
}
"""What a verb refuses before it asks a cluster: the Job would fail."""
HOLDERS_HAVE_CREDENTIALS = "the holders have the credentials"
MAX_CRONJOB_NAME = 52
"""Kubernetes appends 11 characters to name its Jobs, which may have 63. Source: its CronJob documentation."""
SHARED = ("sync", "copy")
"""Verbs that several workers can share."""


def _parse_schedule(value: str) -> str:
    if SCHEDULE.fullmatch(value.strip()) is None:
        raise InvalidSpec.of(
            "not a schedule", repr(value), "Write five fields such as '0 3 * * *', or @daily"
        )
    return value.strip()


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-f", "--filename", metavar="FILE", help="A SampleJob of Paddle Operator. - is standard input.")
@click.option(
    "--schedule",
    type=ParsedParam("CRON", _parse_schedule),
    help="Print a CronJob, such as one for '0 3 * * *'.",
)
@click.option("--workers", type=click.IntRange(1, 1000), help="Pods that share a sync.  [default: 1]")
@click.option(
    "--secret",
    type=ParsedParam("NAME", parse_secret),
    help="Secret with the credentials, mounted into its pods.",
)
@click.option(
    "--to-secret", type=ParsedParam("NAME", parse_secret), help="Of a sync: that of the place it writes to."
)
@click.option(
    "--image", type=ParsedParam("IMAGE", parse_image), help=f"Image of its pods.  [default: {IMAGE}]"
)
@click.argument("words", metavar="[VERB NAME ...]", nargs=-1, type=click.UNPROCESSED)
def job(filename: str | None, words: tuple[str, ...], **options: Any) -> None:
    """Print a Job that runs `podferry cache VERB NAME …` in the cluster, for `kubectl apply -f -`.

    VERB is sync, warmup, clear or rmr, with all its own options. The Job has an account with the rights that
    the verb needs, and runs in the namespace of the holders.
    """
    if bool(filename) == bool(words):
        raise click.UsageError("Give either VERB and NAME, or --filename")
    given = {name: value for name, value in options.items() if value}
    found = _of_file(filename) if filename else _of_words(words)
    rendered = msgspec.structs.replace(found, **given)
    InvalidSpec.raise_any(_problems(rendered))
    click.echo(yaml.safe_dump_all(job_manifests(rendered), sort_keys=False), nl=False)


def _of_file(filename: str) -> CacheJob:
    text, source = read_text(filename)
    documents = read_documents(text, source)
    if len(documents) != 1:
        what = f"{source} does not have one document"
        raise InvalidSpec.of(what, str(len(documents)), "Give each job in a file of its own")
    sample = read_sample_job(documents[0], source)
    print_problems(sample.notes, "yellow")
    if sample.verb in VERBS:
        _, _, *rest = sample.words
        _checked(sample.verb, rest)
    fields = (sample.verb, sample.cache, sample.namespace, sample.words)
    schedule = _parse_schedule(sample.schedule) if sample.schedule else ""
    secret = sample.secret if _takes_secret(sample.verb) else None
    if secret != sample.secret:
        note = Problem(f"{source}: spec.secretRef is not used", f"a {sample.verb}", HOLDERS_HAVE_CREDENTIALS)
        print_problems([note], "yellow")
    return CacheJob(*fields, IMAGE, schedule, secret=secret, name=sample.name)


def _takes_secret(verb: str) -> bool:
    """Whether a verb reads or changes the source itself, instead of asking the holders."""
    return verb not in VERBS or any(one.name == "secret_dir" for one in VERBS[verb].params)


def _of_words(words: tuple[str, ...]) -> CacheJob:
    """The verb, with arguments that it accepts."""
    verb, *rest = words
    if verb not in VERBS:
        raise click.UsageError(f"There is no verb {verb!r} to run as a Job: {', '.join(VERBS)}")
    params = _checked(verb, rest)
    local = {name: remedy for name, remedy in LOCAL.items() if params.get(name) is not None}
    InvalidSpec.raise_any(
        Problem(f"--{name.replace('_', '-')} means nothing in the cluster", str(params[name]), remedy)
        for name, remedy in local.items()
    )
    # A pod that is started again may find nothing left.
    repeated = ("--missing-ok",) if params.get("delete") and verb == "rmr" else ()
    command = ("cache", verb, *rest, *repeated)
    return CacheJob(verb, params["name"], params["namespace"], command, IMAGE)


def _checked(verb: str, words: Sequence[str]) -> dict[str, Any]:
    """The parameters of a verb, by what it is given; raises what the verb itself would raise."""
    params = VERBS[verb].make_context(f"podferry cache job {verb}", list(words)).params
    if verb in CHECKS:
        CHECKS[verb](params)
    return params


def _problems(job: CacheJob) -> Iterator[Problem]:
    if job.workers > 1 and job.verb not in SHARED:
        yield Problem("--workers: only a sync is shared", job.verb, "Leave --workers out")
    if job.workers > 1 and "--unpack" in job.words:
        yield Problem("--workers: archives are unpacked by one process", "--unpack", "Leave one of both out")
    if job.to_secret and job.verb not in SHARED:
        yield Problem("--to-secret: only a sync has two places", job.verb, "Give --secret")
    if job.secret and not _takes_secret(job.verb):
        yield Problem("--secret: not used", f"a {job.verb}", f"Leave it out: {HOLDERS_HAVE_CREDENTIALS}")
    if job.schedule and len(job.object_name) > MAX_CRONJOB_NAME:
        measured = f"{job.object_name}: {len(job.object_name)} characters"
        yield Problem("the name is too long for a CronJob", measured, f"{MAX_CRONJOB_NAME} at most")
