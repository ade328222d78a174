"""Random schedules of several pods that write one lineage, down to the order of single requests.

Trainers train in step: a pod that is killed ends the attempt for all, and the next one begins where the
newest commit is when they start. What the agents do may be interrupted or repeated, or continue in a pod that
is thought dead.
"""

import asyncio
import contextlib
from datetime import UTC, datetime
from functools import partial
from random import Random

import pytest
import stamina
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.destination.commit import CommittedFile, decode_commit
from podferry.contract.destination.rank_parts import decode_part
from podferry.contract.errors import AlreadyExists, FerryError, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.committer import Committer
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.gang.coordinator import GangCoordinator
from podferry.storage.memory.store import Content, MemoryStore
from podferry.storage.store import WriteMode

LINEAGE = "run"
TURNS = 400
LOST = Unavailable.of("the connection was reset")


class Turns(MemoryStore):
    """A store whose calls wait for their turn; the scheduler says which one is next and how it ends."""

    def __init__(self, content):
        super().__init__(parse_uri("memory://gang"), content)
        self.waiting = []

    async def _turn(self, effect):
        call = asyncio.get_running_loop().create_future()
        self.waiting.append((call, effect))
        try:
            return await call
        finally:
            self.waiting = [other for other in self.waiting if other[0] is not call]

    async def children(self, prefix=""):
        return await self._turn(
            lambda: sorted({n[len(prefix) + 1 :].partition("/")[0] for n in self._below(prefix)})
        )

    async def read(self, name, start=0, length=None, tag="", size=None):
        return await self._turn(lambda: memoryview(self._object(name)))

    async def write(self, name, body, mode=WriteMode.OVERWRITE):
        def effect():
            if mode is WriteMode.CREATE and name in self.content.objects:
                raise AlreadyExists.of(name)
            self.content.objects[name] = body
            self.content.calls.append(("write", name))

        await self._turn(effect)

    async def delete(self, names):
        for name in names:
            await self._turn(lambda name=name: self.content.objects.pop(name, None))

    def pass_one(self, at, ending):
        """Let a call have its effect (`ok`, `lost`) or not (`failed`)."""
        call, effect = self.waiting.pop(at)
        try:
            found = None if ending == "failed" else effect()
        except (NotFound, AlreadyExists) as error:
            call.set_exception(error)
            return
        if ending == "ok":
            call.set_result(found)
        else:
            call.set_exception(LOST)


class Pod:
    """One life of a rank: its trainer, and its agent, whose worker may be killed by itself."""

    def __init__(self, world, rank, attempt):
        self.world, self.rank, self.attempt = world, rank, attempt
        self.writer = f"w{world.lives}"
        world.lives += 1
        self.skew = world.random.choice([0, 0, -50, 50])
        self.step = None
        self.saved = {}
        self.unsent = []
        self.ready = self.fenced = self.doomed = False
        self.start_worker()

    def start_worker(self):
        self.store = Turns(self.world.content)
        author = AgentIdentity(self.writer, self.world.size, rank=self.rank)
        committer = Committer(
            CommitReader(LineageStore(self.store, LINEAGE)), author, self.world.now, attempts=2
        )
        self.gang = GangCoordinator(committer, self.clock)
        self.unsent = list(self.saved)
        self.tasks = {}
        self.announced = False
        self.run("main", self.start)

    def clock(self):
        return self.world.time + self.skew

    def run(self, kind, work):
        self.tasks[kind] = asyncio.create_task(self.guarded(work))

    async def guarded(self, work):
        # Called here, not before: a task that is cancelled before its first step would leave it unawaited.
        try:
            await work()
        except FerryError as error:
            if type(error).__name__ == "Fenced":
                self.fenced = True

    async def start(self):
        if not self.ready:
            await self.gang.commit_before_start()
        await self.gang.announce()
        self.announced = True
        if not self.ready:
            newest = None
            async for commit in CommitReader(LineageStore(self.store, LINEAGE)).newest_first():
                newest = commit
                break
            self.step = newest.step if newest else 0
            self.ready = True

    def idle(self, kind):
        return kind not in self.tasks or self.tasks[kind].done()

    def act(self):
        """Start a task unless one is running."""
        if not self.announced:
            self.run("main", self.start)
        elif self.unsent and self.world.random.random() < 0.7:
            self.run("main", partial(self.publish, self.unsent[0]))
        else:
            self.run("main", self.gang.commit_complete)

    async def publish(self, step):
        contents, changed = self.saved[step]
        name = f"step-{step}"
        folder = f"{name}-{self.rank}-{abs(hash(contents))}"
        files = tuple(CommittedFile(file, f"{folder}/{file}", 1, text) for file, text in sorted(contents))
        await self.gang.publish(name, folder, files, changed)
        if self.saved[step] == (contents, changed):
            self.unsent.remove(step)

    def save(self, step, label, *more):
        own = f"rank-{self.rank}"
        self.saved[step] = (frozenset({(own, label), ("common", label), *more}), self.clock())
        self.unsent = [step, *(other for other in self.unsent if other != step)]

    def kill(self):
        for call, effect in list(self.store.waiting):
            if self.world.random.random() < 0.3 and not call.done():
                with contextlib.suppress(FerryError):
                    effect()  # the request had left
        for task in self.tasks.values():
            task.cancel()


class World:
    """All pods, and what must hold for their commits."""

    def __init__(self, random, size):
        self.random, self.size = random, size
        self.content = Content()
        self.time = 1000.0
        self.lives = self.attempt = 0
        self.pods = {rank: Pod(self, rank, 0) for rank in range(size)}
        self.zombies = []
        self.labels = {}
        self.first = {}

    def now(self):
        return datetime.fromtimestamp(self.time, UTC)

    def everybody(self):
        return [*self.pods.values(), *self.zombies]

    async def turn(self):
        self.time += 1
        choice = self.random.random()
        blocked = [(pod, at) for pod in self.everybody() for at in range(len(pod.store.waiting))]
        if choice < 0.80 and blocked:
            pod, at = self.random.choice(blocked)
            ending = self.random.choices(["ok", "lost", "failed"], [20, 1, 1])[0]
            seen = len(self.content.calls)
            pod.store.pass_one(at, ending)
            self.note(seen)
        elif choice < 0.955:
            pod = self.random.choice(self.everybody())
            if pod.idle("main") and not pod.fenced:
                pod.act()
            elif pod.announced and pod.idle("side") and not pod.fenced:
                pod.run("side", pod.gang.membership.refresh)
        elif choice < 0.992:
            self.train()
        else:
            self.fail()
        for _ in range(12):
            await asyncio.sleep(0)
        self.check()

    def train(self):
        pod = self.random.choice(list(self.pods.values()))
        whole = all(p.ready and p.attempt == pod.attempt for p in self.pods.values())
        together = whole and len({p.began for p in self.pods.values() if hasattr(p, "began")}) <= 1
        if pod.step is None:
            return
        if not hasattr(pod, "began"):
            pod.began = pod.step
        if not together:
            return
        label = f"attempt-{pod.attempt}"
        kind = self.random.random()
        if kind < 0.84 and all(p.step >= pod.step for p in self.pods.values()):
            pod.step += 10
            pod.save(pod.step, label)
        elif kind < 0.92 and pod.step in pod.saved:
            pod.save(pod.step, f"{label}/{self.time:.0f}")
        elif pod.step in pod.saved:
            contents, _ = pod.saved[pod.step]
            pod.save(pod.step, dict(contents)["common"], (f"late-{pod.rank}", "1"))

    def fail(self):
        pod = self.random.choice(list(self.pods.values()))
        if self.random.random() < 0.5:
            pod.kill()
            pod.start_worker()
            return
        if pod.attempt == self.attempt and pod.ready:
            self.attempt += 1
        if self.random.random() < 0.6:
            pod.kill()
        else:
            self.zombies.append(pod)
        self.pods[pod.rank] = Pod(self, pod.rank, self.attempt)

    def note(self, seen):
        """Remember what each life has offered first under a name; a trainer's new start is a life too."""
        for _, name in self.content.calls[seen:]:
            if "/parts/" in name:
                part = decode_part(self.content.objects[name], name)
                self.first.setdefault((part.member, part.name), (part.rank, text_of(part.files, part.rank)))

    def commits(self):
        names = sorted(name for name in self.content.objects if "/commits/" in name)
        return [decode_commit(bytes(self.content.objects[name]), name) for name in names]

    def check(self):
        commits = self.commits()
        steps = [commit.step for commit in commits]
        assert steps == sorted(set(steps)), "a step is committed after a later one, or twice"
        for commit in commits:
            texts = {rank: text_of(commit.files, rank) for rank in range(self.size)}
            assert len({text.partition("/")[0] for text in texts.values()}) == 1, "attempts are mixed"
            first = {found for (_, name), found in self.first.items() if name == commit.name}
            assert first >= set(texts.items()), "what was written again is committed"


def text_of(files, rank):
    """What a rank's trainer wrote."""
    return next(file.xxh128 for file in files if file.name == f"rank-{rank}")


async def play(random, size):
    world = World(random, size)
    try:
        for _ in range(TURNS):
            await world.turn()
    finally:
        for pod in world.everybody():
            pod.kill()
        await asyncio.gather(
            *(t for pod in world.everybody() for t in pod.tasks.values()), return_exceptions=True
        )
    return world


@pytest.fixture(scope="module", autouse=True)
def quick():
    with stamina.set_testing(True, attempts=2, cap=True):
        yield


@given(st.randoms(use_true_random=False), st.sampled_from([2, 3]))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_no_schedule_commits_what_does_not_belong_together(random, size):
    asyncio.run(play(random, size))


def test_schedules_do_commit():
    worlds = [asyncio.run(play(Random(seed), 2)) for seed in range(20)]  # noqa: S311 - a schedule, no secret
    assert sum(len(world.commits()) for world in worlds) >= 10
