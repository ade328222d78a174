from faults.log import Log


def test_another_run_knows_what_the_first_has_done(tmp_path):
    Log(tmp_path / "log").add({"seed": 7, "fired": {"500": 2}})
    again = Log(tmp_path / "log")
    again.add({"seed": 8, "fired": {}})
    assert list(Log(tmp_path / "log").records) == [7, 8]
    assert again.records[7]["fired"] == {"500": 2}


def test_a_line_that_is_half_written_is_played_again(tmp_path):
    log = tmp_path / "log"
    log.write_bytes(b'{"seed": 7}\n{"se')
    again = Log(log)
    assert list(again.records) == [7]
    again.add({"seed": 8})
    assert list(Log(log).records) == [7, 8]
