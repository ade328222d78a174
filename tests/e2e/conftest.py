"""The site for the session, a namespace for a test; a failed test shows the output of kubectl."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from podferry.components.cluster_job.job_kind import PADDLE_JOB
from tests.cluster.cluster import Cluster
from tests.cluster.files import locked
from tests.cluster.layout import BASE_IMAGE, Layout
from tests.cluster.process import patient, wait_until
from tests.e2e.custom_resources import defined
from tests.e2e.figures import Figures
from tests.e2e.job_controllers import paddle_job_definition, published, trainer_of, training_runtime
from tests.e2e.job_steps import Steps
from tests.e2e.manifests import IMAGE_OF_1000
from tests.e2e.namespace import Namespace
from tests.e2e.site import RESTRICTED, Site, site_of

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in (item for item in items if HERE in item.path.parents):
        if item.get_closest_marker("two_nodes") is None:  # these have a cluster and a command of their own
            item.add_marker(pytest.mark.e2e)
        # Fixtures do not count: the first run builds Kubernetes, an S3 server and images, in minutes.
        item.add_marker(pytest.mark.timeout(patient(180), func_only=True))


@pytest.fixture(scope="session")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A cluster with podferry and a bucket. Its start is shown: the first one on a machine takes long."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    with ExitStack() as stack:
        with capture.global_and_fixture_disabled():
            # Two runs on one cluster would change podferry and its webhook under each other.
            stack.enter_context(locked(Layout.of().tests_lock))
            made = stack.enter_context(site_of(Cluster(), tmp_path_factory.mktemp("bucket")))
        yield made


@pytest.fixture
def namespace(site: Site) -> Iterator[Namespace]:
    """A fresh namespace."""
    with site.namespace() as made:
        yield made


@pytest.fixture
def restricted(site: Site) -> Iterator[Namespace]:
    """A fresh namespace that enforces restricted Pod Security."""
    with site.namespace(RESTRICTED) as made:
        yield made


@pytest.fixture(scope="session")
def image_of_1000(site: Site, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build `IMAGE_OF_1000`."""
    context = tmp_path_factory.mktemp("image")
    (context / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nUSER 1000:1000\n")
    site.cluster.build_image(IMAGE_OF_1000, context / "Dockerfile", context)


@pytest.fixture(scope="module")
def trainer(site: Site) -> Iterator[None]:
    """The definitions of Kubeflow Trainer, while a module's tests run."""
    with trainer_of(site.cluster, "2.2.0", training_runtime(BASE_IMAGE)):
        yield


@pytest.fixture(scope="module")
def paddle(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The definition of PaddleJobs, while a module's tests run."""
    file = tmp_path_factory.mktemp("crd") / "batch.paddlepaddle.org_paddlejobs.yaml"
    file.write_text(json.dumps(paddle_job_definition()))
    with defined(site.cluster, [file]):
        wait_until(
            "the schema to be published", lambda: published(site.cluster, PADDLE_JOB), 60, interval=0.5
        )
        yield


@pytest.fixture
def steps(namespace: Namespace, tmp_path: Path) -> Steps:
    """Runs steps in a namespace, with the Role that they need."""
    made = Steps(namespace, tmp_path)
    made.allow()
    return made


FIGURES = Figures()


@pytest.fixture(scope="session")
def figures() -> Figures:
    """Takes what tests measure; printed at the end."""
    return FIGURES


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for line in FIGURES.lines():
        terminalreporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fixtures: dict[str, object] = getattr(item, "funcargs", {})
    for site in (one for one in fixtures.values() if isinstance(one, Site)):
        if report.failed:
            for namespace in site.namespaces:
                site.gather(namespace)
            report.sections.append(("pods", "\n".join(site.evidence)))
        site.evidence.clear()
    return report
