def test_its_verbs(podferry):
    said = podferry("cache", "--help")
    assert said.code == 0
    assert "serve" in said.out
