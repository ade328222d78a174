"""`podferry doctor`: checks step by step whether a location can be reached, read and written."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import click

from podferry.cli.options.store_options import access_options, parse_location, store_config_of
from podferry.cli.output import output_option, print_json
from podferry.contract.exit_codes import EXIT_FAILED
from podferry.sidecar.runtime.colours import coloured
from podferry.sidecar.runtime.log_options import LEVEL_VARIABLE
from podferry.sidecar.runtime.log_setup import configure_logs
from podferry.storage.doctor.diagnosis import diagnose
from podferry.storage.doctor.finding import Finding, Outcome

COLOURS = {Outcome.OK: "green", Outcome.LIMITED: "yellow", Outcome.FAILED: "red", Outcome.SKIPPED: ""}
OUTCOME_WIDTH = max(len(outcome.value) for outcome in Outcome)
CHECK_WIDTH = len("exclusive commit")


@click.command("doctor")
@click.argument("uri")
@click.option("--write", is_flag=True, help="Also write, commit and delete a small object there.")
@output_option
@access_options
def command(uri: str, write: bool, output: str, **access: Any) -> int:
    """Check a dataset or a destination: name, connection, TLS, clock, listing, reading, throughput.

    Prints a line for each check, with what to do where it failed. The exit code is 1 if one failed.
    """
    configure_logs(os.environ.get(LEVEL_VARIABLE, "error"))  # what a retry warns of is a finding, if it lasts
    location, config = parse_location(uri), store_config_of(**access)

    async def examine() -> list[Finding]:
        found = []
        async for finding in diagnose(location, config, write=write):
            found.append(finding)
            if output == "text":
                _print(finding)
        return found

    findings = asyncio.run(examine())
    if output == "json":
        print_json(findings)
    return EXIT_FAILED if any(finding.outcome is Outcome.FAILED for finding in findings) else 0


def _print(finding: Finding) -> None:
    outcome = coloured(finding.outcome.value.ljust(OUTCOME_WIDTH), COLOURS[finding.outcome], sys.stdout)
    remedy = f". {finding.remedy}" if finding.remedy else ""
    print(f"{outcome}  {finding.check.ljust(CHECK_WIDTH)}  {finding.measured}{remedy}", flush=True)
