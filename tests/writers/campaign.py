"""One program's runs: stopped and killed at every call, then with a fault at a sample of its calls."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from judge import END_SECONDS, Findings, Judge
from oracle import Oracle, Recorder, Unit
from runs import HUNG_SECONDS, Fault, Place, Server, Stop

CALL_SECONDS = 0.4
"""How long each call takes, for the detector."""
CLOSE_SECONDS = 0.1
"""The same for a close, which waits for nothing on a local file system."""
NEAR_CALLS = 6
"""So many calls before a fault, a detector scans at each of them."""
UNDISTURBED_RUNS = 3
FAULTS = (Fault.ENOSPC, Fault.EIO, Fault.INTERRUPT)


@dataclass
class Report:
    """What all runs of a program found.

    Attributes:
        calls: The calls of one run that change the directory.
        runs: The runs.
        judged: The states that a detector judged.
        torn: Incomplete checkpoints that were sure, with how it came to that.
        unsure: How often a complete save was not sure in time, by situation: `first, killed` is the first
            save of its kind, by a program that was killed; `later, alive` a later one, 2 s after its end;
            `followed, alive` one that was not even sure after the next of its kind.
        examples: One for each situation.
    """

    calls: int = 0
    runs: int = 0
    judged: int = 0
    torn: Counter[str] = field(default_factory=Counter)
    unsure: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, situation: str, how: str, findings: Findings) -> None:
        """Include one judge's findings; `how` says more about the situation."""
        self.torn.update(f"{situation}, {how}: {one}" for one in findings.torn)
        for kind, why in findings.unsure:
            self.unsure[f"{kind}, {situation}"] += 1
            self.examples.setdefault(f"{kind}, {situation}", f"{how}: {why}")


class _Clock:
    """How long the calls take."""

    def __init__(self) -> None:
        self._last = ""

    def seconds_until(self, stop: Stop) -> float:
        """From the stop before this one, whose call has happened meanwhile."""
        last, self._last = self._last, stop.call
        return CLOSE_SECONDS if last.startswith("close ") else CALL_SECONDS


class Campaign:
    """All runs of one program.

    Args:
        server: Runs it.
        folder: For its directories.
        part: The directory that is one pod's part, below the program's; empty for all of it.
        gang: Other pods have other parts, and this one is not the coordinator's.
        asks: The agent may learn who has a file open for writing.
    """

    def __init__(
        self, server: Server, folder: Path, part: str = "", *, gang: bool = False, asks: bool = True
    ) -> None:
        self._server, self._folder, self._part, self._gang, self._asks = server, folder, part, gang, asks
        self.report = Report()
        self._oracle = Oracle([self._record() for _ in range(UNDISTURBED_RUNS)])

    def _place(self) -> Place:
        shutil.rmtree(self._folder / "run", ignore_errors=True)  # the same path in each run: some store it
        self.report.runs += 1
        return Place.below(self._folder / "run")

    def _record(self) -> Recorder:
        place = self._place()
        recorder = Recorder(place.root / self._part)

        def on_stop(stop: Stop) -> None:
            if stop.saved:
                recorder.saved(stop.saved)

        code = self._server.run(place, on_stop)
        if code:
            raise RuntimeError(f"it ended with {code}:\n{place.log.read_text(errors='replace')[-4000:]}")
        return recorder

    def _judge(self, place: Place) -> Judge:
        (place.root / self._part).mkdir(exist_ok=True)
        return Judge(place.root / self._part, self._oracle, gang=self._gang, asks=self._asks)

    def watch(self) -> list[str]:
        """One undisturbed run: at each call, the program may stop for half a minute, or be killed.

        Returns:
            The calls that change the directory.
        """
        place, calls, saves = self._place(), [], set()
        newest: dict[str, Unit] = {}
        judge, clock = self._judge(place), _Clock()

        def on_stop(stop: Stop) -> None:
            judge.step(clock.seconds_until(stop))
            self.report.judged += 3
            if stop.saved:
                saves.add(stop.number)
            ending = stop.saved or stop.ended
            how = f"the end of {ending}" if ending else stop.call
            self.report.add("killed", f"before {how}", judge.imagine(lambda one: _die(one, saves)))
            if stop.saved:
                _end_save(judge, stop.number, newest)
            elif stop.pause:
                _pause(judge, stop.pause)
            elif stop.changes:
                calls.append(stop.call)
                self.report.add("stopped", f"before {how}", judge.imagine(Judge.stall))
            self._take("alive", how, judge)

        code = self._server.run(place, on_stop)
        judge.end(code)
        judge.expect_sure(judge.present(saves))
        self._take("ended", f"with {code}", judge)
        judge.close()
        self.report.calls = len(calls)
        return calls

    def fail(self, calls: list[str], fault: Fault, number: int, *, carry_on: bool) -> None:
        """One run in which call `number` fails or is interrupted; the program may carry on after it."""
        place, seen, saves = self._place(), 0, set()
        if carry_on:
            (place.done / "carry-on").touch()
        judge, clock = self._judge(place), _Clock()

        def on_stop(stop: Stop) -> Fault | None:
            nonlocal seen
            seen += stop.changes
            judge.watch()
            seconds = clock.seconds_until(stop)
            if not stop.changes or seen > number - NEAR_CALLS:
                judge.step(seconds)
                self.report.judged += 1
            if stop.saved:
                saves.add(stop.number)
                judge.stall()
            _pause(judge, stop.pause or 0.0)
            if stop.ended and stop.ended != "ok":
                judge.stall()
            return fault if stop.changes and seen == number else None

        code = self._server.run(place, on_stop, HUNG_SECONDS)
        judge.end(code)
        judge.expect_sure(judge.present(saves))
        situation = "carried on" if carry_on and not code else "failed"
        self._take(situation, f"{fault.value} at {calls[number - 1]}, ended with {code}", judge)
        judge.close()

    def stop(self, calls: list[str], number: int) -> None:
        """One run that stops for half a minute before call `number`, then goes on to its end.

        Later saves must not prove the part of one that was there meanwhile.
        """
        place, seen = self._place(), 0
        judge, clock = self._judge(place), _Clock()

        def on_stop(stop: Stop) -> None:
            nonlocal seen
            seen += stop.changes
            judge.step(clock.seconds_until(stop))
            self.report.judged += 1
            if stop.saved or (stop.changes and seen == number):
                judge.stall()
            _pause(judge, stop.pause or 0.0)

        judge.end(self._server.run(place, on_stop))
        judge.findings.unsure.clear()
        self._take("went on", f"after a stop at {calls[number - 1]}", judge)
        judge.close()

    def _take(self, situation: str, how: str, judge: Judge) -> None:
        self.report.add(situation, how, judge.findings)
        judge.findings = Findings()

    def fail_all(self, calls: list[str], runs: int, seed: int) -> None:
        """A stop and each fault, at each call or at a sample; `runs` is about the number of faults."""
        choice = random.Random(seed)  # noqa: S311 - a sample
        for number in choice.sample(range(1, len(calls) + 1), min(len(calls), runs // len(FAULTS))):
            self.stop(calls, number)
        for fault in FAULTS:
            numbers = [number for number, call in enumerate(calls, 1) if _can_fail(call, fault)]
            for number in sorted(choice.sample(numbers, min(len(numbers), runs // len(FAULTS)))):
                self.fail(calls, fault, number, carry_on=False)
                if fault is Fault.ENOSPC:
                    self.fail(calls, fault, number, carry_on=True)


def _die(judge: Judge, saves: set[int]) -> None:
    judge.end(-9)
    judge.expect_sure(judge.present(saves))


def _end_save(judge: Judge, save: int, newest: dict[str, Unit]) -> None:
    """Two seconds for it to become sure, then training goes on.

    Args:
        newest: The last complete ones before it, by form. A save must make the one before it sure.
    """
    units = judge.present({save})
    _pause(judge, END_SECONDS)
    judge.expect_sure(units)
    judge.stall()
    judge.expect_sure([newest[unit.form] for unit in units if unit.form in newest], "followed")
    newest.update({unit.form: unit for unit in units})


def _pause(judge: Judge, seconds: float) -> None:
    """Time passes, with a scan at least every half a second."""
    while seconds > 0:
        judge.step(min(seconds, 0.5))
        seconds -= 0.5


def _can_fail(call: str, fault: Fault) -> bool:
    """A close fails on no local file system, and closes the file even then."""
    return fault is Fault.INTERRUPT or not call.startswith("close ")
