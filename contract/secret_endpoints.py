"""Which addresses of stores a Secret names, and whether the policy allows them.

The agent checks them: a Secret is not part of the pod that the webhook sees.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podferry.contract.errors import Problem
from podferry.contract.hadoop_properties import hadoop_properties
from podferry.contract.hidden_secrets import hide_secrets
from podferry.contract.location_globs import Globs, allows
from podferry.contract.location_guards import metadata_problem

URL = re.compile(r"https?://[^\s\"'`<>{}|\\^,;]+", re.IGNORECASE)
ENDPOINT_NAME = re.compile("ENDPOINT|EMULATOR_HOST|^URL$|^HADOOP_(CONF_DIR|HOME)$")
"""Keys whose whole value is an address; files that a directory of Hadoop has would not be checked."""
WITHOUT_STORE = ("GOOGLE_", "AZURE_AUTHORITY_HOST", "HTTP", "NO_PROXY", "http")
"""Beginnings of the names of a Secret's keys whose URLs are not the store's: of tokens and proxies."""
FSSPEC_OPTION = re.compile("FSSPEC_[^_]+_(.+)")
FSSPEC_CREDENTIAL = re.compile(
    "USER|PASS|KEY|SECRET|TOKEN|CREDENTIAL|ANON|PROJECT|ACCOUNT_NAME|CLIENT_ID|TENANT"
)
"""Options of fsspec's file systems that say who opens a store; any other may say which one."""
ODD_ACCOUNT = re.compile(r"AccountName=([^;\s]*[^A-Za-z0-9;\s-][^;\s]*)", re.IGNORECASE)
"""An account of Azure that is none: libraries put it before their domain, which a slash makes a path."""
ENDPOINT_PART = re.compile(r"Endpoint=(?!https?://)([^;\s]+)", re.IGNORECASE)
"""Of a connection string, without a scheme: Azure's library adds it."""
ENDPOINT_SUFFIX = re.compile(r"EndpointSuffix=([^;\s]+)", re.IGNORECASE)
"""Of a connection string of Azure: instead of `core.windows.net`."""
SITE_FILE = "-site.xml"
"""How the names of the keys end that hold a configuration of Hadoop."""
NAME_NODE = re.compile(r"dfs\.namenode\..*address(\..*)?|fs\.viewfs\.mounttable\..*|hadoop\.socks\.server")
"""Properties of Hadoop that say where a nameservice or a directory is, or what is between."""
SCHEMES = re.compile(r"[a-z]+://[^/\s,;]+", re.IGNORECASE)


def secret_endpoint_problems(credentials: Mapping[str, str], guards: Sequence[Globs]) -> Iterator[Problem]:
    """Endpoints in a Secret's keys that are not allowed by every one of the guards."""
    for name, text in sorted(credentials.items()):
        for endpoint in _endpoints(name, text):
            yield from endpoint_problems(f"the Secret's key {name}", endpoint, guards)


def endpoint_problems(what: str, endpoint: str, guards: Sequence[Globs]) -> Iterator[Problem]:
    """Why an endpoint must not be used, if so; `what` says who names it."""
    outside = next((globs for globs in guards if not allows(globs, endpoint)), None)
    if problem := metadata_problem(what, endpoint):
        yield problem
    elif outside is not None:
        remedy = f"Use one of the allowed endpoints: {', '.join(outside) or 'none'}"
        yield Problem(f"{what}: the policy does not allow this endpoint", hide_secrets(endpoint), remedy)


def _endpoints(name: str, text: str) -> Iterator[str]:
    """The addresses of stores in a key's value: a URL, JSON, a connection string, or Hadoop's properties."""
    if name.startswith(WITHOUT_STORE) or not text.strip():
        return
    if name.endswith(SITE_FILE):
        yield from _name_nodes(text)
        return
    option = FSSPEC_OPTION.fullmatch(name)
    if name.endswith("ACCOUNT_NAME"):
        text = f"AccountName={text.strip()}"
    is_address = ENDPOINT_NAME.search(name) or (option and not FSSPEC_CREDENTIAL.search(option[1]))
    found = [url for string in _strings(text) for url in URL.findall(string)]
    found += [f"https://{host}" for part in (ENDPOINT_PART, ODD_ACCOUNT) for host in part.findall(text)]
    found += [f"https://blob.{suffix}" for suffix in ENDPOINT_SUFFIX.findall(text)]
    yield from (one.rstrip("/") for one in found or ([text.strip()] if is_address else []))


def _strings(text: str) -> Iterator[str]:
    """The text, or all strings of its JSON, in which a slash may be escaped."""
    try:
        values: list[Any] = [json.loads(text)]
    except ValueError:
        yield text
        return
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            values += value
        else:
            yield str(value)


def _name_nodes(text: str) -> Iterator[str]:
    """Addresses in a configuration of Hadoop, as its reader finds them."""
    try:
        properties = hadoop_properties(text)
    except ValueError:  # then the store does not open either
        return
    for name, value in properties.items():
        if NAME_NODE.fullmatch(name):
            yield from SCHEMES.findall(value) or filter(None, map(str.strip, value.split(",")))
