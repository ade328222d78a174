import subprocess
import sys

import pytest


def test_its_verbs(podferry):
    said = podferry("cache", "--help")
    assert said.code == 0
    for verb in ("create", "delete", "job", "ls", "rmr", "serve", "status", "sync"):
        assert f"\n  {verb} " in said.out


def test_ls_is_status(podferry, api):
    said = podferry("cache", "ls", "--kubeconfig", api.kubeconfig)
    assert (said.code, len(said.out.splitlines())) == (0, 3)
    assert said.out.startswith("NAME")


@pytest.mark.parametrize("verb", ["serve", "read"])
def test_a_holder_and_its_readers_load_no_other_verb(verb):
    words = ["cache", verb, "--help"]
    code = f"import sys; from podferry.cli.main import main; main({words}); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = done.stdout.splitlines()[-1].split()
    assert f"podferry.cli.cache.{verb}" in loaded
    assert not {"podferry.cli.cache.create", "podferry.cli.cache.status", "podferry.cli.live_cluster"} & set(
        loaded
    )


def test_an_unknown_verb_is_named(podferry):
    said = podferry("cache", "statu")
    assert (said.code, "statu" in said.err) == (2, True)
