"""`podferry webhook`: parses the options and serves the admission webhook."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click
import uvloop

from podferry.cli.options.log_options import log_options
from podferry.cli.options.param_types import SECONDS
from podferry.sidecar.runtime.log_setup import configure_logs
from podferry.webhook.cluster.certificate_files import CertificateFiles
from podferry.webhook.main import ManagedCertificates, WebhookConfig, run_webhook

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.option("--policy", type=FILE, required=True, help="InjectionPolicy file; reloaded when it changes.")
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8443, help="Port to listen on.")
@click.option(
    "--metrics-port", type=click.IntRange(0, 65535), help="Port of /metrics, in plain HTTP.  [default: none]"
)
@click.option(
    "--certificate",
    type=FILE,
    help="PEM certificate, reloaded when it changes.  [default: managed by the webhook]",
)
@click.option("--key", type=FILE, help="PEM private key of the certificate.")
@click.option("--secret", default="podferry-webhook", help="Secret that stores the managed certificates.")
@click.option("--service", default="podferry-webhook", help="Service in front of the webhook.")
@click.option("--configuration", default="podferry", help="Name of the webhook configurations to update.")
@click.option(
    "--last-policy", default="podferry-last-policy", help="ConfigMap that keeps the last valid policy."
)
@click.option(
    "--policy-config-map",
    help="ConfigMap that the policy file is from; read from the API server, since the file changes late.",
)
@click.option("--linger", type=SECONDS, default=5.0, help="Seconds to keep serving after SIGTERM.")
@log_options
def command(log_level: str, log_format: str | None, **options: Any) -> int:
    """Serve the admission webhook."""
    configure_logs(log_level, log_format)
    certificate, key = options["certificate"], options["key"]
    if (certificate is None) != (key is None):
        raise click.UsageError("--certificate and --key go together")
    managed = ManagedCertificates(options["secret"], options["configuration"], options["service"])
    config = WebhookConfig(
        policy=options["policy"],
        host=options["host"],
        port=options["port"],
        certificates=managed if certificate is None else CertificateFiles(certificate, key),
        configuration=options["configuration"],
        metrics_port=options["metrics_port"],
        shutdown_delay=options["linger"],
        last_policy=options["last_policy"],
        policy_config_map=options["policy_config_map"],
    )
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_webhook(config))
    return 0
