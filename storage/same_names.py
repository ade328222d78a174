"""Refuses a name that the server takes for another one: writing it would replace the other file.

Some servers do not distinguish upper and lower case, or the Unicode forms of a letter with an accent, NFC
and NFD. A store finds that out once: it looks up a name that is there in the other spelling.
If the server finds that too, each name is looked up before it is written, and if something is there, a
listing shows its spelling.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from itertools import accumulate
from string import ascii_lowercase, ascii_uppercase
from unicodedata import normalize

from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.file_names import caseless
from podferry.contract.uri import Uri
from podferry.storage.names_in_flight import NamesInFlight
from podferry.storage.object_names import join
from podferry.storage.walk import ListDirectory

SWAPPED = str.maketrans(ascii_lowercase + ascii_uppercase, ascii_uppercase + ascii_lowercase)
"""Of ASCII alone: a server that does not distinguish case may still not know that of other letters."""
Writing = Callable[[str], AbstractAsyncContextManager[None]]
"""`SameNames.writing` of a store."""
REMEDY = "Choose another name: to the store they are one {}"


class _Spelling:
    """Something in which names may differ.

    Attributes:
        distinguished: Whether names that differ only in it are two at the server; None if that is unknown.
    """

    distinguished: bool | None = None

    def __init__(self, may_differ: Callable[[str], bool], other: Callable[[str], str]) -> None:
        self._may_differ, self._other = may_differ, other

    def is_doubtful(self, component: str) -> bool:
        """Whether a component of a name may have another spelling that is the same to the server."""
        return not self.distinguished and self._may_differ(component)

    async def find_out(self, path: str, found: Callable[[str], Awaitable[bool]]) -> None:
        """Learn from a path that is there."""
        parent, _, last = path.rpartition("/")
        if self.distinguished is None and (other := self._other(last)) != last:
            self.distinguished = not await found(join(parent, other))


class SameNames:
    """The names of one store.

    Args:
        uri: Of the store, for messages.
        found: Whether the server finds something, be it a file or a directory, under a name.
        list_directory: What is in a directory.
    """

    def __init__(
        self, uri: Uri, found: Callable[[str], Awaitable[bool]], list_directory: ListDirectory
    ) -> None:
        self._uri, self._found, self._list_directory = uri, found, list_directory
        self._forms = _Spelling(_has_forms, _other_form)
        self._spellings = (_Spelling(_has_case, _other_case), self._forms)
        self._in_flight = NamesInFlight()
        self._listed: dict[str, str] = {}  # the store's spelling, by what all spellings have in common
        # Some servers (Nextcloud) change the form of what they store, so that listings do not show it.
        self._written: dict[str, str] = {}

    @asynccontextmanager
    async def writing(self, name: str) -> AsyncIterator[None]:
        """Write a file in the block.

        Raises:
            InvalidSpec: The server would take it for a file of another name, or put it into a directory of
                another name.
        """
        paths = list(accumulate(name.split("/"), join))
        if not any(self._is_doubtful(path) for path in paths):
            yield
            return
        async with AsyncExitStack() as stack:
            for path in paths:
                await stack.enter_async_context(self._in_flight.held(path))
            await self._check(paths)
            yield
            await self._take_written(paths)

    def _is_doubtful(self, path: str) -> bool:
        return any(spelling.is_doubtful(_last(path)) for spelling in self._spellings)

    async def _check(self, paths: list[str]) -> None:
        for path in paths:
            if not self._is_doubtful(path) or self._is_known(path):
                continue
            if not await self._found(path):
                return  # nor is anything below it
            await self._find_out(path)
            if self._is_doubtful(path):
                other = self._own_spelling(path) or await self._spelling_of(path)
                if other != path:
                    raise self._clash(path, paths[-1], other)

    def _is_known(self, path: str) -> bool:
        return path in {self._listed.get(caseless(path)), self._own_spelling(path)}

    def _own_spelling(self, path: str) -> str:
        """Under which name this store has written a file with accents; empty if it is not known to have."""
        return self._written.get(_composed(path), "") if self._forms.is_doubtful(_last(path)) else ""

    async def _spelling_of(self, path: str) -> str:
        """How the store spells what it finds under a path; the same if listings do not show it."""
        listed = await self._list_directory(path.rpartition("/")[0])
        found = {*(entry.name for entry in listed.entries), *listed.unsized, *listed.directories}
        self._listed.update((caseless(each), each) for each in found)
        same = sorted(each for each in found if caseless(each) == caseless(path)) or [path]
        form = (each for each in same if _composed(each) == _composed(path))
        spelled = self._listed[caseless(path)] = path if path in found else next(form, same[0])
        return spelled

    async def _take_written(self, paths: list[str]) -> None:
        """Directories are known from now on; of files, there may be millions."""
        *directories, name = paths
        self._listed.update((caseless(path), path) for path in directories if self._is_doubtful(path))
        self._written.update(
            (_composed(path), path) for path in paths if self._forms.is_doubtful(_last(path))
        )
        if caseless(name) in self._listed:
            self._listed[caseless(name)] = name
        with suppress(FerryError):  # the file is written
            await self._find_out(name)

    async def _find_out(self, path: str) -> None:
        for spelling in self._spellings:
            await spelling.find_out(path, self._found)

    def _clash(self, path: str, name: str, other: str) -> InvalidSpec:
        is_form = _composed(path) == _composed(other)
        # Both forms look the same.
        measured = f"{_last(other)!a}, not {_last(path)!a}" if is_form else other
        only = f"differs only in {'Unicode form' if is_form else 'case'} from"
        if path == name:
            return InvalidSpec.of(f"{self._uri / name} {only} what is there", measured, REMEDY.format("file"))
        what = f"{self._uri / name} is below a directory that {only} one that is there"
        return InvalidSpec.of(what, measured, REMEDY.format("directory"))


def _has_case(component: str) -> bool:
    return component.lower() != component.upper()


def _other_case(component: str) -> str:
    return component.translate(SWAPPED)


def _has_forms(component: str) -> bool:
    return _other_form(component) != component


def _other_form(component: str) -> str:
    composed = _composed(component)
    return composed if composed != component else normalize("NFD", component)


def _composed(path: str) -> str:
    return normalize("NFC", path)


def _last(path: str) -> str:
    return path.rpartition("/")[2]
