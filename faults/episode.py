"""One episode: pods that come and go, faults on time, and the oracle's word."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from faults.known import KNOWN
from faults.ledger import Good, Ledger, Violation
from faults.oracle import Oracle
from faults.outcome import Outcome
from faults.plan import PROCESS, STORE, Fault
from faults.pod import ENDED, Pod
from faults.rules import Rules
from faults.scene import Scene

TICK = 0.02
LOOK = 3.0
"""Seconds between two looks of the oracle while a pod lives."""
ARMED = 10.0
"""Seconds for which a fault of the store waits for its request."""
MOST_PODS = 9
BACK_OFF = 3.0
"""Seconds after a pod whose trainer never began."""
POD_SECONDS = 240.0
"""Seconds that a pod may live: imports, saves, the agent's patience and its grace, on a busy machine."""
VICTIMS = {
    "kill worker": ("worker",),
    "kill agent": ("supervisor", "worker"),
    "kill trainer": ("trainer",),
    "kill all": ("launcher", "supervisor", "worker", "trainer"),
    "kill launcher": ("launcher", "trainer"),
}


class Episode:
    """Plays a plan.

    Args:
        scene: Where.
        rules: The proxy's.
        oracle: Who judges.
        checks: Whether the store compares bodies with their signed digests.
    """

    def __init__(self, scene: Scene, rules: Rules, oracle: Oracle, *, checks: bool) -> None:
        self._scene, self._plan, self._rules, self._oracle = scene, scene.plan, rules, oracle
        self._ledger = Ledger(scene.ledger)
        self._outcome = Outcome(scene.plan)
        self._waiting = [fault for fault in self._plan.faults if checks or fault.kind != "flipped request"]
        self._due: list[tuple[float, Fault]] = []
        self._deleted: float | None = None
        self._until_empty: float | None = None
        self._until_awake: float | None = None
        self._deleted_at: tuple[int, int] | None = None
        self._heard = 0

    def play(self) -> Outcome:
        """All of it."""
        began = time.monotonic()
        left: list[Pod] = []
        try:
            for number in range(1, MOST_PODS + 1):
                if self._pod(number, left):
                    break
            else:
                self._violate(Violation("stuck", f"{MOST_PODS} pods, and training has not ended"))
        finally:
            for pod in left:
                pod.close()
        self._outcome.violations += self._oracle.look(reread=True)
        self._outcome.fired.update(fault.kind for fault in self._rules.hits)
        self._outcome.commits, self._outcome.torn = self._oracle.commits, self._oracle.torn
        self._outcome.unproven = self._oracle.unproven
        self._outcome.seconds = time.monotonic() - began
        return self._outcome

    def _violate(self, *violations: Violation) -> None:
        self._outcome.violations += violations

    def _pod(self, number: int, left: list[Pod]) -> bool:
        """One life of a pod; whether it was the last."""
        self._violate(*self._oracle.look())
        before = self._oracle.newest
        lived = self._lived()
        self._arm_for_start(number)
        pod = Pod(self._scene, number, self._torn())
        left.append(pod)
        code = self._live(pod)
        self._outcome.codes.append(code)
        # A surviving agent runs in parallel with the next pod, as on a node that lost its network.
        agent_left = pod.outlived()
        self._violate(*self._oracle.look(), *pod.crashes())
        trained = self._lived() != lived
        if not trained:
            time.sleep(BACK_OFF)  # refused at the gate: a Job waits, too, before it makes another pod
        last = self._heed(before)
        if last and pod.said_durable():
            self._violate(*self._oracle.claimed(last, "podferry said so at the end"))
        if last and pod.said_sure():
            self._violate(*self._oracle.claimed(last, "podferry named no doubt at the end", sure=True))
        if last and trained and self._calm(pod) and not agent_left:
            self._violate(*self._oracle.left(last))
        return code in ENDED or self._broken()

    def _broken(self) -> bool:
        """Whether what was restored cannot be resumed from: the next pod would fare no better."""
        return self._ledger.count("broken") > 0

    def _lived(self) -> int:
        """How many trainers have begun."""
        return self._ledger.count("resumed") + self._ledger.count("broken")

    def _live(self, pod: Pod) -> int:
        """Fire what is due until the pod has ended; its exit code."""
        deadline, look = time.monotonic() + POD_SECONDS, time.monotonic() + LOOK
        started = time.monotonic()
        self._due = [
            (started + fault.delay, fault) for fault in self._take(lambda fault: fault.pod == pod.number)
        ]
        while (code := pod.code()) is None:
            if self._scene.stop.is_set():
                raise KeyboardInterrupt
            now = time.monotonic()
            self._schedule(now)
            self._fire(pod, now)
            if now > look:
                self._violate(*self._oracle.look())
                look = time.monotonic() + LOOK
            if now > deadline:
                self._violate(Violation("stuck", f"pod {pod.number} lives for {POD_SECONDS:g} s"))
                pod.close()
            time.sleep(TICK)
        self._until_empty = self._until_awake = None
        return code

    def _take(self, which: Callable[[Fault], bool]) -> list[Fault]:
        """Take faults out of those that wait."""
        taken = [fault for fault in self._waiting if which(fault)]
        self._waiting = [fault for fault in self._waiting if fault not in taken]
        return taken

    def _arm_for_start(self, number: int) -> None:
        """Those of the store's that a pod meets from its first request on."""
        for fault in self._take(lambda fault: fault.pod == number and fault.kind in STORE):
            self._rules.arm(fault, time.monotonic() + 4 * ARMED)

    def _torn(self) -> list[str]:
        """Options for a trainer that is to be killed in the middle of a save."""
        begun = self._ledger.count("begin")
        torn = next((fault for fault in self._waiting if fault.kind == "kill in a save"), None)
        return (
            [] if torn is None else ["--die-in", str(max(torn.save - begun, 1)), "--die-part", str(torn.part)]
        )

    def _schedule(self, now: float) -> None:
        events = self._ledger.events()
        saves = sum(event["event"] == "begin" for event in events)
        died = sum(event["event"] == "dies" for event in events)
        if died > self._outcome.fired["kill in a save"]:
            self._outcome.fired["kill in a save"] = died
            torn = next(fault for fault in self._waiting if fault.kind == "kill in a save")
            self._waiting.remove(torn)
        reached = self._take(lambda fault: 0 < fault.save <= saves and fault.kind != "kill in a save")
        self._due += [(now + fault.delay, fault) for fault in reached]
        if self._deleted is None and saves >= self._plan.deleted:
            self._deleted = now + 1.0

    def _fire(self, pod: Pod, now: float) -> None:
        ready = [fault for moment, fault in self._due if moment <= now]
        self._due = [(moment, fault) for moment, fault in self._due if moment > now]
        for fault in ready:
            if fault.kind in STORE:
                lasting = fault.seconds if fault.kind == "expired credentials" else ARMED
                self._rules.arm(fault, now + lasting)
            elif self._strike(pod, fault, now):
                self._outcome.fired[fault.kind] += 1
        if self._until_empty is not None and now > self._until_empty:
            pod.empty()
            self._until_empty = None
        if self._until_awake is not None and now > self._until_awake:
            pod.family.send(signal.SIGCONT, "trainer")
            self._until_awake = None
        if self._deleted is not None and now > self._deleted and pod.number == 1 and not self._outcome.codes:
            self._deleted = float("inf")
            # One that was killed, and that nobody starts again, drains nothing.
            if "supervisor" in pod.family.find():
                self._deleted_at = pod.number, self._happened()
            pod.delete()

    def _strike(self, pod: Pod, fault: Fault, now: float) -> bool:
        """Whether it did something."""
        if fault.kind == "stop trainer":
            self._until_awake = now + fault.seconds
            return pod.family.send(signal.SIGSTOP, "trainer")
        if fault.kind in PROCESS:
            return pod.family.kill(*VICTIMS[fault.kind])
        if fault.kind == "clock jump":
            self._scene.clock.write_text(str(fault.seconds))
            return True
        self._until_empty = now + fault.seconds
        return pod.fill(int(fault.part * self._plan.count * 4))

    def _calm(self, pod: Pod) -> bool:
        """Whether this pod was deleted with a living agent, and nothing else went wrong since.

        A file that is overwritten in place is torn by the trainer's end, and its last version lost with it.
        """
        calm = self._deleted_at == (pod.number, self._happened())
        return calm and not KNOWN[self._plan.writer].in_place

    def _happened(self) -> int:
        """How often something went wrong so far."""
        return self._rules.hits.total() + self._outcome.fired.total()

    def _heed(self, before: Good | None) -> int:
        """Judge what the pod's trainer said that it resumed from; the step of its last save, 0 for none."""
        events = self._ledger.events()
        mine, self._heard = events[self._heard :], len(events)
        for event in mine:
            if event["event"] in {"resumed", "broken"}:
                self._outcome.restores += event["step"] is not None
                self._outcome.passed_over += self._oracle.passed_over(event["step"])
                self._violate(*self._oracle.resumed(before, event))
        return max((event["step"] for event in mine if event["event"] == "finish"), default=0)
