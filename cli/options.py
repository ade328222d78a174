"""What the verbs share: options, places as they are written on a command line, running a coroutine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from podferry.contract.annotation_values import parse_endpoint, parse_region, parse_shard
from podferry.contract.errors import InvalidSpec
from podferry.contract.reference import Reference, parse_reference
from podferry.contract.selection import parse_globs
from podferry.contract.spec import Access
from podferry.contract.uri import Uri, escape, parse_uri
from podferry.sidecar.config.rank_env import resolve_shard
from podferry.sidecar.config.store_access import store_config
from podferry.storage.factory import open_store
from podferry.storage.store import Store, StoreConfig

T = TypeVar("T")
Verb = TypeVar("Verb", bound=Callable[..., Any])


class Parsed(click.ParamType[Any]):
    """An option whose value one of our parsers reads."""

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See `click.ParamType`."""
        try:
            return self._parse(value)
        except InvalidSpec as error:
            self.fail(str(error), param, ctx)


def access_options(verb: Verb) -> Verb:
    """Adds how to reach a store: endpoint, region, and where the credentials are."""
    options = (
        click.option("--endpoint", type=Parsed("URL", parse_endpoint), help="URL of the object store."),
        click.option("--region", type=Parsed("NAME", parse_region), help="Its region."),
        click.option(
            "--secret-dir",
            type=click.Path(path_type=Path),
            help="A directory with a file a credential, as a mounted Secret has; else the environment.",
        ),
    )
    for option in reversed(options):
        verb = option(verb)
    return verb


def selection_options(*, shard: bool = True) -> Callable[[Verb], Verb]:
    """Adds which files of a dataset count."""
    globs = Parsed("GLOB", parse_globs)
    options = [
        click.option("--include", type=globs, multiple=True, help="These files alone, such as *.jpg."),
        click.option("--exclude", type=globs, multiple=True, help="Not these files."),
    ]
    if shard:
        part = Parsed("RANK/COUNT", lambda text: parse_shard(resolve_shard(text, os.environ)))
        options.append(click.option("--shard", type=part, help="A part; auto takes the launcher's."))

    def adding(verb: Verb) -> Verb:
        for option in reversed(options):
            verb = option(verb)
        return verb

    return adding


output_option = click.option(
    "-o",
    "--output",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="For people, or one JSON document.",
)


def config_of(
    endpoint: str | None = None, region: str | None = None, secret_dir: Path | None = None
) -> StoreConfig:
    """The store's configuration from the access options.

    Raises:
        CredentialsMissing, InvalidSpec: What is there cannot be read.
    """
    return store_config(Access(endpoint=endpoint, region=region), secret_dir)


def local_path(text: str) -> Path | None:
    """The path of local files that a text means, None where it is a URI."""
    return None if "://" in text else Path(text).expanduser().absolute()


def place(text: str) -> Uri:
    """A URI, or a path of local files, which may be relative.

    Raises:
        InvalidSpec: Neither.
    """
    path = local_path(_some(text))
    return parse_uri(text) if path is None else parse_uri(f"file://{escape(str(path))}")


def reference(text: str) -> Reference:
    """A dataset's reference, a URI, or a path of local files, which may be relative.

    Raises:
        InvalidSpec: None of them.
    """
    path = local_path(_some(text))
    # A path is taken as it is: a # in it is a character of the name.
    return parse_reference(text) if path is None else Reference(place(text))


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a verb's coroutine."""
    return asyncio.run(work)


@asynccontextmanager
async def opened(uri: Uri, config: StoreConfig) -> AsyncIterator[Store]:
    """A store that is closed at the end."""
    store = open_store(uri, config)
    try:
        yield store
    finally:
        await store.close()


def _some(text: str) -> str:
    if not text.strip():
        raise InvalidSpec.of("the place is empty", repr(text), "Write a URI or a path")
    return text
