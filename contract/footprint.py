"""Memory of the agent itself, next to what it stages."""

from __future__ import annotations

import msgspec

from podferry.contract.tmpfs_cost import MIB


class Footprint(msgspec.Struct, frozen=True):
    """Memory of the agent itself, in bytes unless noted.

    Attributes:
        range_bytes: Held by one transfer: a range of 8 MiB in chunks, and joined.
        concurrency: Number of parallel transfers.
        outputs: Held by an upload of outputs, which runs in parallel with one of a checkpoint. Measured with
            S3: 72 MiB for one file of 600 MiB, 12 MiB for 200 of 1 MiB.
        resident: The agent's processes: interpreter, libraries, connections. Measured: supervisor 12 MiB,
            worker 59 MiB, each fetch worker 30 MiB, of which there are two at most.
        entry: Metadata of one file: name, size, tag, its line in the plan.
        typical: What processes and buffers usually take, without the metadata. Measured with S3: 62 MiB for a
            holder of a cache, 50 for an agent, and 8 to 34 more while they fetch.
        typical_file: Assumed file size if the number of files is unknown: half of the photographs that image
            training reads, so that the estimate errs on the safe side.
    """

    range_bytes: int = 16 * MIB
    concurrency: int = 8
    outputs: int = 80 * MIB
    resident: int = 160 * MIB
    entry: int = 512
    typical: int = 72 * MIB
    typical_file: int = 64 * 1024

    @property
    def buffers(self) -> int:
        """Bytes of all transfer buffers."""
        return self.range_bytes * self.concurrency
