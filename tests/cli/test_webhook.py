from pathlib import Path

import pytest
from click.testing import CliRunner

from podferry.cli import webhook
from podferry.webhook.cluster.certificate_files import CertificateFiles
from podferry.webhook.main import ManagedCertificates, WebhookConfig


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[WebhookConfig]:
    configs: list[WebhookConfig] = []

    async def remember(config: WebhookConfig) -> None:
        configs.append(config)

    monkeypatch.setattr(webhook, "run_webhook", remember)
    monkeypatch.setattr(webhook, "configure_logs", lambda *_: None)
    return configs


def test_certificates_of_its_own(served: list[WebhookConfig]) -> None:
    result = CliRunner().invoke(webhook.command, ["--policy", "p.yaml", "--secret", "s"])
    assert result.exit_code == 0, result.output
    own = ManagedCertificates("s", "podferry", "podferry-webhook")
    assert served == [WebhookConfig(Path("p.yaml"), "127.0.0.1", 8443, own, shutdown_delay=5.0)]


def test_a_given_certificate(served: list[WebhookConfig]) -> None:
    arguments = ["--policy", "p.yaml", "--certificate", "c", "--key", "k", "--port", "9", "--host", "::1"]
    assert CliRunner().invoke(webhook.command, arguments).exit_code == 0
    assert served[0].certificates == CertificateFiles(Path("c"), Path("k"))
    assert (served[0].host, served[0].port) == ("::1", 9)


@pytest.mark.parametrize(
    "arguments", [[], ["--policy", "p", "--certificate", "c"], ["--policy", "p", "--key", "k"]]
)
def test_wrong_arguments(served: list[WebhookConfig], arguments: list[str]) -> None:
    assert CliRunner().invoke(webhook.command, arguments).exit_code == 2
    assert served == []
