from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.detect.shrinking import NEVER, Shrinking


def scan(root, *names):
    """The checkpoints of a directory that has just these files."""
    there = {one.relative_to(root).as_posix() for one in root.rglob("*") if one.is_file()}
    for name in there - set(names):
        (root / name).unlink()
    for name in set(names) - there:
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_bytes(b"1")
    return scan_checkpoints(root)[1]


def test_a_checkpoint_that_loses_a_file_shrinks(tmp_path):
    shrinking = Shrinking()
    whole, less = scan(tmp_path, "s/a.bin", "s/b.bin"), scan(tmp_path, "s/a.bin")
    shrinking.update({}, whole, 1.0)
    assert shrinking.last("s") == NEVER
    shrinking.update(whole, less, 2.0)
    shrinking.update(less, less, 3.0)
    assert shrinking.last("s") == 2.0


def test_one_that_gains_a_file_does_not(tmp_path):
    shrinking = Shrinking()
    whole, less = scan(tmp_path, "s/a.bin", "s/b.bin"), scan(tmp_path, "s/a.bin")
    shrinking.update(whole, less, 1.0)
    shrinking.update(less, scan(tmp_path, "s/a.bin", "s/c.bin"), 2.0)
    assert shrinking.last("s") == NEVER


def test_one_that_is_gone_is_forgotten(tmp_path):
    shrinking = Shrinking()
    whole, less = scan(tmp_path, "s/a.bin", "s/b.bin"), scan(tmp_path, "s/a.bin")
    shrinking.update(whole, less, 1.0)
    shrinking.update(less, {}, 2.0)
    shrinking.update({}, less, 3.0)
    assert shrinking.last("s") == NEVER
