import json


def test_a_line_for_each_check(podferry, tmp_path):
    (tmp_path / "a").write_bytes(b"0123456789")
    said = podferry("doctor", str(tmp_path), "--write")
    assert (said.code, said.err) == (0, "")
    assert [line.split()[:2] for line in said.out.splitlines()][:3] == [
        ["ok", "engine"],
        ["ok", "list"],
        ["ok", "read"],
    ]
    assert "ok       exclusive commit  1 of 8 writers" in said.out
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_is_the_exit_code_and_has_a_remedy(podferry):
    said = podferry("doctor", "s4://bucket/x")
    assert (said.code, said.err) == (1, "")
    assert said.out.startswith("failed   engine            no engine opens s4://")
    assert "Did you mean 's3'?" in said.out


def test_as_json(podferry, tmp_path):
    found = json.loads(podferry("doctor", str(tmp_path), "-o", "json").out)
    assert [one["outcome"] for one in found if one["check"] == "list"] == ["limited"]
    assert set(found[0]) == {"check", "outcome", "measured", "remedy"}
