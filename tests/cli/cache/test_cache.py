def test_its_verbs(podferry):
    said = podferry("cache", "--help")
    assert said.code == 0
    for verb in ("create", "delete", "job", "ls", "rmr", "serve", "status", "sync"):
        assert f"\n  {verb} " in said.out


def test_ls_is_status(podferry, api):
    said = podferry("cache", "ls", "--kubeconfig", api.kubeconfig)
    assert (said.code, len(said.out.splitlines())) == (0, 3)
    assert said.out.startswith("NAME")
