"""The admission webhook: reviews a second of one core, against the same server without a decision.

All servers run on one core, the client on another one; CPU time counts, which other processes of the machine
change less than the clock's. The server without a decision decodes each review, logs it and encodes the
same response. Latency, memory and start have absolute bars.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import uvloop
from harness import Finding, interval
from report import machine, report
from review_load import latencies, percentile, saturate

from tests.support.webhook_process import WebhookProcess, review, webhook_process

HERE = Path(__file__).parent
POD = HERE.parent / "tests" / "data" / "kfp-pods" / "executor-plain.json"
"""A recorded pod of Kubeflow Pipelines."""
ANNOTATIONS = {
    "podferry.io/dataset": "s3://datasets/digits",
    "podferry.io/dataset-size": "14Gi",
    "podferry.io/checkpoints": "s3://results/digits",
    "podferry.io/checkpoint-size": "2Gi",
}
RECORDED_RUN = "2pxlx"
"""Of its workflow's name."""
UUID_TEXT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
RUNS = 100
"""Reviews that differ, so that no cache of whole pods would help."""
OURS, WITHOUT, BARE = "podferry webhook", "the same without a decision", "only receives and sends"
CONSTANT = str(HERE / "constant_webhook.py")
SERVERS = {OURS: (), WITHOUT: (CONSTANT, "decision"), BARE: (CONSTANT, "response")}
"""The words after Python's own, by server."""
SERVER_CORE, CLIENT_CORE = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
RATIO, P99_MS, RATE = 0.5, 5, 200.0
MEMORY_MIB, START_SECONDS = 100, 2.0
BUSY_PROCESSES, PROBE_SECONDS, PROBE_PERIOD = 8, 5.0, 1.0
"""The time-out of the probes in deploy/base."""


def annotated_reviews(count: int) -> list[bytes]:
    """Reviews of the recorded pod in as many runs, with other names and ids; annotations inject it."""
    pod: dict[str, Any] = json.loads(POD.read_text())
    pod["metadata"].setdefault("annotations", {}).update(ANNOTATIONS)
    recorded = review(pod, userInfo={"username": "system:serviceaccount:kubeflow:argo", "groups": ["a"]})
    return [_of_run(number, recorded.decode()).encode() for number in range(count)]


def _of_run(number: int, recorded: str) -> str:
    ids = UUID_TEXT.sub(lambda match: str(uuid.uuid5(uuid.UUID(match[0]), str(number))), recorded)
    return ids.replace(RECORDED_RUN, f"{number:0{len(RECORDED_RUN)}}")


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """This process, and what it starts in the block, runs on one core."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def started(stack: ExitStack, folder: Path, *program: str) -> WebhookProcess:
    """A webhook on its core."""
    folder.mkdir()
    with on_core(SERVER_CORE):
        return stack.enter_context(webhook_process(folder, "--log-format=json", program=program))


def compared(
    servers: Mapping[str, WebhookProcess], bodies: Sequence[bytes], rounds: int, count: int
) -> dict[str, list[tuple[float, float]]]:
    """Rounds of all, in turns: reviews per second of CPU time, and per second."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in servers}
    for number in range(rounds):
        for name, webhook in servers.items():
            with on_core(CLIENT_CORE):
                found[name].append(uvloop.run(saturate(webhook, bodies, count)))
        shown = ", ".join(f"{name} {found[name][-1][0]:.0f}" for name in servers)
        sys.stdout.write(f"round {number + 1}/{rounds}: {shown} reviews a second of CPU time\n")
    return found


def ready_under_load(webhook: WebhookProcess, seconds: float) -> list[float]:
    """Seconds of each probe with busy processes on all cores; infinite if it is not ready."""
    code = "while True: pass"
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(BUSY_PROCESSES)]
    try:
        return uvloop.run(_probed(webhook, seconds))
    finally:
        for one in busy:
            one.kill()
            one.wait()


async def _probed(webhook: WebhookProcess, seconds: float) -> list[float]:
    """As a kubelet probes: each time on a new connection."""
    times = []
    for _ in range(max(1, int(seconds / PROBE_PERIOD))):
        begun = time.perf_counter()
        connection = await webhook.open()
        status, _ = await connection.get("/readyz")
        times.append(time.perf_counter() - begun if status == 200 else float("inf"))
        await connection.close()
        await asyncio.sleep(PROBE_PERIOD)
    return times


def peak_mib(process: int) -> int:
    """The most memory that a process has had."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM"))


def measured(rounds: int, count: int, seconds: float, folder: Path) -> tuple[list[Finding], dict[str, Any]]:
    """All findings, and a table of the throughput."""
    bodies = annotated_reviews(RUNS)
    with ExitStack() as stack:
        servers = {name: started(stack, folder / name, *words) for name, words in SERVERS.items()}
        ours = servers[OURS]
        found = compared(servers, bodies, rounds, count)
        with on_core(CLIENT_CORE):
            slow = {name: uvloop.run(latencies(one, bodies, RATE, seconds)) for name, one in servers.items()}
        probes = ready_under_load(ours, seconds)
        memory = peak_mib(ours.process.pid)
    findings = [
        _ratio(found[OURS], found[WITHOUT]),
        _below("p99 at 200 reviews/s, ms", percentile(slow[OURS], 0.99) * 1000, P99_MS),
        _below("most memory, MiB", memory, MEMORY_MIB),
        _below("start until ready, s", ours.ready_after, START_SECONDS),
        Finding(
            f"probes within {PROBE_SECONDS:.0f} s, next to {BUSY_PROCESSES} busy processes",
            f"{sum(one < PROBE_SECONDS for one in probes)} of {len(probes)}; the slowest {max(probes):.2f} s",
            "all",
            max(probes) < PROBE_SECONDS,
        ),
    ]
    rows = [
        {
            "server": name,
            "reviews/s of CPU time": f"{median(one[0] for one in found[name]):.0f}",
            "reviews/s": f"{median(one[1] for one in found[name]):.0f}",
            "p50 at 200/s, ms": f"{percentile(slow[name], 0.5) * 1000:.2f}",
            "p99 at 200/s, ms": f"{percentile(slow[name], 0.99) * 1000:.2f}",
        }
        for name in servers
    ]
    return findings, {f"reviews of {len(bodies[0]) / 1000:.0f} KB over TLS": rows}


def _ratio(ours: Sequence[tuple[float, float]], without: Sequence[tuple[float, float]]) -> Finding:
    ratios = [mine[0] / theirs[0] for mine, theirs in zip(ours, without, strict=True)]
    low, high = interval(ratios)
    return Finding(
        f"reviews/s of CPU time, over {WITHOUT}",
        f"{median(ratios):.2f} ({low:.2f} to {high:.2f})",
        f"at least {RATIO}",
        median(ratios) >= RATIO,
    )


def _below(what: str, value: float, bar: float) -> Finding:
    return Finding(what, f"{value:.2f}", f"below {bar:g}", value < bar)


def main() -> int:
    """The exit code: 0 if every bar is reached; of a short run, if it ran."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="only check that it runs")
    short = parser.parse_args().short
    with tempfile.TemporaryDirectory() as folder:
        findings, tables = measured(*((2, 200, 2.0) if short else (10, 2000, 20.0)), Path(folder))
    report("reviews", machine(load=f"{os.getloadavg()[0]:.1f}"), [], findings, tables)
    return 0 if short or all(one.reached for one in findings) else 1


if __name__ == "__main__":
    sys.exit(main())
