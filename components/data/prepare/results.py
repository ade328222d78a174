"""Finds and publishes the results of one conversion at a destination."""

from __future__ import annotations

import secrets
from contextlib import suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

import msgspec

from podferry.components.log_tables import print_line
from podferry.contract.dataset_reference import Reference, parse_reference, reference_to
from podferry.contract.destination.prepared_result import (
    PreparedResult,
    decode_result,
    encode_result,
    marker_name,
)
from podferry.contract.errors import AlreadyExists, EmptyDataset, FerryError, NotFound, Refused
from podferry.contract.quantity import count_of, format_bytes
from podferry.contract.uri import Uri, escape, parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.runtime.retry import retry
from podferry.sidecar.sync.sync import Sync
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import Store, StoreConfig, WriteMode

ATTEMPTS = PrefetchSettings().attempts


class Conversion(msgspec.Struct, frozen=True):
    """What is converted, and how; see `PreparedResult`."""

    key: str
    source: str
    parameters: dict[str, object]
    command: tuple[str, ...] = ()


class Results:
    """The results of one conversion.

    Args:
        to: The destination, of any number of conversions.
        config: How to reach it.
        conversion: Its key names the results.
    """

    def __init__(self, to: Uri, config: StoreConfig, conversion: Conversion) -> None:
        self._to, self._config, self._conversion = to, config, conversion
        self._free = 1
        self._marked: set[str] = set()

    async def find(self) -> str | None:
        """The reference to the result, or None if no marker has its files still.

        Raises:
            Corrupt, FormatTooNew: A marker cannot be read.
        """
        store = open_store(self._to, self._config)
        try:
            for number in count(1):
                name = marker_name(self._conversion.key, number)
                try:
                    data = await self._read(store, name)
                except NotFound:
                    self._free = number
                    return None
                reference = parse_reference(decode_result(bytes(data), str(self._to / name)).reference)
                if await self._is_there(reference):
                    return str(reference)
                self._marked.add(reference.uri.name)
                print_line(f"the result at {reference.uri} is gone or has changed: it is prepared again")
        finally:
            await store.close()
        raise AssertionError("unreachable: `count` never ends")

    async def _read(self, store: Store, name: str) -> memoryview:
        return await retry(ATTEMPTS, lambda: store.read(name))

    async def _is_there(self, reference: Reference) -> bool:
        try:
            dataset = await open_dataset(reference.uri, self._config)
        except EmptyDataset:
            return False
        await dataset.store.close()
        return dataset.manifest.digest == reference.digest

    async def publish(self, directory: Path) -> str:
        """Upload the files of an attempt, then its marker; return the reference of the one that was first.

        Raises:
            Refused: The directory is empty, or files could not be uploaded.
        """
        folder = f"{self._conversion.key}-{secrets.token_hex(8)}"
        try:
            reference = await self._upload(directory, self._to / folder)
        except FerryError:
            # Another attempt that has won removes the files of the others.
            if (found := await self.find()) is not None:
                return found
            raise
        store = open_store(self._to, self._config)
        try:
            while not await self._mark(store, reference):
                winner = await self.find()
                if winner == reference:  # an attempt to write the marker had succeeded after all
                    break
                if winner is not None:
                    print_line(f"another run was first: {winner}")
                    await self._remove(store, folder)
                    return winner
            await self._remove_others(store, folder)
        finally:
            await store.close()
        return reference

    async def _upload(self, directory: Path, folder: Uri) -> str:
        source = Reference(parse_uri(f"file://{escape(str(directory))}"))
        try:
            result = await Sync(source, folder, StoreConfig(), self._config).run()
        except EmptyDataset as error:
            remedy = "Write the files into the target directory"
            raise Refused.of("the conversion wrote no files", str(directory), remedy) from error
        Refused.raise_any(result.problems)
        moved = f"{count_of(len(result.moved), 'file')}, {format_bytes(result.bytes)}"
        print_line(f"uploaded: {moved} to {folder}")
        dataset = await open_dataset(folder, self._config)
        await dataset.store.close()
        return str(reference_to(dataset.manifest))

    async def _mark(self, store: Store, reference: str) -> bool:
        """Create the marker; returns whether it was this call that did."""
        conversion = self._conversion
        data = encode_result(
            PreparedResult(
                conversion.source, reference, conversion.parameters, conversion.command, datetime.now(UTC)
            )
        )
        name = marker_name(conversion.key, self._free)
        try:
            await retry(ATTEMPTS, lambda: store.write(name, data, WriteMode.CREATE))
        except AlreadyExists:
            return False
        return True

    async def _remove_others(self, store: Store, folder: str) -> None:
        """Remove what attempts that were killed have left: without a marker they can never win."""
        with suppress(FerryError):  # the result counts
            for child in await store.children():
                name = child.removesuffix("/")
                if name.startswith(f"{self._conversion.key}-") and name not in {folder, *self._marked}:
                    await self._remove(store, name)

    async def _remove(self, store: Store, folder: str) -> None:
        with suppress(FerryError):  # likewise
            await store.delete([entry.name async for entry in store.entries(folder)])
