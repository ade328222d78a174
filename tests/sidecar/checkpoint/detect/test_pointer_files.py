import pytest

from podferry.sidecar.checkpoint.detect.pointer_files import (
    POINTER_BYTES,
    find_checkpoint_name,
    read_links,
    read_small,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("global_step2", "global_step2"),
        ("1000", "iter_0001000"),
        ("1000\n", "iter_0001000"),
        ('model_checkpoint_path: "ckpt-2"\nall_model_checkpoint_paths: "ckpt-1"\n', "ckpt-2"),
        ('model_checkpoint_path: "/out/ckpt-2"\n', "ckpt-2"),
        ("model_0001.pth", "model_0001"),
        ("global_step22", None),
        ("\ufffd\ufffd", None),
        ("", None),
    ],
)
def test_a_pointer_names_one_checkpoint(text, name):
    names = {"global_step2", "iter_0001000", "ckpt-1", "ckpt-2", "model_0001"}
    assert find_checkpoint_name(text, names) == name


def test_unreadable_small_files_are_left_out(tmp_path):
    (tmp_path / "a").write_bytes(b"\xff1")
    (tmp_path / "b").write_bytes(b"1" * (POINTER_BYTES + 1))
    (tmp_path / "directory").mkdir()
    found = read_small(tmp_path, ["a", "b", "directory", "gone"])
    assert found == {"a": "\ufffd1", "b": "1" * POINTER_BYTES}


def test_links_at_the_top_are_read(tmp_path):
    (tmp_path / "epoch=1.ckpt").touch()
    (tmp_path / "last.ckpt").symlink_to("epoch=1.ckpt")
    (tmp_path / "gone").symlink_to("nowhere")
    assert read_links(tmp_path) == {"gone": "nowhere", "last.ckpt": "epoch=1.ckpt"}
    assert read_links(tmp_path / "gone") == {}
