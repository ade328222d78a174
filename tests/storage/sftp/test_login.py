import pytest

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.sftp.login import Login, login_for, names_of_credentials

HOSTS = "host ssh-ed25519 AAAA"
KEY = "-----BEGIN OPENSSH PRIVATE KEY-----\nhidden\n"
GIVEN = {"SFTP_USERNAME": "ana", "SFTP_PASSWORD": "secret", "SFTP_KNOWN_HOSTS": HOSTS}


def login(uri="sftp://host/a", **variables):
    return login_for(parse_uri(uri), {k: v for k, v in {**GIVEN, **variables}.items() if v})


@pytest.mark.parametrize(
    ("uri", "expected", "address"),
    [
        ("sftp://host/a", ("ana", "host", 22), "host:22"),
        ("sftp://bo@host:2222/a", ("bo", "host", 2222), "host:2222"),
        ("ssh://bo@dots@host", ("bo@dots", "host", 22), "host:22"),
        ("sftp://[fd00::7]:24/a", ("ana", "fd00::7", 24), "[fd00::7]:24"),
    ],
)
def test_the_uri_names_user_host_and_port(uri, expected, address):
    found = login(uri)
    assert (found.user, found.host, found.port) == expected
    assert found.address == address


@pytest.mark.parametrize("host", ["host:0", "host:x", "host:99999", "[fd00::7"])
def test_an_address_that_is_none_is_refused(host):
    with pytest.raises(InvalidSpec, match="no valid host and port"):
        login(f"sftp://{host}/a")


@pytest.mark.parametrize(
    ("name", "words"),
    [("SFTP_USERNAME", "no user"), ("SFTP_PASSWORD", "neither a key nor"), ("SFTP_KNOWN_HOSTS", "host key")],
)
def test_what_is_missing_is_named(name, words):
    with pytest.raises(CredentialsMissing, match=words) as caught:
        login(**{name: ""})
    assert name in str(caught.value)
    assert "secret" not in str(caught.value).replace("the Secret", "")


def test_a_user_in_the_uri_needs_no_other():
    assert login("sftp://bo@host/a", SFTP_USERNAME="").user == "bo"


def test_keys_of_kubernetes_secrets_count_if_the_variables_are_not_set():
    names = {"username": "bo", "ssh-privatekey": KEY, "known_hosts": HOSTS}
    assert login_for(parse_uri("sftp://host/a"), names) == Login("host", 22, "bo", "", (KEY,), "", HOSTS)
    assert login(username="bo").user == "ana"
    assert names_of_credentials({**names, "AWS_REGION": "x"}) == ("known_hosts", "ssh-privatekey", "username")


def test_a_key_and_known_hosts_may_be_files(tmp_path):
    (tmp_path / "key").write_text(KEY)
    (tmp_path / "hosts").write_text(HOSTS)
    found = login(SFTP_PRIVATE_KEY=str(tmp_path / "key"), SFTP_KNOWN_HOSTS=str(tmp_path / "hosts"))
    assert (found.private_keys, found.known_hosts) == ((KEY,), HOSTS)
    with pytest.raises(InvalidSpec, match="SFTP_PRIVATE_KEY names cannot be read"):
        login(SFTP_PRIVATE_KEY=str(tmp_path / "none"))


def test_a_directory_has_what_the_variables_do_not(tmp_path):
    (tmp_path / "id_rsa").write_text("rsa")
    (tmp_path / "id_ed25519").write_text("ed")
    (tmp_path / "known_hosts").write_text(HOSTS)
    given = {"SFTP_SSH_DIR": str(tmp_path), "SFTP_KNOWN_HOSTS": ""}
    found = login(**given, SFTP_PASSWORD="")
    assert (found.private_keys, found.known_hosts) == (("ed", "rsa"), HOSTS)
    assert login(**given).private_keys == ()  # a password was chosen
    assert login(**given, SFTP_PRIVATE_KEY=KEY).private_keys == (KEY,)


def test_any_host_is_accepted_only_on_request():
    assert login(SFTP_INSECURE_IGNORE_HOST_KEY="true").known_hosts is None
    with pytest.raises(CredentialsMissing):
        login(SFTP_KNOWN_HOSTS="", SFTP_INSECURE_IGNORE_HOST_KEY="no")


def test_secrets_are_not_printed():
    assert "secret" not in repr(login(SFTP_PRIVATE_KEY=KEY))
