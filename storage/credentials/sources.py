"""Reads credentials from the environment or a mounted Secret, and says which of them an S3 store uses.

Names are the vendors' own. A Secret is used alone: the environment does not add to it. Amazon's order
applies: keys, the shared credentials file, web identity, the container's credentials, the metadata service.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from podferry.contract.errors import CredentialsMissing, InvalidSpec, Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.storage.credentials.aws_profile import profile_variables
from podferry.storage.credentials.web import NETRC, web_variables
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig

VARIABLE_PREFIXES = (
    *("AWS_", "AZURE_", "BOS_", "GOOGLE_", "FSSPEC_", "STORAGE_EMULATOR_HOST"),
    *("OSS_", "ALIBABA_CLOUD_", "akId", "akSecret"),
    *("SMB_", "SFTP_", "FTP_", "WEBDAV_", "HF_TOKEN", "HF_ENDPOINT"),
    *web_variables("HTTP_"),  # not HTTP_PROXY
    *("HADOOP_", "HDFS_", "WEBHDFS_", "KRB5"),
)
"""Of the variables that are read; `FSSPEC_<SCHEME>_<OPTION>` is fsspec's own convention."""
TRUE_VALUES = ("1", "true", "yes", "on")
KFP_KEYS = {"accesskey": "AWS_ACCESS_KEY_ID", "secretkey": "AWS_SECRET_ACCESS_KEY"}
"""Keys of the Secret `mlpipeline-minio-artifact`, which every namespace with Kubeflow Pipelines has. Source:
kubeflow/pipelines, `manifests/kustomize/third-party`, the Secret of the object store."""
JUICEFS_KEYS = {"access-key": "AWS_ACCESS_KEY_ID", "secret-key": "AWS_SECRET_ACCESS_KEY"}
"""Keys of the Secrets of JuiceFS's CSI driver, and so of Paddle Operator's SampleSets, for S3. They keep
their names as well, for `bos://`. Source: JuiceFS CSI driver, "Volume credentials"."""
KEYTAB = "keytab"
"""How the names of keys end that hold a keytab of Kerberos; its library reads the file."""
CONTROL_CHARACTER = lazy_pattern(r"[\x00-\x1f\x7f]")
"""Not in a header of HTTP, into which credentials go; obstore panics on them."""
ADDRESS_NAME = lazy_pattern("ENDPOINT|EMULATOR_HOST|AUTHORITY_HOST|REGION|_URI$|^URL$")
"""Of variables whose values are addresses and regions, which have no spaces."""
ONE_LINE = (
    "AWS_",
    "AZURE_",
    "BOS_",
    "OSS_",
    "ALIBABA_CLOUD_",
    "access-key",
    "secret-key",
    "akId",
    "akSecret",
)
"""How the names of credentials begin that have one line; Google's are JSON."""


class AwsSource(enum.Enum):
    """Where the credentials of an S3 store come from."""

    ANONYMOUS = "anonymous"
    KEYS = "keys"
    WEB_IDENTITY = "web identity"
    CONTAINER = "container"
    METADATA = "metadata service"
    NONE = "none"


def config_from_environment(environ: Mapping[str, str]) -> StoreConfig:
    """The credentials of the environment; without a key there, those of Amazon's shared credentials file.

    Endpoints and regions keep their own names, which differ by vendor: each engine looks up its own.

    Args:
        environ: Such as `os.environ`; `HOME` has the shared files.

    Raises:
        InvalidSpec: `AWS_PROFILE` names a profile that is not in the files, a file is malformed, or a
            credential has several lines.
    """
    read = {name: _stripped(name, environ[name]) for name in environ if name.startswith(VARIABLE_PREFIXES)}
    found = {name: value for name, value in read.items() if value}
    ssh = Path(environ.get("HOME") or "/nonexistent") / ".ssh"
    if "SFTP_SSH_DIR" not in found and ssh.is_dir():
        found["SFTP_SSH_DIR"] = str(ssh)
    if "AWS_ACCESS_KEY_ID" not in found and not is_true(found.get("AWS_SKIP_SIGNATURE", "")):
        found = {**profile_variables(environ), **found}
    found = {**_hub_token(environ), **found, **_netrc(environ)}
    return StoreConfig(credentials=_checked(found), network=read_network({**found, **environ}))


def config_from_directory(path: Path, environ: Mapping[str, str]) -> StoreConfig:
    """The credentials of a mounted Secret: a file for each key. `AWS_PROFILE` is a profile of this user.

    Args:
        path: The mount.
        environ: For what belongs to the machine: the shared credentials files, CA bundles and proxies; no
            other credentials are read from it.

    Raises:
        CredentialsMissing: The directory does not exist or has no key.
        InvalidSpec: A key is not text or has several lines, or a CA bundle or proxy is not valid.
    """
    read = partial(_mounted_with_profile, path, environ)
    found = read()
    return StoreConfig(credentials=found, reload_credentials=read, network=read_network(environ, found))


def _mounted_with_profile(path: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The keys as they are now; a profile that they name has the rest."""
    found = _mounted(path)
    if not found.get("AWS_PROFILE") or found.get("AWS_ACCESS_KEY_ID"):
        return _checked(found)
    return _checked({**profile_variables({**environ, "AWS_PROFILE": found["AWS_PROFILE"]}), **found})


def _checked(credentials: dict[str, str]) -> dict[str, str]:
    """The same. Raises `InvalidSpec` for those with several lines, without their values."""
    wrong = [name for name, value in credentials.items() if CONTROL_CHARACTER.search(value)]
    InvalidSpec.raise_any(
        Problem(f"{name} has several lines, or other control characters", "", "Store it as one line")
        for name in wrong
        if name.startswith(ONE_LINE)
    )
    return credentials


def _mounted(path: Path) -> dict[str, str]:
    """The keys as they are now. Kubernetes updates all of a Secret at once through the link `..data`."""
    data = path / "..data"
    version = data.resolve() if data.exists() else path
    files = sorted(file for file in path.glob("*") if file.is_file() and not file.name.startswith("."))
    if not files:
        measured = "the directory is empty" if path.is_dir() else "there is no such directory"
        remedy = (
            "Create the Secret in the pod's namespace; elsewhere, store a file for each credential there, "
            "such as AWS_ACCESS_KEY_ID"
        )
        raise CredentialsMissing.of(f"there are no credentials in {path}", measured, remedy)
    in_version = {file.name for file in version.glob("*")}
    found = {file.name: _value(file, version if file.name in in_version else path) for file in files}
    named = {
        KFP_KEYS.get(name, name): value for name, value in found.items() if KFP_KEYS.get(name) not in found
    }
    if named.keys() & JUICEFS_KEYS.values():
        return named
    return named | {JUICEFS_KEYS[name]: value for name, value in named.items() if name in JUICEFS_KEYS}


def _netrc(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's netrc file, if there is one: `NETRC` names it, as for curl."""
    file = Path(environ.get("NETRC") or Path(environ.get("HOME") or "/nonexistent") / ".netrc")
    try:
        return {NETRC: file.read_text(encoding="utf-8")}
    except (OSError, UnicodeDecodeError) as error:
        if not environ.get("NETRC"):
            return {}
        what = f"NETRC names a file that cannot be read: {file}"
        raise InvalidSpec.of(what, type(error).__name__, "Correct NETRC, or unset it") from None


def _hub_token(environ: Mapping[str, str]) -> dict[str, str]:
    """The token of `hf auth login`. Source: "Environment variables", documentation of huggingface_hub."""
    cache = environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "/nonexistent") / ".cache"
    home = environ.get("HF_HOME") or Path(cache) / "huggingface"
    try:
        file = Path(environ.get("HF_TOKEN_PATH") or Path(home) / "token")
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return {}
    return {"HF_TOKEN": token} if token else {}


def aws_source(credentials: Mapping[str, str]) -> AwsSource:
    """Where an S3 store with this configuration gets its credentials.

    Raises:
        CredentialsMissing: Only one half of a key pair is set.
    """
    halves = [name for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY") if credentials.get(name)]
    if is_true(credentials.get("AWS_SKIP_SIGNATURE", "")):
        return AwsSource.ANONYMOUS
    if len(halves) == 1:
        missing = ({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} - set(halves)).pop()
        raise CredentialsMissing.of(f"{missing} is missing", f"{halves[0]} is set", f"Set {missing} too")
    if halves:
        return AwsSource.KEYS
    if credentials.get("AWS_WEB_IDENTITY_TOKEN_FILE") and credentials.get("AWS_ROLE_ARN"):
        return AwsSource.WEB_IDENTITY
    if any(name.startswith("AWS_CONTAINER_CREDENTIALS_") for name in credentials):
        return AwsSource.CONTAINER
    disabled = is_true(credentials.get("AWS_EC2_METADATA_DISABLED", ""))
    return AwsSource.NONE if disabled else AwsSource.METADATA


def is_true(value: str) -> bool:
    """Whether a variable's value means true."""
    return value.strip().lower() in TRUE_VALUES


def variable_names(credentials: Mapping[str, str], *prefixes: str) -> tuple[str, ...]:
    """Names of a vendor's credentials, for messages."""
    return tuple(sorted(name for name in credentials if name.startswith(prefixes)))


def _value(file: Path, version: Path) -> str:
    """The value of a key; of a keytab, which is binary, its path."""
    return str(file) if file.name.endswith(KEYTAB) else _text(version / file.name)


def _stripped(name: str, value: str) -> str:
    """A value as it was meant: editors and `echo` end files with a line feed. A password may have spaces."""
    return value.strip() if ADDRESS_NAME.search(name) else value.strip("\r\n")


def _text(file: Path) -> str:
    try:
        return _stripped(file.name, file.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        what = f"the key {file.name} of a Secret is not text"
        raise InvalidSpec.of(what, str(file), "Store it as UTF-8") from error
