"""The harness's own logic, without a cluster: what it chooses, renders, refuses and never kills."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import tarfile
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest

from tests.cluster import build, components, configs, packages
from tests.cluster.archive import docker_archive
from tests.cluster.cluster import Cluster, choose, documents
from tests.cluster.existing import ExistingCluster
from tests.cluster.files import write_atomically
from tests.cluster.image import Recipe, outdated, pip_config
from tests.cluster.kind import Kind
from tests.cluster.layout import GATEWAY, PODS, Layout, on_overlay
from tests.cluster.node import Node
from tests.cluster.process import OWNER, ClusterError, ProcessId, owned, run, wait_until


class Tools:
    """Fake programs with scripted answers that record their calls. Nothing else is on PATH."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._calls = directory / "calls"

    def install(self, name: str, *answers: tuple[str, str], status: int = 0) -> None:
        """Make `name` print an answer if its arguments begin with its words, otherwise exit with `status`."""
        cases = "".join(f"{words!r}*) echo {text!r}; exit 0 ;;\n" for words, text in answers)
        script = f'#!/bin/sh\necho "{name} $*" >> {self._calls}\ncase "$*" in\n{cases}esac\nexit {status}\n'
        program = self._directory / name
        program.write_text(script)
        program.chmod(0o755)

    @property
    def calls(self) -> list[str]:
        return self._calls.read_text().splitlines() if self._calls.exists() else []


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    return Tools(directory)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    return Layout("trial", tmp_path / "cache")


def test_a_kubeconfig_takes_precedence(tools: Tools) -> None:
    tools.install("docker")
    backend = choose({"KUBECONFIG": "/a/config:/b/config"})
    assert isinstance(backend, ExistingCluster)
    assert backend.kubeconfig == Path("/a/config")


def test_kind_is_used_if_docker_responds(tools: Tools) -> None:
    tools.install("docker")
    assert isinstance(choose({}), Kind)


def test_our_own_node_is_used_without_docker(tools: Tools) -> None:
    assert isinstance(choose({}), Node)
    tools.install("docker", status=1)
    assert isinstance(choose({}), Node)


def test_kind_creates_a_cluster_and_puts_its_kubeconfig_in_the_state(tools: Tools, layout: Layout) -> None:
    tools.install("kind", ("get clusters", "somebody-elses"))
    Kind(layout).up()
    options = f"--name trial --kubeconfig {layout.kubeconfig} --wait 180s"
    assert tools.calls[-1] == f"kind create cluster {options}"


def test_kind_reuses_a_cluster_that_responds(tools: Tools, layout: Layout) -> None:
    tools.install("kind", ("get clusters", "trial"))
    tools.install("kubectl", (f"--kubeconfig {layout.kubeconfig} get --raw /readyz", "ok"))
    Kind(layout).up()
    assert not [call for call in tools.calls if "create" in call]


def test_kind_replaces_a_cluster_that_does_not_respond(tools: Tools, layout: Layout) -> None:
    tools.install("kind", ("get clusters", "trial"))
    tools.install("kubectl", status=1)
    Kind(layout).up()
    verbs = [call.split()[1] for call in tools.calls if call.startswith("kind ")]
    assert verbs == ["get", "export", "delete", "create"]


def test_kind_builds_with_docker_and_loads_by_name(tools: Tools, layout: Layout, tmp_path: Path) -> None:
    tools.install("docker")
    tools.install("kind")
    recipe = Recipe("localhost/agent:1", tmp_path / "Dockerfile", tmp_path, {"EXTRA": "s3"})
    Kind(layout).build_image(recipe)
    built, loaded = tools.calls
    assert built.startswith("docker build --build-arg=BASE=python:3.11-slim-bookworm --build-arg=EXTRA=s3 ")
    assert loaded == "kind load docker-image localhost/agent:1 --name trial"


def test_kind_gives_pods_the_ipv4_gateway(tools: Tools, layout: Layout) -> None:
    tools.install("docker", ("network inspect kind", "fc00:f853:ccd:e793::1 172.18.0.1"))
    assert Kind(layout).host_address == "172.18.0.1"


def test_an_existing_cluster_that_does_not_respond_is_reported(tools: Tools) -> None:
    tools.install("kubectl", status=1)
    with pytest.raises(ClusterError, match="KUBECONFIG does not answer"):
        Cluster(ExistingCluster(Path("config"))).up()


def test_an_existing_cluster_is_not_changed(tools: Tools) -> None:
    tools.install("kubectl", ("get --raw /readyz", "ok"))
    existing = Cluster(ExistingCluster(Path("config")))
    existing.up()
    existing.down()
    assert tools.calls == ["kubectl get --raw /readyz"]
    with pytest.raises(ClusterError, match="push the image to a registry"):
        existing.load_image(Path("image.tar"))


def test_an_existing_cluster_needs_the_host_address(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ClusterError, match="PODFERRY_HOST_ADDRESS"):
        _ = ExistingCluster(Path("config")).host_address
    monkeypatch.setenv("PODFERRY_HOST_ADDRESS", "192.0.2.7")
    assert ExistingCluster(Path("config")).host_address == "192.0.2.7"


@pytest.mark.parametrize("name", ["", "A", "a/b", "-a", "a-", "a" * 33, ".."])
def test_names_that_could_not_be_paths_or_cgroups_are_refused(name: str) -> None:
    if name:
        with pytest.raises(ClusterError, match="cannot name a cluster"):
            Layout.of({}, name)
    else:
        assert Layout.of({}, name).name == "podferry"


def test_a_cluster_of_several_nodes_has_another_name() -> None:
    assert Layout.of({}, nodes=2).name == "podferry-2-nodes"
    assert Layout.of({"PODFERRY_CLUSTER": "mine"}, nodes=2).name == "mine"
    for count in (0, 17):
        with pytest.raises(ClusterError, match="use 1 to 16"):
            Layout.of({}, nodes=count)


def test_nodes_have_addresses_and_paths_of_their_own(layout: Layout) -> None:
    nodes = Layout("trial", layout.cache, 16).members
    for values in (
        [node.gateway for node in nodes],
        [node.pods for node in nodes],
        [node.bridge for node in nodes],
        [node.cgroup for node in nodes],
        [node.containerd_socket for node in nodes],
    ):
        assert len(set(values)) == 16
    assert nodes[0].gateway == GATEWAY
    subnets = [ip_network(node.pods) for node in nodes]
    assert all(ip_address(node.gateway) in subnet for node, subnet in zip(nodes, subnets, strict=True))
    assert not any(one.overlaps(two) for one, two in itertools.combinations(subnets, 2))
    assert all(subnet.subnet_of(ip_network(PODS)) for subnet in subnets)


def test_nodes_that_do_not_take_pods_do_not_count(tools: Tools) -> None:
    taint = {"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}
    new = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    specs = {"a": {}, "b": {"taints": [taint]}, "c": {"unschedulable": True}, "d": {"taints": [new]}}
    items = [{"metadata": {"name": name}, "spec": spec} for name, spec in specs.items()]
    tools.install("kubectl", ("get nodes", json.dumps({"items": items})))
    cluster = Cluster(ExistingCluster(Path("config")))
    assert cluster.require_nodes(2) == ["a", "d"]
    with pytest.raises(ClusterError, match="has 2 nodes for pods, not 3"):
        cluster.require_nodes(3)


def test_the_cache_follows_xdg() -> None:
    assert Layout.of({"XDG_CACHE_HOME": "/data/cache"}).cache == Path("/data/cache/podferry")
    assert (
        Layout.of({"PODFERRY_CLUSTER": "two"}).state == Path.home().resolve() / ".cache/podferry/clusters/two"
    )


@pytest.mark.parametrize(("cache", "why"), [("/home/" + "x" * 90, "too long"), ("/var/lib/jenkins", "hides")])
def test_unusable_cache_paths_are_refused(cache: str, why: str) -> None:
    with pytest.raises(ClusterError, match=why):
        Layout("trial", Path(cache)).check()


def test_no_cluster_says_how_to_get_one(layout: Layout, tmp_path: Path) -> None:
    cluster = Cluster(Node(layout))
    for use in (
        lambda: cluster.kubectl("get", "nodes"),
        lambda: cluster.load_image(tmp_path),
        lambda: cluster.build_image("localhost/a:1", tmp_path, tmp_path),
    ):
        with pytest.raises(ClusterError, match=r"python -m tests\.cluster up"):
            use()


def test_down_without_a_cluster_does_nothing(layout: Layout) -> None:
    Node(layout).down()
    assert not layout.cache.exists()


def test_root_is_needed_for_up_but_not_for_an_empty_down(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    Node(layout).down()
    with pytest.raises(ClusterError, match="run as root, start Docker, or set KUBECONFIG"):
        Node(layout).up()


def test_missing_packages_are_all_named(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    needs = {"sh": "dash", "no-such-tool": "one", "/no/such/file": "two", "nor-this": "one"}
    with pytest.raises(ClusterError, match="no apt-get to install them: one, two"):
        packages.ensure(needs)
    tools.install("apt-get")
    with pytest.raises(ClusterError, match="as root, run: apt-get install one two"):
        packages.ensure(needs)


def test_missing_packages_are_installed_as_root(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    tools.install("apt-get")
    with pytest.raises(ClusterError, match="not to be found: one"):
        packages.ensure({"no-such-tool": "one"})
    assert tools.calls == [
        f"apt-get {packages.WAITS} update -q",
        f"apt-get {packages.WAITS} install -y -q --no-install-recommends one",
    ]


def test_without_go_the_alternatives_are_named(tools: Tools, layout: Layout) -> None:
    with pytest.raises(ClusterError, match="neither KUBECONFIG, nor a Docker engine, nor Go"):
        build.kubernetes(layout.cache)
    tools.install("go", ("env GOVERSION", "go1.19.8 linux amd64"))
    with pytest.raises(ClusterError, match=r"Go 1\.24 or later is needed, this is go1\.19\.8"):
        build.kubernetes(layout.cache)


def test_builds_are_cached_by_sources_and_go_version(tools: Tools, layout: Layout) -> None:
    tools.install("go", ("env GOVERSION", "go1.26.8 linux amd64"))
    key = build.source_key()
    (layout.cache / f"kubernetes-{key}").mkdir(parents=True)
    assert build.kubernetes(layout.cache).name == f"kubernetes-{key}"
    tools.install("go", ("env GOVERSION", "go1.27 linux amd64"))
    assert build.source_key() != key


@pytest.mark.parametrize("tag", ["agent:1", "localhost/agent", "docker.io/library/agent:1", "localhost/:1"])
def test_tags_that_the_kubelet_would_read_differently_are_refused(tag: str, tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="localhost/NAME:VERSION"):
        Recipe(tag, tmp_path, tmp_path, {})


def test_a_build_gets_the_package_index_but_no_paths() -> None:
    listed = """\
:env:.cert='/home/me/ca.pem'
:env:.find-links='/opt/wheels'
:env:.index-url='https://mirror.example/simple'
global.index-url='https://old.example/simple'
global.default-timeout='180'
install.user='true'
"""
    lines = pip_config(listed).splitlines()
    assert lines == [
        "[global]",
        "cert = /etc/ssl/certs/ca-certificates.crt",
        "index-url = https://mirror.example/simple",
        "timeout = 180",
    ]


def test_images_are_outdated_after_a_day_and_the_oldest_go_first() -> None:
    lines = [f"id{day}  2026-11-{day:02} 03:28:29.041097539 +0000 UTC" for day in range(1, 13)]
    now = datetime(2026, 11, 12, 4, tzinfo=UTC)
    assert outdated("\n".join(lines), now) == ["id1", "id2", "id3", "id4", "id5"]
    assert outdated("\n".join(lines[9:]) + "\n", now) == ["id10", "id11"]
    assert outdated("\n", now) == []


def test_an_images_layer_is_named_by_its_content(tmp_path: Path) -> None:
    rootfs, archive = tmp_path / "rootfs.tar", tmp_path / "image.tar"
    rootfs.write_bytes(b"layer")
    docker_archive(rootfs, archive, "localhost/x:1", {"Cmd": ["sh"]})
    with tarfile.open(archive) as tar:
        contents = {member.name: tar.extractfile(member) for member in tar}
        files = {name: file.read() for name, file in contents.items() if file}
    [entry] = json.loads(files["manifest.json"])
    described = json.loads(files[entry["Config"]])
    assert entry["RepoTags"] == ["localhost/x:1"]
    assert entry["Config"] == hashlib.sha256(files[entry["Config"]]).hexdigest() + ".json"
    assert files[entry["Layers"][0]] == b"layer"
    assert described["rootfs"]["diff_ids"] == [f"sha256:{hashlib.sha256(b'layer').hexdigest()}"]
    assert len(described["history"]) == len(entry["Layers"])


def test_a_process_is_distinguished_from_another_with_the_same_pid() -> None:
    with subprocess.Popen(["sleep", "60"]) as process:
        identity = ProcessId.of(process.pid)
        assert identity
        earlier = ProcessId(identity.pid, identity.started - 1, identity.boot)
        earlier.kill()
        assert process.poll() is None
        identity.kill()
        assert not identity.alive  # although it is still a zombie
        assert process.wait() == -9
    identity.kill()
    assert ProcessId.of(process.pid) is None


def test_a_record_outlives_its_writer(tmp_path: Path) -> None:
    identity = ProcessId.of(os.getpid())
    assert identity
    assert ProcessId.load(tmp_path / "record") is None
    identity.save(tmp_path / "record")
    loaded = ProcessId.load(tmp_path / "record")
    assert loaded == identity
    assert loaded.alive


def test_processes_are_found_by_their_variable(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], env={**os.environ, OWNER: str(tmp_path)}) as process:
        # The variable is there once the program runs; until then it is this process's copy.
        wait_until("sleep to run", lambda: owned(str(tmp_path)), 10)
        assert [found.pid for found in owned(str(tmp_path))] == [process.pid]
        assert owned(str(tmp_path.parent)) == []
        process.kill()


def test_a_failed_command_shows_the_end_of_its_output() -> None:
    with pytest.raises(ClusterError, match=r"exit status 3\n    one\n    two"):
        run(["sh", "-c", "echo one; echo two >&2; exit 3"])
    with pytest.raises(ClusterError, match="sleep 60: not done after 0 s"):
        run(["sleep", "60"], timeout=0.05)
    with pytest.raises(ClusterError, match="no-such-tool is not installed"):
        run(["no-such-tool"])


def test_waiting_times_out() -> None:
    answers = iter([None, 0, "", 7])
    assert wait_until("seven", lambda: next(answers), 10, interval=0) == 7
    with pytest.raises(ClusterError, match="gave up waiting for godot after 0 s"):
        wait_until("godot", lambda: None, 0.01, interval=0.001)


def test_a_file_is_written_atomically_and_private(tmp_path: Path) -> None:
    write_atomically(tmp_path / "token", "secret")
    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600


def test_every_user_has_a_token_and_a_kubeconfig(layout: Layout) -> None:
    layout.state.mkdir(parents=True)
    configs.write_all(layout)
    rows = [line.split(",") for line in (layout.state / "tokens.csv").read_text().splitlines()]
    assert len({row[0] for row in rows}) == len(configs.users(layout))
    admin = json.loads(layout.kubeconfig.read_text())
    assert admin["users"][0]["user"]["token"] == rows[0][0]
    assert admin["clusters"][0]["cluster"]["certificate-authority"] == str(layout.api_certificate)


def test_two_kubelets_share_neither_cgroups_nor_logs(layout: Layout) -> None:
    one, two = (configs.kubelet(one.members[0]) for one in (layout, Layout("other", layout.cache)))
    _, three = (configs.kubelet(node) for node in Layout("trial", layout.cache, 2).members)
    for setting in ("cgroupRoot", "podLogsDir", "containerRuntimeEndpoint", "volumePluginDir"):
        assert len({one[setting], two[setting], three[setting]}) == 3


def test_options_are_spelled_as_the_parts_expect(layout: Layout) -> None:
    api_server = components.control_plane(layout, Path("/bin"))[1]
    assert api_server.command[0] == "/bin/kube-apiserver"
    assert {"--enable-aggregator-routing=true", "--secure-port=6443"} <= set(api_server.command)


def test_objects_and_texts_make_one_stream() -> None:
    assert documents(["kind: Pod", {"kind": "Service"}]) == 'kind: Pod\n---\n{"kind": "Service"}'


def test_a_missing_path_is_judged_by_its_parent() -> None:
    assert on_overlay(Path("/proc/none/such")) is False
