"""When an episode counts a drain as undisturbed."""

import threading

import pytest

from faults.episode import Episode
from faults.plan import Fault, plan
from faults.rules import Rules
from faults.scene import Scene


class Family:
    def __init__(self, *roles):
        self.roles = roles

    def find(self):
        return dict.fromkeys(self.roles, 1)


class Pod:
    number = 1

    def __init__(self, *roles):
        self.family, self.deleted = Family(*roles), False

    def delete(self):
        self.deleted = True


@pytest.fixture
def episode(tmp_path):
    made = plan(1, ["numpy_savez"])
    scene = Scene(
        made, tmp_path / "python", "s3://b/1", "http://127.0.0.1:1", {}, tmp_path, threading.Event()
    )
    episode = Episode(scene, Rules(1), None, checks=True)
    episode._deleted = 0.0
    return episode


def deleted(episode, pod):
    episode._fire(pod, 1.0)
    assert pod.deleted
    return episode


def test_an_undisturbed_delete_is_calm(episode):
    pod = Pod("launcher", "supervisor", "worker", "trainer")
    assert deleted(episode, pod)._calm(pod)


def test_a_worker_that_is_restarting_drains_too(episode):
    pod = Pod("launcher", "supervisor", "trainer")
    assert deleted(episode, pod)._calm(pod)


def test_without_an_agent_nothing_can_be_drained(episode):
    pod = Pod("launcher", "trainer")
    assert not deleted(episode, pod)._calm(pod)


def test_a_fault_after_the_delete_ends_the_calm(episode):
    pod = Pod("supervisor")
    deleted(episode, pod)
    episode._rules.hits[Fault("500", save=1)] += 1
    assert not episode._calm(pod)
