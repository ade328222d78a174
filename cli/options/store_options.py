"""Options for reaching a store, and the parsing of locations."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import click

from podferry.cli.options.named_options import Verb, add_options
from podferry.cli.options.param_types import DIRECTORY, ParsedParam
from podferry.contract.annotation_values import parse_endpoint, parse_region, parse_shard
from podferry.contract.dataset_reference import Reference, parse_reference
from podferry.contract.errors import InvalidSpec
from podferry.contract.selection import parse_globs
from podferry.contract.spec import Access
from podferry.contract.uri import Uri, escape, parse_uri
from podferry.sidecar.config.local_path import is_local_path
from podferry.sidecar.config.rank_env import resolve_shard
from podferry.sidecar.config.store_access import store_config
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig


def access_options(verb: Verb) -> Verb:
    """Add the options for reaching a store: endpoint, region, credentials."""
    options = (
        click.option("--endpoint", type=ParsedParam("URL", parse_endpoint), help="URL of the object store."),
        click.option("--region", type=ParsedParam("NAME", parse_region), help="Region of the object store."),
        click.option(
            "--secret-dir",
            type=DIRECTORY,
            help="Directory with one file per credential, such as a mounted Secret.  "
            "[default: the environment]",
        ),
    )
    return add_options(verb, options)


def target_options(verb: Verb) -> Verb:
    """Add the options for reaching a target that may be another store than the source."""
    endpoint, region = ParsedParam("URL", parse_endpoint), ParsedParam("NAME", parse_region)
    options = (
        click.option(
            "--to-endpoint",
            type=endpoint,
            help="URL of the target's store.  [default: --endpoint, if the scheme is the same]",
        ),
        click.option(
            "--to-region",
            type=region,
            help="Region of the target's store.  [default: --region, if the scheme is the same]",
        ),
        click.option(
            "--to-secret-dir",
            type=DIRECTORY,
            help="Credentials of the target's store.  [default: --secret-dir]",
        ),
    )
    return add_options(verb, options)


def store_configs(source: Uri, target: Uri, options: dict[str, Any]) -> tuple[StoreConfig, StoreConfig]:
    """How to reach a source and its target, from the values of `access_options` and `target_options`.

    Endpoint and region belong to the source's service unless the target's scheme is the same.
    """
    access = {name: options[name] for name in ("endpoint", "region", "secret_dir")}
    given = {name: options[f"to_{name}"] for name in access if options[f"to_{name}"] is not None}
    defaults = access if source.scheme == target.scheme else {"secret_dir": access["secret_dir"]}
    return store_config_of(**access), store_config_of(**{**defaults, **given})


def selection_options(*, shard: bool = True) -> Callable[[Verb], Verb]:
    """Return a decorator that adds the options for selecting files of a dataset."""
    globs = ParsedParam("GLOB", parse_globs)
    options = [
        click.option(
            "--include", type=globs, multiple=True, help="Only these files, such as *.jpg. Repeatable."
        ),
        click.option("--exclude", type=globs, multiple=True, help="Not these files. Repeatable."),
    ]
    if shard:
        shard_param = ParsedParam("RANK/COUNT", lambda text: parse_shard(resolve_shard(text, os.environ)))
        text = "Only one shard, such as 0/4; auto takes the launcher's rank and world size."
        options.append(click.option("--shard", type=shard_param, help=text))
    return lambda verb: add_options(verb, options)


def store_config_of(
    endpoint: str | None = None, region: str | None = None, secret_dir: Path | None = None
) -> StoreConfig:
    """Return a `StoreConfig`. Raises `CredentialsMissing` or `InvalidSpec` for unreadable credentials."""
    return store_config(Access(endpoint=endpoint, region=region), secret_dir)


def parse_local_path(text: str) -> Path | None:
    """Return the absolute local path that a text names, or None for a URI."""
    return Path(text).expanduser().absolute() if is_local_path(text) else None


def parse_location(text: str) -> Uri:
    """Parse a URI or a local path, which may be relative. Raises `InvalidSpec` for anything else."""
    path = parse_local_path(_require_text(text))
    return parse_uri(text) if path is None else parse_uri(f"file://{escape(str(path))}")


def parse_dataset(text: str) -> Reference:
    """Parse a reference, a URI, or a path, which may be relative. Raises `InvalidSpec` for anything else."""
    path = parse_local_path(_require_text(text))
    # In a path, # is an ordinary character.
    return parse_reference(text) if path is None else Reference(parse_location(text))


@asynccontextmanager
async def store_at(uri: Uri, config: StoreConfig) -> AsyncIterator[Store]:
    """Open the store at a URI; it is closed at the end."""
    store = open_store(uri, config)
    try:
        yield store
    finally:
        await store.close()


def _require_text(text: str) -> str:
    if not text.strip():
        raise InvalidSpec.of("the location is empty", repr(text), "Write a URI or a path")
    return text
