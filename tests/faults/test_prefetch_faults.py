"""`podferry dataset get` through a faulty proxy: every byte is right, or the error names the object."""

import contextlib
import io
import re
import threading

import pytest

from faults.fetching import (
    AWAY,
    KINDS,
    LONG,
    PODFERRY,
    SECONDS,
    Fetching,
    command,
    dataset,
    is_data,
    mix,
    put,
)
from faults.lies import has_free_range, longer, shorter, without_range
from faults.messages import parse_head
from faults.names import HOST, Names
from faults.plan import MIB, Fault
from faults.pod import unshared
from faults.store import served
from podferry.cli.dataset import get

SMALL = 12
LARGE = 8 * MIB
"""Small files take one request, large ones two."""


@pytest.fixture(scope="module")
def fetching():
    files = dataset(1, SMALL, LARGE)
    with pytest.MonkeyPatch.context() as patch, served_by_any_name(patch) as store:
        put(store.open(), "set 1", files)
        yield Fetching(store, "set 1", files)


def served_by_any_name(patch):
    """Otherwise moto treats the first part of its own name as a bucket."""
    patch.setenv("S3_IGNORE_SUBDOMAIN_BUCKETNAME", "true")
    return served("moto")


def asks_for(name):
    return lambda head: is_data(head) and name in head.target


@pytest.mark.parametrize("kind", KINDS)
def test_two_faults_of_a_kind_are_survived(fetching, tmp_path, kind):
    fault = Fault(kind, pod=1, count=2, part=0.4, seconds=AWAY)
    fetched = fetching(tmp_path / "stage", fault, only=is_data)
    assert fetched.fired[kind] >= 1
    assert (fetched.code, fetched.flaws) == (0, ()), fetched.said


@pytest.mark.parametrize("kind", ["flipped answer", "truncated answer", "length too short"])
def test_an_object_that_always_fails_is_named(fetching, tmp_path, kind):
    fault = Fault(kind, pod=1, count=10**6, part=0.4)
    fetched = fetching(tmp_path / "stage", fault, only=asks_for("large/0.bin"))
    assert fetched.code == 1
    assert fetched.flaws == ()
    assert "large/0.bin" in fetched.said
    assert not (tmp_path / "stage" / "large" / "0.bin").exists()


def test_files_fetched_before_an_error_are_kept(fetching, tmp_path):
    fault = Fault("flipped answer", pod=1, count=10**6, part=0.4)
    assert fetching(tmp_path / "stage", fault, only=asks_for("large/0.bin")).code == 1
    asked = []
    fetched = fetching(
        tmp_path / "stage", only=lambda head: asked.append(head.target) if is_data(head) else False
    )
    assert (fetched.code, fetched.flaws) == (0, ())
    assert len({re.sub(r"\?.*", "", target) for target in asked}) < len(fetching.files)


@pytest.mark.parametrize("seed", range(2))
def test_a_mix_of_faults(fetching, tmp_path, seed):
    fetched = fetching(tmp_path / "stage", *mix(seed))
    assert fetched.flaws == (), fetched.said


@pytest.mark.parametrize("seed", range(2, 4))
def test_a_mix_of_faults_during_data_requests(fetching, tmp_path, seed):
    fetched = fetching(tmp_path / "stage", *mix(seed), only=is_data)
    assert (fetched.code, fetched.flaws) == (0, ()), fetched.said


def test_a_wrong_file_is_noticed(fetching, tmp_path):
    def lying(words, _):
        stage = tmp_path / "stage"
        stage.mkdir()
        (stage / "empty").write_bytes(b"x")
        (stage / "stranger").write_bytes(b"")
        return 0, ""

    flaws = fetching(tmp_path / "stage", run=lying).flaws
    assert "empty is not what was stored" in flaws
    assert "stranger was never stored" in flaws
    assert "d0/0000.bin is missing, and no error names it" in flaws


@pytest.mark.parametrize(
    ("code", "said"), [(1, "podferry: something failed"), (1, "Traceback: set 1"), (None, "")]
)
def test_an_error_without_a_name_is_noticed(fetching, tmp_path, code, said):
    assert len(fetching(tmp_path / "stage", run=lambda *_: (code, said)).flaws) == 1


def test_a_seed_determines_the_mix():
    assert mix(5) == mix(5) != mix(6)
    assert {fault.kind for seed in range(100) for fault in mix(seed)} == set(KINDS)


ANSWER = parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 40\r\nETag: x\r\n\r\n")
ASKED = b"GET /b/o HTTP/1.1\r\nHost: h\r\nRange: bytes=0-9\r\nAuthorization: %s\r\n\r\n"


def test_wrong_lengths():
    assert (longer(ANSWER).length, shorter(ANSWER).length) == (1040, 20)
    assert longer(ANSWER).fields["etag"] == "x"


def test_a_range_is_removed_if_the_signature_allows_it():
    free = parse_head(ASKED % b"AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host;x-amz-date, Signature=s")
    held = parse_head(ASKED % b"AWS4-HMAC-SHA256 Credential=k, SignedHeaders=host;range, Signature=s")
    assert has_free_range(free)
    assert not has_free_range(held)
    assert "range" not in without_range(free).fields
    assert not has_free_range(without_range(free))


KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


class Secret:
    """A mounted Secret, exchanged as Kubernetes does it."""

    def __init__(self, folder, environment):
        self.folder, self.current = folder, ""
        self._keys = {key: environment[key] for key in KEYS}
        folder.mkdir()
        self.exchange("first")
        for name in (*KEYS, "AWS_SESSION_TOKEN"):
            (folder / name).symlink_to(folder / "..data" / name)

    def exchange(self, token):
        real = self.folder / f"..{token}"
        real.mkdir()
        for name, text in {**self._keys, "AWS_SESSION_TOKEN": token}.items():
            (real / name).write_text(text)
        (self.folder / "..new").symlink_to(real)
        (self.folder / "..new").rename(self.folder / "..data")
        self.current = token


def test_credentials_that_expire_in_the_middle_are_read_again(fetching, tmp_path, monkeypatch):
    for place in ("obstore.client", "credentials.refresh"):
        monkeypatch.setattr(f"podferry.storage.{place}.REFRESH_SECONDS", 0.1)
    secret, refused, asked = Secret(tmp_path / "secret", fetching.store.environment), [], []

    def is_stale(head):
        asked.extend([head.target] * is_data(head))
        if len(asked) == SMALL // 2 and secret.current == "first":
            secret.exchange("second")
        stale = head.fields["x-amz-security-token"] != secret.current
        refused.extend([head.target] * stale)
        return stale

    def here(words, environment):
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            return get.main([*words[2:], "--secret-dir", str(secret.folder)]), said.getvalue()

    expired = Fault("expired credentials", pod=1, seconds=LONG)
    fetched = fetching(tmp_path / "stage", expired, only=is_stale, run=here)
    assert refused
    assert (fetched.code, fetched.flaws) == (0, ()), fetched.said


@pytest.fixture
def names(tmp_path):
    if not unshared():
        pytest.skip("this machine does not permit a private hosts file")
    (tmp_path / "etc").mkdir()
    with Names(tmp_path / "etc") as made:
        yield made


def by_name(names, *more):
    """Runs podferry with the endpoint's name instead of its address."""

    def run(words, environment):
        there = [word.replace("//127.0.0.1:", f"//{HOST}:") for word in words]
        return command([*there, *more], environment, names.command(PODFERRY))

    return run


def test_a_name_that_never_resolves_is_reported(fetching, names, tmp_path):
    fetched = fetching(tmp_path / "stage", run=by_name(names))
    assert names.asked(0)
    assert (fetched.code, fetched.flaws) == (1, ()), fetched.said
    assert HOST in fetched.said


def test_a_name_that_stops_resolving_is_survived_or_reported(fetching, names, tmp_path):
    """It stops resolving at the first object, when all connections break, and resolves again later."""
    names.know()
    lost, over = threading.Event(), threading.Event()

    def forget(head):
        if is_data(head) and not lost.is_set():
            names.forget()
            lost.set()
        return lost.is_set()

    def find_again():
        if lost.wait(SECONDS):
            for _ in range(3):
                while not names.asked(0.1) and not over.is_set():
                    pass  # it may continue over connections that are still open
            names.know()

    finder = threading.Thread(target=find_again)
    finder.start()
    fetched = fetching(
        tmp_path / "stage", Fault("lost answer", pod=1, count=SMALL), only=forget, run=by_name(names)
    )
    over.set()
    finder.join()
    assert fetched.flaws == (), fetched.said
