def test_a_path_may_be_relative_and_hold_a_hash(podferry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d#1").mkdir()
    (tmp_path / "d#1" / "x").write_bytes(b"1")
    said = podferry("dataset", "freeze", "d#1")
    assert said.out.startswith(f"file://{tmp_path}/d%231#sha256=")
    assert podferry("dataset", "ls", said.out.strip()).code == 0
