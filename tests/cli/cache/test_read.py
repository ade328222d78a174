"""`podferry cache read` from `podferry cache serve --shared`, with the mounts of a node."""

import os
import subprocess
import sys

import pytest

from faults.pod import unshared
from tests.support.patience import PATIENCE

MOUNTS = """set -e
cd {place}; mkdir stage read
mount -t tmpfs -o size=64m,mode=0755,nosuid,nodev podferry stage
mount --bind stage read; mount -o remount,bind,ro read
trap 'kill $(jobs -p) 2> /dev/null' EXIT
serve() {{
  {python} -m podferry cache serve ../source stage/set --shared read/set --port 0 2> log & holder=$!
  until grep -q "$1" log; do sleep 0.1; done
}}
read_set() {{ {python} -m podferry cache read read/set "$@"; }}
"""
ATTACKS = """
cd "$PODFERRY_DATASET"
lock=$(find -L /proc/self/fd -inum $(ls -i {place}/stage/set.podferry/readers | awk '{{print $1}}') | head -1)
for attack in 'touch new' 'echo x >> b' 'rm b' 'truncate -s 0 b' 'mv b c' 'chmod 777 b' 'rm ../holder.sock' \
              "echo x > $lock"; do
  if sh -c "$attack" 2>> {place}/said; then echo "possible: $attack"; fi
done
flock -n -x ../dataset.json flock -n -x . flock -n -x b true
"""


@pytest.fixture
def on_a_node(tmp_path):
    """Runs a script where the mounts of a node are."""
    private = unshared()
    if not private:
        pytest.skip("this machine does not permit mounts")
    (tmp_path / "node").mkdir()
    (tmp_path / "source").mkdir()
    (tmp_path / "source/b").write_bytes(os.urandom(100_000))

    def run(script):
        begin = MOUNTS.format(place=tmp_path / "node", python=sys.executable)
        words = [*private, "bash", "-c", begin + script]
        return subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)

    return run


def test_a_command_reads_in_place_and_can_change_nothing(on_a_node, tmp_path):
    (tmp_path / "attacks.sh").write_text(ATTACKS.format(place=tmp_path / "node"))
    said = on_a_node(f"""
        serve 'dataset complete'
        read_set -- cmp ../source/b read/set/files/b
        read_set sh {tmp_path}/attacks.sh
        read_set -- cmp ../source/b read/set/files/b
        kill $holder
    """)
    assert (said.returncode, said.stdout) == (0, ""), said.stderr
    refusals = (tmp_path / "node/said").read_text()
    assert refusals.count("Read-only file system") == 8, refusals


def test_the_next_holder_has_it_at_once_and_sees_the_reader(on_a_node):
    said = on_a_node("""
        serve 'dataset complete'
        read_set -- sh -c 'touch reading; until [ -e end ]; do sleep 0.1; done' &
        reader=$!
        while [ ! -e reading ]; do sleep 0.1; done
        kill -9 $holder
        rm ../source/b
        read_set -- test -s read/set/files/b
        serve 'dataset adopted'
        read_set -- test -s read/set/files/b
        flock -n stage/set.podferry/readers/* true && echo unlocked
        touch end
        wait $reader
        kill $holder
    """)
    assert (said.returncode, said.stdout) == (0, ""), said.stderr
    assert "read as it was left" in said.stderr


def test_a_command_keeps_its_version(on_a_node):
    said = on_a_node("""
        serve 'dataset complete'
        cp ../source/b before; echo b > names
        read_set -- sh -c 'touch reading; until [ -e end ]; do sleep 0.1; done
          cmp before "$PODFERRY_DATASET/b"; sh -c "ls $PODFERRY_DATASET/" | cmp - names' &
        reader=$!
        while [ ! -e reading ]; do sleep 0.1; done
        echo changed > ../source/b
        port=$(grep -o '127.0.0.1:[0-9]*' log | head -1 | cut -d : -f 2)
        exec 3<> /dev/tcp/127.0.0.1/$port
        printf 'POST /v1/refresh?uri=file://%s HTTP/1.1\\r\\nHost: h\\r\\nConnection: close\\r\\n\\r\\n' \\
          "$(realpath ../source)" >&3
        cat <&3 > /dev/null
        until grep -q 'another version' log; do sleep 0.1; done
        read_set -- grep -q changed read/set/files/b
        touch end
        wait $reader
        kill $holder
    """)
    assert (said.returncode, said.stdout) == (0, ""), said.stderr


def test_a_place_without_mounts_is_refused(podferry, tmp_path):
    (tmp_path / "source").mkdir()
    said = podferry("cache", "serve", tmp_path / "source", tmp_path / "set", "--shared", tmp_path / "x/set")
    assert said.code == 78
    assert "mount " in said.err


def test_without_a_holder_nothing_is_run(podferry, tmp_path, monkeypatch):
    monkeypatch.setattr("podferry.cli.cache.read.START_SECONDS", 0)
    said = podferry("cache", "read", tmp_path, "--", "true")
    assert said.code == 1
    assert "no holder that responds" in said.err


def test_waiting_for_a_holder_is_said_in_words(tmp_path):
    program = (
        "import sys; from podferry.cli.cache import read; from podferry.cli.main import main\n"
        f"read.START_SECONDS = 0.5; sys.exit(main(['cache', 'read', {str(tmp_path)!r}, 'true']))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "stamina" not in done.stdout + done.stderr
    assert done.stderr.startswith("podferry: ")
