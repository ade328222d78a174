"""Tuning parameters of the agent: frozen, each with its unit and its reason."""

from __future__ import annotations

import msgspec

MIB = 1 << 20
OUTAGE_SECONDS = 40.0
"""That a store may not answer before or while a dataset is fetched: a user should see a wrong endpoint within
a minute of the pod's creation, and a crowded node starts a container slowly. A server restarts in less."""


class PrefetchSettings(msgspec.Struct, frozen=True):
    """How a dataset is fetched.

    Attributes:
        in_flight: Concurrent requests. Latency bounds small objects: 64 requests of 20 ms give 3,200 objects
            a second, near what one core can handle.
        range_bytes: Size of one request for a large object. Large enough to amortise the first byte, small
            enough to spread four files over eight connections.
        buffer_bytes: Bytes in flight. The memory sum counts them twice: an engine holds the chunks of a body
            and, once it is complete, their join.
        attempts: Per range, on top of the engine's own retries: 1.5 s of pauses, in which a role's rotated
            credentials become valid.
        patience_seconds: For a store that does not answer a range; None for `attempts`.
        verify: Compare received bytes with the store's checksums.
        processes: Number of fetching processes; None for one per core, up to three.
    """

    in_flight: int = 64
    range_bytes: int = 8 * MIB
    buffer_bytes: int = 64 * MIB
    attempts: int = 5
    patience_seconds: float | None = None
    verify: bool = True
    processes: int | None = None


class CheckpointSettings(msgspec.Struct, frozen=True):
    """How checkpoints are detected and uploaded.

    Attributes:
        quiet_seconds: A file counts as complete after this long without a change since its last close.
            Writers that close a file and reopen it do so at once; writers of several files pause for less.
        quiet_seconds_no_close: The same if no close was seen (polling, or written before the watch began): a
            writer that stalls on a slow device must not look finished.
        rescan_seconds: Between full scans, in addition to inotify events, which can overflow and miss
            directories.
        poll_seconds: Between scans without inotify.
        part_bytes: Sent in one request; larger files go in parts of this size, or larger ones if there would
            be too many. Large enough to amortise a request, small enough to resend.
        parts_in_flight: Times `part_bytes`, the bytes in flight of all transfers together. The memory budget
            counts them twice: an engine may hold a copy of its own.
        threads: For reading and hashing: they must not take the trainer's cores.
        attempts: For one request, on top of the engine's own retries.
        retry_seconds: Before a failed checkpoint is retried.
        set_apart_seconds: Before one that was refused for good is tried again, when no other waits: a person
            who grants a permission should see it used within a minute or so.
        eviction_threshold: Share of the checkpoint volume above which durable checkpoints are evicted.
        full_threshold: Share above which, after eviction, the volume is reported as full.
        join_poll_seconds: Between two checks for the parts of other ranks.
        rival_seconds: Between two checks for another agent of the lineage, two small requests each: soon
            enough for a person who has started a command twice, and less than a cent a day.
        copy_bytes: Unchanged files up to this size are copied at the store, so that a checkpoint's folder is
            complete by itself; larger ones are referenced, as each copy is stored and billed. Configuration
            files, tokenizers and small shards are below, the shards of a frozen model above.
        copy_files: Copied for one checkpoint at most, the smallest first: each costs three requests.
        copy_seconds: That copies may take for one checkpoint: its durability waits for them.
    """

    quiet_seconds: float = 1.0
    quiet_seconds_no_close: float = 5.0
    rescan_seconds: float = 10.0
    poll_seconds: float = 0.5
    part_bytes: int = 16 * MIB
    parts_in_flight: int = 4
    threads: int = 2
    attempts: int = 3
    retry_seconds: float = 5.0
    set_apart_seconds: float = 60.0
    eviction_threshold: float = 0.8
    full_threshold: float = 0.99
    join_poll_seconds: float = 2.0
    rival_seconds: float = 10.0
    copy_bytes: int = 64 * MIB
    copy_files: int = 1000
    copy_seconds: float = 10.0


class Tuning(msgspec.Struct, frozen=True):
    """All parameters.

    Attributes:
        grace_seconds: For a drain; Kubernetes' own default is 30.
        startup_timeout: Seconds that a store may not answer before the agent fails.
        polling: Scan at intervals even if inotify works.
    """

    prefetch: PrefetchSettings = PrefetchSettings(patience_seconds=OUTAGE_SECONDS)
    checkpoint: CheckpointSettings = CheckpointSettings()
    grace_seconds: float = 30.0
    startup_timeout: float = OUTAGE_SECONDS
    polling: bool = False

    def with_patience(self, seconds: float) -> Tuning:
        """The same for a store that may not answer for this long, where a failure is final."""
        prefetch = msgspec.structs.replace(self.prefetch, patience_seconds=seconds)
        return msgspec.structs.replace(self, startup_timeout=seconds, prefetch=prefetch)
