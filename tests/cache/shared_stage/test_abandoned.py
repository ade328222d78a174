import os

from podferry.cache.shared_stage.abandoned import free_oldest
from podferry.cache.shared_stage.place import SharedPlace
from podferry.cache.shared_stage.reader_locks import ReaderLocks
from podferry.sidecar.runtime.file_lock import release


def stage(root, name, age=0):
    place = SharedPlace(root / name, root / name)
    lock = place.claim()
    (place.files / "data").write_bytes(b"data")
    os.utime(place.private, (1000 - age, 1000 - age))
    return place, lock


def names(root):
    return sorted(path.name for path in root.iterdir())


def test_the_oldest_goes_first(tmp_path):
    for name, age in (("new", 1), ("old", 3), ("middle", 2)):
        release(stage(tmp_path, name, age)[1])
    left = []
    while free_oldest(tmp_path):
        left.append([name for name in names(tmp_path) if "." not in name])
    assert left == [["middle", "new"], ["new"], []]
    assert names(tmp_path) == []


def test_one_with_a_holder_or_a_reader_stays(tmp_path):
    place, held = stage(tmp_path, "held")
    read, lock = stage(tmp_path, "read")
    release(lock)
    reader = ReaderLocks(read).make(0)
    assert not free_oldest(tmp_path)
    os.close(reader)
    assert free_oldest(tmp_path)
    assert not free_oldest(tmp_path)
    assert (place.files / "data").exists()
    release(held)
