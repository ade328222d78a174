import pickle

from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.evidence import Seen
from podferry.sidecar.checkpoint.detect.history import SaveHistory
from podferry.sidecar.checkpoint.detect.inspection import Inspection
from podferry.sidecar.checkpoint.detect.open_files import OpenFiles


def inspection(root, open_files=None):
    return Inspection(root, SaveHistory(), open_files, whole=True)


def candidate(root, name, data):
    (root / name).write_bytes(data)
    return scan_checkpoints(root)[1][name.partition(".")[0]]


async def test_a_format_shows_a_defect(tmp_path):
    torn = candidate(tmp_path, "a.pkl", pickle.dumps([1])[:-1])
    assert "no end yet" in await inspection(tmp_path).defect(torn)
    assert await inspection(tmp_path).defect(candidate(tmp_path, "a.pkl", pickle.dumps([1]))) is None


async def test_a_file_that_is_open_for_writing_is_seen(tmp_path):
    looking = inspection(tmp_path, OpenFiles(sees_writers=True))
    raw = candidate(tmp_path, "a.raw", b"1")
    with (tmp_path / "a.raw").open("ab"):
        assert await looking.is_open(raw)
        assert (await looking.gather(raw, Seen())).open == {"a.raw"}
    assert not await looking.is_open(raw)
    assert (await looking.gather(raw, Seen())).unclosed == frozenset()


async def test_without_an_answer_of_the_machine_a_close_must_be_seen(tmp_path):
    looking, raw = inspection(tmp_path), candidate(tmp_path, "a.raw", b"1")
    assert (await looking.gather(raw, Seen())).unclosed == {"a.raw"}
    assert (await looking.gather(raw, Seen(frozenset({"a.raw"})))).unclosed == frozenset()
    assert not await looking.is_open(raw)
