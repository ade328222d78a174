"""`prepared` runs the code of a block once for each content of a dataset and parameters."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podferry.components.data.dataset.runner import list_frozen, parse_selection
from podferry.components.data.prepare.results import Conversion, Results
from podferry.components.log_tables import print_line
from podferry.components.secret_dir import DESTINATION_SECRET_DIR, SOURCE_SECRET_DIR
from podferry.components.store_access import secret_dir_for, step_store_config
from podferry.contract.dataset_reference import Reference, parse_reference, reference_to
from podferry.contract.destination.prepared_result import result_key
from podferry.contract.errors import PermanentError
from podferry.contract.uri import parse_uri
from podferry.sidecar.runtime.run_async import run_async
from podferry.storage.store import StoreConfig
from podferry.trainer import ferry

TARGET_DIR = "result"


@dataclass(slots=True)
class Prepared:
    """A conversion.

    Attributes:
        needed: Whether the block has to convert: there is no result yet.
        parameters: Those given.
    """

    needed: bool
    parameters: Mapping[str, Any]
    _source: Path | None = None
    _target: Path | None = None
    _reference: str | None = None

    @property
    def source(self) -> Path:
        """The staged dataset; only if `needed`."""
        return self._require(self._source)

    @property
    def target(self) -> Path:
        """An empty directory for the result, which is uploaded at the end of the block; only if `needed`."""
        return self._require(self._target)

    @property
    def reference(self) -> str:
        """The frozen reference of the result, once there is one: at once, or after the block."""
        if self._reference is None:
            raise PermanentError.of("the result is not uploaded yet", "", "Read `reference` after the block")
        return self._reference

    def _require(self, path: Path | None) -> Path:
        if path is None:
            raise PermanentError.of("there is a result already", self._reference or "", "Look at `needed`")
        return path


@contextmanager
def prepared(  # noqa: PLR0913 - keywords, one per setting
    reference: str,
    to: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    endpoint: str = "",
    region: str = "",
    to_endpoint: str = "",
    to_region: str = "",
    command: Sequence[str] = (),
    **settings: Any,
) -> Iterator[Prepared]:
    """Convert a dataset, unless a result for its content and the parameters is at the destination.

        with prepared(reference, "s3://datasets/prepared", {"size": 64}) as p:
            if p.needed:
                convert(p.source, p.target)
        return p.reference

    The result counts as complete once all its files are uploaded, and a marker after them. A block that
    raises, or is killed, leaves none. Of two at once, one is first, and both get its reference.

    Args:
        reference: The dataset; a URI is frozen first.
        to: URI of the destination, which may be that of many conversions.
        parameters: JSON values on which the result depends. Add a version of your code.
        endpoint: URL of the object store.
        region: Its region.
        to_endpoint: URL of the destination's store, if it is another one.
        to_region: Its region.
        command: A command that converts, on which the result depends, too.
        **settings: Of `ferry`, which stages the dataset: `dataset_path`, `unpack`, …

    Raises:
        InvalidSpec: The parameters are not JSON, or an argument is invalid.
        Refused: At the end: the block wrote nothing, or files could not be uploaded.
        FerryError: The dataset cannot be staged, or a store did not respond.
    """
    given = dict(parameters or {})
    config = step_store_config(endpoint, region, SOURCE_SECRET_DIR)
    source = _frozen(reference, config)
    key = result_key(source.digest or "", given, command)
    conversion = Conversion(key, str(source), given, tuple(command))
    target_config = step_store_config(to_endpoint or endpoint, to_region or region, DESTINATION_SECRET_DIR)
    results = Results(parse_uri(to), target_config, conversion)
    if (found := run_async(results.find())) is not None:
        print_line(f"prepared before: {found}")
        yield Prepared(False, given, _reference=found)
        return
    access = {"endpoint": endpoint, "region": region, "secret_dir": secret_dir_for(SOURCE_SECRET_DIR)}
    settings = {name: str(value) for name, value in access.items() if value} | settings
    with tempfile.TemporaryDirectory(prefix="podferry-prepare-") as folder:
        target = Path(folder, TARGET_DIR)
        target.mkdir()
        with ferry(str(source), **settings) as staged:
            block = Prepared(True, given, staged.dataset, target)
            yield block
        block._reference = run_async(results.publish(target))  # noqa: SLF001 - the block is ours


def _frozen(text: str, config: StoreConfig) -> Reference:
    """The reference, frozen to what is there now if it is not frozen."""
    reference = parse_reference(text)
    if reference.frozen:
        return reference
    selection = parse_selection(text, "", "")
    frozen, _ = list_frozen(text, selection, config)
    return reference_to(frozen, selection.include, selection.exclude)
