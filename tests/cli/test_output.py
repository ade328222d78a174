from podferry.storage.memory.store import CONTENTS


def test_a_terminal_folds_and_never_cuts(podferry, digits, monkeypatch):
    name = "very-[bold]-" + "long" * 40
    CONTENTS["digits"].objects[f"v1/{name}"] = b"1"
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("podferry.cli.output.on_terminal", lambda: True)
    out = podferry("dataset", "ls", digits).out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 60
    assert name in "".join(line[10:].strip() for line in out.splitlines())
