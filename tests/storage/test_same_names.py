"""Names that a server takes for one, on a server in memory, and what it costs to find that out."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from unicodedata import normalize

import pytest

from podferry.contract.errors import InvalidSpec, Unavailable
from podferry.contract.file_names import caseless
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.object_names import join
from podferry.storage.same_names import SameNames
from podferry.storage.walk import Directory

COMPOSED, DECOMPOSED = (normalize(form, "Ä.bin") for form in ("NFC", "NFD"))
KEYS: dict[str, Callable[[str], str]] = {
    "all": str,
    "case": str.lower,
    "forms": lambda name: normalize("NFC", name),
    "neither": caseless,
}


class Server:
    """Files and directories by what the server compares; a file that is there keeps its spelling.

    Attributes:
        files: The spelling and content of each.
        spell: The server's spelling of a new name.
        asked: Requests.
    """

    def __init__(self, key: Callable[[str], str] = str) -> None:
        self._key = key
        self.spell: Callable[[str], str] = str
        self.files: dict[str, tuple[str, str]] = {}
        self._directories: dict[str, str] = {"": ""}
        self.asked: list[str] = []
        self.names = SameNames(Uri("dav", "host", "x"), self.found, self.listed)

    async def found(self, name: str) -> bool:
        self.asked.append(f"found {name}")
        await asyncio.sleep(0)
        return self._key(name) in self.files or self._key(name) in self._directories

    async def listed(self, directory: str) -> Directory:
        self.asked.append(f"listed {directory}")
        await asyncio.sleep(0)
        here = self._key(directory)
        names, directories = (
            [spelled for key, spelled in found.items() if key and key.rpartition("/")[0] == here]
            for found in ({key: spelled for key, (spelled, _) in self.files.items()}, self._directories)
        )
        entries = (Entry(name, 1) for name in names[1:])
        return Directory(tuple(entries), tuple(names[:1]), tuple(directories))

    def put(self, name: str) -> None:
        """Store a file as the server does, whatever it replaces; its content is the name."""
        above, _, last = name.rpartition("/")
        spelled = self.spell(join(self._made(above), last))
        self.files[self._key(name)] = self.files.get(self._key(name), (spelled, ""))[0], name

    def _made(self, directory: str) -> str:
        """The spelling of a directory, which is made if it is missing."""
        if self._key(directory) not in self._directories:
            above, _, last = directory.rpartition("/")
            self._directories[self._key(directory)] = self.spell(join(self._made(above), last))
        return self._directories[self._key(directory)]

    async def write(self, *names: str) -> None:
        for name in names:
            async with self.names.writing(name):
                await asyncio.sleep(0)
                self.put(name)

    async def refuses(self, name: str, words: str) -> None:
        before = dict(self.files)
        with pytest.raises(InvalidSpec, match=words):
            await self.write(name)
        assert self.files == before


async def test_a_server_that_distinguishes_all_names_is_asked_once() -> None:
    server = Server()
    await server.write("Dir/Model.pt", "Dir/model.pt", "dir/model.pt", f"dir/{COMPOSED}", f"dir/{DECOMPOSED}")
    assert len(server.files) == 5
    assert server.asked == [
        "found Dir",
        "found Dir/mODEL.PT",
        f"found dir/{COMPOSED}",
        f"found dir/{DECOMPOSED}",
    ]


async def test_what_is_there_already_shows_it_before_the_first_write() -> None:
    server = Server()
    server.put("Dir/a")
    await server.write("Dir/b", "Dir/a", "DIR/a")
    assert server.asked == ["found Dir", "found dIR"]


async def test_names_without_letters_are_not_looked_up() -> None:
    server = Server(KEYS["neither"])
    await server.write("001/002", "001/002", "001/003")
    assert server.asked == []


@pytest.mark.parametrize("kind", ["case", "neither"])
async def test_names_that_differ_only_in_case(kind: str) -> None:
    server = Server(KEYS[kind])
    await server.write("q/Model.pt", "q/other", "q/Model.pt")
    await server.refuses("q/model.pt", r"x/q/model.pt differs only in case .*\(q/Model.pt\).* one file")
    await server.refuses("Q/new", r"x/Q/new is below a directory that differs only in case .*\(q\)")
    assert sorted(name for name, _ in server.files.values()) == ["q/Model.pt", "q/other"]


@pytest.mark.parametrize("kind", ["forms", "neither"])
@pytest.mark.parametrize(("first", "second"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
async def test_names_that_differ_only_in_unicode_form(kind: str, first: str, second: str) -> None:
    server = Server(KEYS[kind])
    await server.write(first, first, f"d-{first}/a")
    await server.refuses(second, rf"only in Unicode form .*\({first!a}, not {second!a}\)".replace("\\", "."))
    await server.refuses(f"d-{second}/b", "below a directory that differs only in Unicode form")


@pytest.mark.parametrize("stored", ["NFC", "NFD"])
@pytest.mark.parametrize(("first", "second"), [(COMPOSED, DECOMPOSED), (DECOMPOSED, COMPOSED)])
async def test_a_server_that_changes_forms_has_files_replaced_under_their_own_name(
    stored: str, first: str, second: str
) -> None:
    """Nextcloud stores all names in NFC, HFS+ in NFD."""
    server = Server(KEYS["forms"])
    server.spell = partial(normalize, stored)
    for name, other in ((first, second), (f"d-{first}/a", f"d-{second}/b")):
        await server.write(name, name, name)
        await server.refuses(other, "only in Unicode form")
        await server.write(name)


async def test_the_message_names_the_file_that_would_be_replaced() -> None:
    server = Server(KEYS["forms"])
    await server.write(f"q/{COMPOSED}", f"q/{COMPOSED.lower()}", "q/z")
    server.names = SameNames(Uri("dav", "host", "x"), server.found, server.listed)
    for first, second in ((COMPOSED, DECOMPOSED), (COMPOSED.lower(), DECOMPOSED.lower())):
        await server.refuses(
            f"q/{second}", rf"\({first!a}, not {second!a}\)".replace("\\x", ".x").replace("\\u", ".u")
        )


async def test_a_server_that_normalizes_forms_has_both_cases() -> None:
    server = Server(KEYS["forms"])
    await server.write("Model.pt", COMPOSED, "model.pt", "Model.pt")
    assert len(server.files) == 3
    assert "found model.pt" not in server.asked


async def test_what_others_have_written_is_found_by_each_store() -> None:
    server = Server(KEYS["case"])
    for name in ("A/Model.pt", "A/b", "A/c"):
        server.put(name)
    await server.refuses("A/model.pt", "only in case")
    await server.refuses("a/model.pt", "below a directory")


async def test_files_that_are_replaced_cost_one_listing_of_their_directory() -> None:
    server = Server(KEYS["case"])
    names = [f"q/File{number}" for number in range(20)]
    await server.write(*names, *names, *names)
    assert server.asked.count("listed q") == 1
    assert len(server.asked) < 2 * len(names)


async def test_a_new_directory_is_never_listed_for_new_files() -> None:
    server = Server(KEYS["case"])
    await server.write(*(f"q/d{number}/{name}" for number in range(9) for name in "abc"))
    assert not [each for each in server.asked if each.startswith("listed")]


async def test_a_name_that_became_free_is_taken_in_another_spelling() -> None:
    server = Server(KEYS["case"])
    await server.write("a", "a", "a")
    server.files.clear()
    await server.write("A")
    await server.refuses("a", "only in case")


async def test_parallel_writes_of_one_file_of_the_server() -> None:
    server = Server(KEYS["neither"])
    names = [f"{number}/{name}" for number in range(4) for name in ("Loss", "loss", "other")]
    names += [f"Dir/{number}" for number in range(3)] + [f"dir/{number}" for number in range(3)]
    done = await asyncio.gather(*(server.write(name) for name in names), return_exceptions=True)
    assert [type(one) for one in done if one] == [InvalidSpec] * 7
    kept = [name for name, one in zip(names, done, strict=True) if one is None]
    assert sorted(server.files.values()) == sorted((name, name) for name in kept)


async def test_parallel_writes_of_other_files_do_not_wait() -> None:
    server, both = Server(KEYS["case"]), asyncio.Barrier(2)

    async def write(name: str) -> None:
        async with server.names.writing(name), asyncio.timeout(1):
            await both.wait()

    await asyncio.gather(write("dir/a"), write("dir/b"))


async def test_a_server_that_hides_files_from_listings_has_them_replaced() -> None:
    server = Server(KEYS["case"])

    async def hides(directory: str) -> Directory:
        return Directory()

    server.names = SameNames(Uri("dav", "host", "x"), server.found, hides)
    await server.write("A", "A")
    assert server.files == {"a": ("A", "A")}


async def test_a_failed_write_teaches_nothing() -> None:
    server = Server(KEYS["case"])
    with pytest.raises(ValueError, match="broken"):
        async with server.names.writing("a"):
            raise ValueError("broken")
    assert server.asked == ["found a"]
    await server.write("A")
    await server.refuses("a", "only in case")


async def test_a_file_that_is_written_is_no_error_if_the_next_request_is_one() -> None:
    server, found = Server(), Server().found

    async def fails(name: str) -> bool:
        if name == "A":
            raise Unavailable.of("gone")
        return await found(name)

    server.names = SameNames(Uri("dav", "host", "x"), fails, server.listed)
    await server.write("a")
    assert server.files == {"a": ("a", "a")}


async def test_a_server_that_distinguishes_forms_alone_has_both() -> None:
    server = Server(KEYS["case"])
    await server.write(*(COMPOSED, DECOMPOSED, "Model.pt") * 3)
    assert sorted(server.files.values()) == sorted(
        (name, name) for name in (COMPOSED, DECOMPOSED, "Model.pt")
    )
    await server.refuses(COMPOSED.lower(), "only in case")
