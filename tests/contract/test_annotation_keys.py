import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.annotation_keys import ALL_KEYS, KEYS, STAMPS, known_keys, split_key
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import Completion, DatasetMode, Medium, Shard, Unpack

GOOD: dict[str, dict[str, object]] = {
    "inject": {"true": True, "false": False},
    "dataset": {"s3://b/k": "s3://b/k", " digits ": "digits"},
    "dataset-path": {"/dev/shm/x": "/dev/shm/x", "/data": "/data", "/device": "/device"},
    "dataset-size": {"1Ki": 1024},
    "include": {"*.jpg": ("*.jpg",), "a, b\nc\\,d": ("a", "b", "c\\,d")},
    "exclude": {"draft-*": ("draft-*",)},
    "file-mode": {"0644": 0o644, "400": 0o400, "0777": 0o777, "0644\x1f": 0o644},
    "unpack": {"auto": Unpack.AUTO, "never": Unpack.NEVER, " always": Unpack.ALWAYS},
    "shard": {"0/1": Shard(0, 1), "3/4": Shard(3, 4)},
    "medium": {"memory": Medium.MEMORY, "disk": Medium.DISK, "auto": Medium.AUTO},
    "mode": {"copy": DatasetMode.COPY, "share": DatasetMode.SHARE, "image": DatasetMode.IMAGE},
    "checkpoints": {"s3://b/c/": "s3://b/c", "/mnt/c": "file:///mnt/c"},
    "checkpoint-path": {"/work/ckpt": "/work/ckpt"},
    "checkpoint-size": {"2Gi": 2 * 1024**3},
    "keep-local": {"0": 0, "3": 3},
    "keep-remote": {"1": 1, "20": 20},
    "restore": {
        "auto": "auto",
        "never": "never",
        "epoch1/last.pt": "epoch1/last.pt",
        "s3://b/c/": "s3://b/c",
        "https://h/c": "https://h/c",
        "/c": "file:///c",
    },
    "complete": {"auto": Completion.AUTO, "marked": Completion.MARKED, " auto ": Completion.AUTO},
    "upload-limit": {"50Mi": 50 * 1024**2},
    "lineage": {"team.digits": "team.digits"},
    "world": {"1": 1, " 8 ": 8, "8\x1f": 8},
    "outputs": {"s3://b/o/": "s3://b/o", "/mnt/o": "file:///mnt/o"},
    "output-path": {"/work/runs": "/work/runs"},
    "output-size": {"1Gi": 1024**3},
    "outputs-every": {"30s": 30, "5m": 300},
    "secret": {"s3-reader": "s3-reader", "a.b": "a.b"},
    "endpoint": {
        "https://s3.example.org": "https://s3.example.org",
        "http://[::1]:9000/": "http://[::1]:9000",
    },
    "region": {"eu-central-1": "eu-central-1", "cn-bj": "cn-bj"},
    "shm-size": {"8Gi": 8 * 1024**3},
    "grace": {"10m": 600},
    "container": {"main": "main"},
}
BAD = {
    "inject": ["", "True", "yes"],
    "dataset": ["", " "],
    "dataset-path": ["", "data", "/", "/dev", "/dev/shm", "/dev/x", "/proc", "/proc/1", "/sys/fs", "/a/../b"],
    "dataset-size": ["0", "-1", "14GB", "", "1e30"],
    "include": ["", " , ", "!a", "{a,b}", "[a", "../a"],
    "exclude": ["", "/", "a\\"],
    "file-mode": ["", "0200", "0377", "1777", "04644", "0o644", "rw-r--r--", "888", "64"],
    "unpack": ["", "Auto", "true", "tar"],
    "shard": ["", "true", "1", "1/1", "4/4", "-1/4", "0/0", "1/2/3", "$(rank)/4"],
    "medium": ["", "Memory", "tmpfs", "ssd"],
    "mode": ["", "Copy", "mount", "0644"],
    "checkpoints": ["", "runs", "s3://b/c#x", "s3://b#x", "s3://b/c?x=1", "http://h/c", "https://h/c"],
    "checkpoint-path": ["/a//b", "/a/", "//a", "/a:b", "/a\nb", "/./a"],
    "checkpoint-size": ["0"],
    "keep-local": ["-1", "1.5", "", "one", "1e3"],
    "keep-remote": ["0", "-1", "", "all"],
    "restore": ["", "Auto", "../x", "a//b", "s3:///x", "s3://b/c#x"],
    "complete": ["", "Auto", "done", "never"],
    "upload-limit": ["0", "", "fast", "50MB/s"],
    "lineage": ["", ".x", "a/b", "A"],
    "world": ["0", "-1", "", "two", "9" * 20],
    "outputs": ["", "runs", "s3://b/o#x", "http://h/o"],
    "output-path": ["runs", "/", "/dev/shm", "/a/../b"],
    "output-size": ["0", "1GB"],
    "outputs-every": ["0", "-3", "often"],
    "secret": ["", "A", "a/b", "-a", "a..b", "a" * 254],
    "endpoint": ["s3.example.org", "ftp://x", "https://", "https://u:p@x", "https://x?y=1", "https://x y"],
    "region": ["", "eu central", "-eu", "eu/1"],
    "shm-size": ["x"],
    "grace": ["0", "-3", "soon"],
    "container": ["", "Main", "a.b", "a" * 64],
}


def base(name: str) -> str:
    """The key whose parser a per-direction key shares."""
    return name if name in GOOD else name.partition("-")[2]


@pytest.mark.parametrize("name", KEYS)
def test_every_key_reads_good_values(name: str) -> None:
    for text, value in GOOD[base(name)].items():
        assert KEYS[name].parse(text) == value


@pytest.mark.parametrize("name", KEYS)
def test_every_key_refuses_bad_values_with_a_remedy(name: str) -> None:
    for text in BAD[base(name)]:
        with pytest.raises(InvalidSpec) as caught:
            KEYS[name].parse(text)
        assert all(problem.what and problem.measured and problem.remedy for problem in caught.value.problems)


@pytest.mark.parametrize("name", KEYS)
@given(text=st.text(max_size=20))
def test_any_text_is_read_or_refused(name: str, text: str) -> None:
    try:
        again = KEYS[name].parse(text)
    except InvalidSpec:
        return
    if isinstance(again, str):
        assert KEYS[name].parse(again) == again


@pytest.mark.parametrize(
    ("full", "key", "name"),
    [("include", "include", ""), ("include.train", "include", "train"), ("a.b.c", "a", "b.c"), ("", "", "")],
)
def test_a_key_is_split_at_its_first_dot(full: str, key: str, name: str) -> None:
    assert split_key(full) == (key, name)


def test_only_dataset_keys_take_a_name() -> None:
    known = known_keys(["dataset.train", "grace.val", "include.No", "medium.test-2", "colour"])
    named = [full for full in known if "." in full]
    assert {name for _, name in map(split_key, named)} == {"train", "val", "test-2"}
    assert {key for key, _ in map(split_key, named)} == {key.name for key in ALL_KEYS if key.per_dataset}
    assert [full for full in known if full.startswith("shard")] == [
        "shard",
        "shard.test-2",
        "shard.train",
        "shard.val",
    ]
    assert set(KEYS) <= set(known)


def test_the_table_is_complete() -> None:
    assert len(KEYS) == len(ALL_KEYS)
    assert not STAMPS & set(KEYS)
    for key in ALL_KEYS:
        assert key.annotation == f"podferry.io/{key.name}"
        assert key.help
        assert "\n" not in key.help
        assert not key.help.endswith(".")
        assert key.default
