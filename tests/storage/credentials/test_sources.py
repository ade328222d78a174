import pytest

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.storage.credentials.sources import (
    AwsSource,
    aws_source,
    config_from_directory,
    config_from_environment,
)

PAIR = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}


@pytest.mark.parametrize(
    ("held", "source"),
    [
        (PAIR, AwsSource.KEYS),
        ({**PAIR, "AWS_SKIP_SIGNATURE": "true"}, AwsSource.ANONYMOUS),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/t", "AWS_ROLE_ARN": "arn"}, AwsSource.WEB_IDENTITY),
        ({"AWS_WEB_IDENTITY_TOKEN_FILE": "/t"}, AwsSource.METADATA),
        ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://x"}, AwsSource.CONTAINER),
        ({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/x"}, AwsSource.CONTAINER),
        ({}, AwsSource.METADATA),
        ({"AWS_EC2_METADATA_DISABLED": "True"}, AwsSource.NONE),
        ({"AWS_EC2_METADATA_DISABLED": "false"}, AwsSource.METADATA),
    ],
)
def test_where_credentials_come_from(held, source):
    assert aws_source(held) is source


@pytest.mark.parametrize("name", PAIR)
def test_half_a_key_pair_is_reported(name):
    other = next(key for key in PAIR if key != name)
    with pytest.raises(CredentialsMissing, match=f"{other} is missing"):
        aws_source({name: "x"})


def test_credentials_of_the_environment(tmp_path):
    environ = {
        **PAIR,
        "AZURE_STORAGE_ACCOUNT_NAME": "a",
        "PATH": "/bin",
        "AWS_REGION": "",
        "HOME": str(tmp_path),
    }
    config = config_from_environment(environ)
    assert dict(config.credentials) == {**PAIR, "AZURE_STORAGE_ACCOUNT_NAME": "a"}
    assert "'k'" not in repr(config)
    assert "AWS_ACCESS_KEY_ID" in repr(config)


def test_credentials_of_web_servers(tmp_path):
    """`HTTP_PROXY` is none of them, whatever it begins with."""
    environ = {"HTTP_USERNAME": "u", "HTTP_PROXY": "http://p:1", "WEBDAV_PASSWORD": "p", "HF_TOKEN": "t"}
    config = config_from_environment({**environ, "HOME": str(tmp_path)})
    assert dict(config.credentials) == {"HTTP_USERNAME": "u", "WEBDAV_PASSWORD": "p", "HF_TOKEN": "t"}
    (tmp_path / ".netrc").write_text("machine a login b password c")
    assert config_from_environment({"HOME": str(tmp_path)}).credentials["netrc"].startswith("machine a")
    (tmp_path / "other").write_text("machine d login e password f")
    named = {"HOME": str(tmp_path), "NETRC": str(tmp_path / "other")}
    assert config_from_environment(named).credentials["netrc"].startswith("machine d")
    with pytest.raises(InvalidSpec, match="NETRC names a file that cannot be read"):
        config_from_environment({"NETRC": str(tmp_path / "none")})


@pytest.mark.parametrize("name", ["HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_TOKEN_PATH"])
def test_the_token_that_the_hub_s_client_has_stored(tmp_path, name):
    places = {"HOME": ".cache/huggingface/token", "XDG_CACHE_HOME": "huggingface/token", "HF_HOME": "token"}
    file = tmp_path / places.get(name, "other")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("hf_stored\n")
    environ = {name: str(file if name == "HF_TOKEN_PATH" else tmp_path)}
    assert config_from_environment(environ).credentials["HF_TOKEN"] == "hf_stored"
    assert config_from_environment({**environ, "HF_TOKEN": "own"}).credentials["HF_TOKEN"] == "own"
    assert "HF_TOKEN" not in config_from_environment({}).credentials


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text(
        "[default]\naws_access_key_id = dk\naws_secret_access_key = d%s=\n"
        "[other]\naws_access_key_id=ok\naws_secret_access_key=os\naws_session_token=ot\n"
    )
    (folder / "config").write_text("[default]\nregion = eu-west-1\n[profile other]\nregion = us-west-2\n")
    return tmp_path


def test_the_shared_files_are_read_if_the_environment_has_no_key(home):
    config = config_from_environment({"HOME": str(home)})
    assert dict(config.credentials) == {
        "AWS_ACCESS_KEY_ID": "dk",
        "AWS_SECRET_ACCESS_KEY": "d%s=",
        "AWS_DEFAULT_REGION": "eu-west-1",
    }
    config = config_from_environment({"HOME": str(home), "AWS_PROFILE": "other", "AWS_REGION": "mars"})
    assert config.credentials["AWS_SESSION_TOKEN"] == "ot"
    assert config.credentials["AWS_REGION"] == "mars"
    config = config_from_environment({"HOME": str(home), **PAIR})
    assert dict(config.credentials) == PAIR
    config = config_from_environment({"HOME": str(home), "AWS_SKIP_SIGNATURE": "1"})
    assert "AWS_ACCESS_KEY_ID" not in config.credentials


def test_shared_files_elsewhere(home):
    environ = {"AWS_SHARED_CREDENTIALS_FILE": str(home / ".aws" / "credentials")}
    assert config_from_environment(environ).credentials["AWS_ACCESS_KEY_ID"] == "dk"


def test_a_missing_profile_is_reported(home):
    with pytest.raises(InvalidSpec, match="AWS_PROFILE=none"):
        config_from_environment({"HOME": str(home), "AWS_PROFILE": "none"})


def test_a_malformed_file_is_reported_without_its_content(home):
    (home / ".aws" / "credentials").write_text("hunter2\n[default]")
    with pytest.raises(InvalidSpec) as caught:
        config_from_environment({"HOME": str(home)})
    assert "hunter2" not in str(caught.value)


def test_a_mounted_secret(tmp_path):
    real = tmp_path / "..2026_01_01"
    real.mkdir()
    (real / "AWS_ACCESS_KEY_ID").write_text("k\n")
    (tmp_path / "..data").symlink_to(real)
    (tmp_path / "AWS_ACCESS_KEY_ID").symlink_to(tmp_path / "..data" / "AWS_ACCESS_KEY_ID")
    (tmp_path / "AWS_SECRET_ACCESS_KEY").write_text("s ")
    assert dict(config_from_directory(tmp_path, {}).credentials) == {**PAIR, "AWS_SECRET_ACCESS_KEY": "s "}


def test_the_secret_that_kubeflow_pipelines_has(tmp_path):
    (tmp_path / "accesskey").write_text("minio\n")
    (tmp_path / "secretkey").write_text("minio123")
    keys = {"AWS_ACCESS_KEY_ID": "minio", "AWS_SECRET_ACCESS_KEY": "minio123"}
    assert config_from_directory(tmp_path, {}).credentials == keys
    (tmp_path / "AWS_ACCESS_KEY_ID").write_text("ours")
    assert config_from_directory(tmp_path, {}).credentials == keys | {"AWS_ACCESS_KEY_ID": "ours"}


def test_the_secret_of_juicefs_is_of_s3_too(tmp_path):
    own = {"access-key": "k", "secret-key": "s", "name": "imagenet", "storage": "s3"}
    for name, value in own.items():
        (tmp_path / name).write_text(value)
    amazon = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    assert config_from_directory(tmp_path, {}).credentials == own | amazon
    (tmp_path / "AWS_SECRET_ACCESS_KEY").write_text("ours")
    found = config_from_directory(tmp_path, {}).credentials
    assert found == own | {"AWS_SECRET_ACCESS_KEY": "ours"}


def test_a_profile_may_name_a_ca_bundle(private_ca, tmp_path):
    (tmp_path / "ca.pem").write_text(private_ca.pem)
    (tmp_path / "config").write_text(f"[default]\nca_bundle = {tmp_path / 'ca.pem'}\n")
    config = config_from_environment({"AWS_CONFIG_FILE": str(tmp_path / "config")})
    assert config.network.ca.pem == private_ca.pem


def test_a_directory_may_name_a_profile(tmp_path):
    shared = tmp_path / "credentials"
    shared.write_text("[one]\naws_access_key_id=k\naws_secret_access_key=s\nregion=here\n")
    directory = tmp_path / "secret"
    directory.mkdir()
    (directory / "AWS_PROFILE").write_text("one\n")
    environ = {"AWS_SHARED_CREDENTIALS_FILE": str(shared), "AWS_PROFILE": "other", "AWS_ACCESS_KEY_ID": "x"}
    config = config_from_directory(directory, environ)
    expected = {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s", "AWS_DEFAULT_REGION": "here"}
    assert config.credentials == {**expected, "AWS_PROFILE": "one"}
    shared.write_text(shared.read_text().replace("id=k", "id=new"))
    assert config.reload_credentials()["AWS_ACCESS_KEY_ID"] == "new"
    (directory / "AWS_PROFILE").write_text("two")
    with pytest.raises(InvalidSpec, match="there is no profile 'two'"):
        config_from_directory(directory, environ)


def test_an_updated_secret_is_read_again(tmp_path):
    for number in (1, 2):
        real = tmp_path / f"..{number}"
        real.mkdir()
        for name in PAIR:
            (real / name).write_text(f"{name} {number}")
    for name in PAIR:
        (tmp_path / name).symlink_to(tmp_path / "..data" / name)
    (tmp_path / "..data").symlink_to(tmp_path / "..1")
    config = config_from_directory(tmp_path, {})
    (tmp_path / "..new").symlink_to(tmp_path / "..2")
    (tmp_path / "..new").rename(tmp_path / "..data")
    assert config.credentials == {name: f"{name} 1" for name in PAIR}
    assert config.reload_credentials() == {name: f"{name} 2" for name in PAIR}


@pytest.mark.parametrize("made", [True, False])
def test_a_missing_secret_is_reported(tmp_path, made):
    path = tmp_path if made else tmp_path / "none"
    with pytest.raises(CredentialsMissing, match=str(path)):
        config_from_directory(path, {})


def test_a_key_that_is_not_text_is_reported(tmp_path):
    (tmp_path / "AWS_ACCESS_KEY_ID").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidSpec, match="AWS_ACCESS_KEY_ID"):
        config_from_directory(tmp_path, {})


@pytest.mark.parametrize("name", ["AWS_ACCESS_KEY_ID", "AZURE_STORAGE_TOKEN"])
def test_a_credential_has_one_line(tmp_path, name):
    """obstore would panic."""
    environ = {"HOME": str(tmp_path), "AWS_SECRET_ACCESS_KEY": "s", name: "secret\n"}
    (tmp_path / name).write_text("secret\n")
    assert config_from_environment(environ).credentials[name] == "secret"
    assert config_from_directory(tmp_path, {}).credentials[name] == "secret"
    (tmp_path / name).write_text("sec\nret")
    for read in (
        lambda: config_from_environment({**environ, name: "sec\nret"}),
        lambda: config_from_directory(tmp_path, {}),
    ):
        with pytest.raises(InvalidSpec, match=f"{name} has several lines") as raised:
            read()
        assert "ret" not in str(raised.value)


def test_regions_and_addresses_have_no_spaces_around_them_and_passwords_may(tmp_path):
    held = {
        "AWS_REGION": "r \n",
        "AZURE_AUTHORITY_HOST": " https://h",
        "URL": "https://h ",
        "SMB_PASSWORD": "p \n",
    }
    for name, value in held.items():
        (tmp_path / name).write_text(value)
    stripped = {
        "AWS_REGION": "r",
        "AZURE_AUTHORITY_HOST": "https://h",
        "URL": "https://h",
        "SMB_PASSWORD": "p ",
    }
    assert config_from_directory(tmp_path, {}).credentials == stripped
    del stripped["URL"]  # which only Secrets have
    assert config_from_environment(held).credentials == stripped


def test_credentials_in_json_have_several_lines():
    text = '{\n "type": "service_account"\n}'
    config = config_from_environment({"GOOGLE_SERVICE_ACCOUNT_KEY": text})
    assert config.credentials["GOOGLE_SERVICE_ACCOUNT_KEY"] == text


def test_the_ssh_directory_of_a_user_is_found(tmp_path):
    assert "SFTP_SSH_DIR" not in config_from_environment({"HOME": str(tmp_path)}).credentials
    (tmp_path / ".ssh").mkdir()
    assert config_from_environment({"HOME": str(tmp_path)}).credentials["SFTP_SSH_DIR"] == f"{tmp_path}/.ssh"
    given = {"HOME": str(tmp_path), "SFTP_SSH_DIR": "/other"}
    assert config_from_environment(given).credentials["SFTP_SSH_DIR"] == "/other"
