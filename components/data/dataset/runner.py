"""Runs the step `dataset`: lists and freezes a dataset."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from podferry.components.log_tables import print_line, print_memory
from podferry.components.parsers import refuse_invalid
from podferry.components.reports.memory_page import memory_page
from podferry.components.reports.render import html, write
from podferry.components.store_access import step_store_config
from podferry.contract.dataset_reference import parse_reference, reference_to
from podferry.contract.dataset_selection import selection_of
from podferry.contract.dataset_volume import ListedSize
from podferry.contract.errors import Problem, Refused
from podferry.contract.kfp_inputs import REFERENCE_KEY
from podferry.contract.manifest import Manifest
from podferry.contract.memory_sum import memory_sum
from podferry.contract.quantity import count_of, format_bytes, parse_bytes, quantity_at_least
from podferry.contract.selection import parse_globs
from podferry.contract.spec import PREFIX, DatasetSpec, FerrySpec, Unpack
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.fit_check import SizedPlan, fit_problems
from podferry.sidecar.dataset.selection import SelectedDataset, Selection, open_selected
from podferry.sidecar.fetch.plan import plan_fetch
from podferry.sidecar.runtime.run_async import run_async
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.storage.listing.dataset import check_frozen
from podferry.storage.store import StoreConfig

FORMAT = 1
ANNOTATION = re.compile(re.escape(PREFIX) + r"([a-z-]+)")


class FrozenDocument(msgspec.Struct, frozen=True):
    """The artifact's content. It is small: KFP copies it to the pod of every step that takes it.

    Attributes:
        reference, uri, digest, bytes, files: As in the manifest; `files` is the number of files.
        format: Version of this document.
    """

    reference: str
    uri: str
    digest: str
    bytes: int
    files: int
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class FrozenDataset:
    """The outputs of the step.

    Attributes:
        document: Content of the artifact.
        size: Kubernetes quantity of memory to reserve for the data.
    """

    document: FrozenDocument
    size: str

    @property
    def reference(self) -> str:
        """URI with digest, bytes and files."""
        return self.document.reference

    @property
    def files(self) -> int:
        """Number of files."""
        return self.document.files

    @property
    def metadata(self) -> dict[str, object]:
        """The artifact's metadata: `$(inputs.NAME)` in an annotation resolves to its reference."""
        return {REFERENCE_KEY: self.reference, "bytes": self.document.bytes, "files": self.files}

    def write(self, path: str) -> None:
        """Write the document as JSON."""
        Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(self.document), indent=1) + b"\n")


def freeze_dataset(
    uri: str,
    endpoint: str = "",
    region: str = "",
    fits: str = "",
    include: str = "",
    exclude: str = "",
    report: str = "",
) -> FrozenDataset:
    """List and freeze a dataset, and print how much memory it needs.

    A reference as `uri` is compared with the store. An empty text means the vendor's default, any volume, or
    no globs. Commas, spaces or lines separate globs. A page for KFP's UI is written to `report`, if given.

    Raises:
        Refused: It does not fit into a volume of the size `fits`.
        EmptyDataset, Changed, InvalidSpec and the store's errors: It cannot be frozen.
    """
    refuse_invalid(uri=uri, endpoint=endpoint, region=region, fits=fits, include=include, exclude=exclude)
    volume = parse_bytes(fits) if fits else None
    selection = parse_selection(uri, include, exclude)
    frozen, manifest = list_frozen(uri, selection, step_store_config(endpoint, region))
    reference = str(reference_to(frozen, selection.include, selection.exclude))
    dataset = DatasetSpec(reference, include=selection.include, exclude=selection.exclude)
    needed = memory_sum(FerrySpec((dataset,)), {"": ListedSize.of(manifest)})
    print_memory(reference, needed.rows())
    problems = [] if volume is None else volume_problems(manifest, volume, "fits")
    listed = f"{count_of(manifest.files, 'file')} of {format_bytes(manifest.bytes)}"
    verdict = listed if volume is None else f"fits: {listed} in a volume of {fits}"
    if report:
        write(report, html(memory_page("Dataset", frozen, needed.rows(), verdict, problems)))
    Refused.raise_any(problems)
    print_line(verdict)
    document = FrozenDocument(reference, frozen.uri, frozen.digest, frozen.bytes, frozen.files)
    return FrozenDataset(document, quantity_at_least(needed.data_volume))


def parse_selection(uri: str, include: str, exclude: str) -> Selection:
    """Parse two lists of globs, which a reference as `uri` may carry; empty texts select everything.

    Raises `InvalidSpec` for misleading globs, and for others than those of the reference.
    """
    given = (parse_globs(text) if text else () for text in (include, exclude))
    return Selection(*selection_of(parse_reference(uri), *given))


def list_frozen(
    text: str, selection: Selection, config: StoreConfig, unpack: Unpack = Unpack.AUTO
) -> tuple[Manifest, Manifest]:
    """List a selection: the manifest that a reference covers, and the manifest of the files that a pod gets.

    They differ for a pack.

    Raises:
        Changed: The reference is frozen and the dataset has changed.
        EmptyDataset, InvalidSpec and the store's errors: It cannot be listed.
    """
    reference = parse_reference(text)

    async def open_and_close() -> SelectedDataset:
        selected = await open_selected(reference.uri, selection, config, unpack)
        await selected.store.close()
        return selected

    selected = run_async(open_and_close())
    check_frozen(reference, selected.frozen)
    return selected.frozen, selected.manifest


def volume_problems(manifest: Manifest, volume_bytes: int, size_input: str) -> list[Problem]:
    """Why a dataset does not fit into a memory volume of that size; empty if it does.

    Args:
        manifest: The dataset.
        volume_bytes: Size of the volume.
        size_input: The step's input that has set it, for the remedy.
    """
    plan = plan_fetch(manifest, frozenset(), PrefetchSettings())
    problems = fit_problems([SizedPlan(plan, Capacity(volume_bytes=volume_bytes))], in_pod=True)
    return [Problem(one.what, one.measured, _in_keywords(one.remedy, size_input)) for one in problems]


def _in_keywords(remedy: str, size_input: str) -> str:
    """A remedy for a pod's annotations in the words of a pipeline's author."""
    remedy = remedy.replace(f"{PREFIX}dataset-size", size_input)
    return ANNOTATION.sub(lambda match: f"`{match[1].replace('-', '_')}` of gpu_train", remedy)
