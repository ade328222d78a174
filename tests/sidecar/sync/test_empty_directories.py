from podferry.sidecar.sync.empty_directories import remove_empty_directories


def test_empty_directories_go_and_what_has_a_file_stays(tmp_path):
    for folder in ("a/b/c", "d/e", "f"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "d/file").write_text("x")
    (tmp_path / "g").write_text("x")
    remove_empty_directories(tmp_path, ["a", "d", "g", "missing"])
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        "d",
        "d/file",
        "f",
        "g",
    ]
