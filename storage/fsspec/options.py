"""Options of fsspec's file systems by scheme: credentials, endpoints and timeouts.

Any option of a file system can be set as `FSSPEC_<SCHEME>_<OPTION>`, such as `FSSPEC_GS_REQUESTER_PAYS`:
fsspec's own convention for its environment, here read from the store's configuration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from podferry.contract.uri import Uri
from podferry.storage.azure.credentials import with_connection_string
from podferry.storage.credentials.endpoints import checked_endpoint, host_label
from podferry.storage.credentials.profile_error import no_credentials
from podferry.storage.credentials.sources import AwsSource, aws_source, is_true, variable_names
from podferry.storage.errors.translate import StoreLocation, store_location, unused_keys
from podferry.storage.fsspec.engine import SECRET_KEYS
from podferry.storage.fsspec.google_credentials import google_token
from podferry.storage.network.tls import tls_context
from podferry.storage.s3.endpoint import requester_pays, s3_endpoint
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

S3_SCHEMES = ("s3", "s3a")
GOOGLE_SCHEMES = ("gs", "gcs")
AZURE_SCHEMES = ("az", "abfs", "abfss")
OBJECT_STORE_SCHEMES = frozenset({*S3_SCHEMES, *GOOGLE_SCHEMES, *AZURE_SCHEMES})
"""Here a write becomes visible when it is committed. Elsewhere a file is written, then renamed."""
EXCLUSIVE_CREATE_SCHEMES = frozenset({*S3_SCHEMES, *GOOGLE_SCHEMES, *AZURE_SCHEMES})
"""Here an exclusive create had exactly one winner in a race of eight writers."""

TLS = "ssl"
"""Among the options of gcsfs's session: the context for its connector, which its loop has to make."""
GOOGLE_ADDRESS = "https://storage.googleapis.com"

Options = dict[str, Any]


class FsspecOptions(msgspec.Struct, frozen=True):
    """How to open a file system: its class's keyword arguments, and whether the user has set some of them."""

    options: Options
    location: StoreLocation
    customized: bool = False

    def __repr__(self) -> str:
        return f"FsspecOptions(names: {', '.join(sorted(self.options))}, location={self.location!r})"


def options_for(uri: Uri, config: StoreConfig, limits: Limits) -> FsspecOptions:
    """How to open the file system of a URI.

    Raises:
        CredentialsMissing: There are none for S3.
        InvalidSpec: The configuration contradicts itself.
    """
    options, location = _vendor(uri)(uri, config, limits)
    common: Options = {"skip_instance_cache": True}
    custom = _custom(uri.scheme, config.credentials)
    return FsspecOptions({**common, **options, **custom}, location, bool(custom))


def _vendor(uri: Uri) -> Callable[[Uri, StoreConfig, Limits], tuple[Options, StoreLocation]]:
    by_scheme = {
        **dict.fromkeys(S3_SCHEMES, _s3),
        **dict.fromkeys(GOOGLE_SCHEMES, _google),
        **dict.fromkeys(AZURE_SCHEMES, _azure),
    }
    return by_scheme.get(uri.scheme, _plain)


def _custom(scheme: str, variables: Mapping[str, str]) -> Options:
    prefix = f"FSSPEC_{scheme.upper()}_"
    names = [name for name in variables if name.startswith(prefix)]
    found = {name.removeprefix(prefix).lower(): variables[name] for name in names}
    return {name: int(value) if name == "port" else value for name, value in found.items()}


def _location(uri: Uri, config: StoreConfig, endpoint: str, *prefixes: str) -> StoreLocation:
    own = f"FSSPEC_{uri.scheme.upper()}_"
    names = variable_names(config.credentials, own, *prefixes)
    unused = unused_keys(config.credentials, names, config.reload_credentials)
    return store_location(uri, endpoint, names, config.network, unused)


def _s3(uri: Uri, config: StoreConfig, limits: Limits) -> tuple[Options, StoreLocation]:
    variables = config.credentials
    endpoint, region = s3_endpoint(uri, config)
    location = _location(uri, config, endpoint, "AWS_")
    source = aws_source(variables)
    if source is AwsSource.NONE:
        raise no_credentials(location, variables)
    virtual_hosted = is_true(variables.get("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", ""))
    options: Options = {
        "endpoint_url": endpoint,
        "anon": source is AwsSource.ANONYMOUS,
        "requester_pays": requester_pays(variables),
        "client_kwargs": {"region_name": region},
        "config_kwargs": {
            "connect_timeout": limits.connect_seconds,
            "read_timeout": limits.stall_seconds,
            "retries": {"total_max_attempts": 1},  # s3fs has its own retries
            "s3": {"addressing_style": "virtual" if virtual_hosted else "path"},
        },
    }
    if source is AwsSource.KEYS:
        options["key"], options["secret"] = variables["AWS_ACCESS_KEY_ID"], variables["AWS_SECRET_ACCESS_KEY"]
        options["token"] = variables.get("AWS_SESSION_TOKEN")
    return options, location


def _google(uri: Uri, config: StoreConfig, limits: Limits) -> tuple[Options, StoreLocation]:
    del limits  # gcsfs has its own timeouts; the engine limits its calls
    variables = config.credentials
    configured = config.endpoint or variables.get("STORAGE_EMULATOR_HOST")
    endpoint = checked_endpoint(configured) if configured else ""
    location = _location(uri, config, endpoint or GOOGLE_ADDRESS, "GOOGLE_", "STORAGE_", *SECRET_KEYS)
    options: Options = {"token": google_token(variables)}
    if endpoint:
        options["endpoint_url"] = endpoint
    proxy = config.network.proxies.proxy_for(endpoint or GOOGLE_ADDRESS)
    if proxy is not None:
        options["session_kwargs"] = {"proxy": proxy.url}
    if config.network.ca.pem:
        options["session_kwargs"] = {
            **options.get("session_kwargs", {}),
            TLS: tls_context(config.network.ca.pem),
        }
    if variables.get("GOOGLE_CLOUD_PROJECT"):
        options["project"] = variables["GOOGLE_CLOUD_PROJECT"]
    return options, location


def _azure(uri: Uri, config: StoreConfig, limits: Limits) -> tuple[Options, StoreLocation]:
    variables = config.credentials
    names = {
        "AZURE_STORAGE_ACCOUNT_NAME": "account_name",
        "AZURE_STORAGE_ACCOUNT_KEY": "account_key",
        "AZURE_STORAGE_SAS_TOKEN": "sas_token",
        "AZURE_STORAGE_CONNECTION_STRING": "connection_string",
    }
    options: Options = {option: variables[name] for name, option in names.items() if variables.get(name)}
    options.update(connection_timeout=limits.connect_seconds, read_timeout=limits.stall_seconds)
    account = with_connection_string(variables).get("AZURE_STORAGE_ACCOUNT_NAME", "")
    if account:
        host_label("the account", account)
    return options, _location(uri, config, f"{account}.blob.core.windows.net" if account else "", "AZURE_")


def _plain(uri: Uri, config: StoreConfig, limits: Limits) -> tuple[Options, StoreLocation]:
    del limits
    return {}, _location(uri, config, config.endpoint or "")
