"""The commits of a lineage's main kind, read newest first: those that training can resume from."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from podferry.contract.destination.commit import Commit
from podferry.contract.destination.kind import Kind, of_main_kind


async def main_commits(newest_first: AsyncIterable[Commit]) -> AsyncIterator[Commit]:
    """Those of the main kind, in the same order, then the late ones, which may be whole when these are not.

    A state is yielded as soon as it is read. Only a lineage without any is read to its end before the first
    of its documents is yielded.
    """
    others: list[Commit] | None = []
    late: list[Commit] = []
    async for commit in newest_first:
        if commit.kind is Kind.STATE:
            others = None
            yield commit
        elif commit.kind is Kind.LATE:
            late.append(commit)
        elif others is not None:
            others.append(commit)
    main = of_main_kind([*(others or ()), *late])
    for commit in main if main and main[0].kind is Kind.LATE else [*main, *late]:
        yield commit


async def newest_main(newest_first: AsyncIterable[Commit]) -> Commit | None:
    """The newest commit of the main kind, None without a commit."""
    return await anext(main_commits(newest_first), None)
