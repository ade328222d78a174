import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import Uri, escape, parse_uri, unescape

KEYS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40).map(
    lambda text: "/".join(text.split()).strip("/")
)
BUCKETS = st.from_regex(r"[a-z0-9][a-z0-9.-]{0,20}", fullmatch=True)
OPTIONS = st.sampled_from([(), (("engine", "fsspec"),), (("engine", "obstore"),)])
URIS = st.builds(Uri, st.sampled_from(["s3", "gs", "az", "bos", "oss", "http+x"]), BUCKETS, KEYS, OPTIONS)


@given(URIS)
def test_a_uri_survives_its_text(uri: Uri) -> None:
    assert parse_uri(str(uri)) == uri


@given(st.text())
def test_escaping_loses_nothing(text: str) -> None:
    assert unescape(escape(text)) == text
    assert not set("#?") & set(escape(text))


@given(st.text(max_size=60))
def test_any_text_parses_or_is_refused_with_a_remedy(text: str) -> None:
    try:
        uri = parse_uri(text)
    except InvalidSpec as error:
        remedies = [problem.remedy for problem in error.problems]
    else:
        remedies = [str(uri)]
        assert parse_uri(str(uri)) == uri
    assert all(remedies)


def test_an_absolute_path_is_a_file() -> None:
    assert parse_uri("/data/a b#1/") == Uri("file", "", "data/a b#1")
    assert str(parse_uri("/data/a b#1/")) == "file:///data/a b%231"


def test_locations_below_and_above() -> None:
    uri = parse_uri("s3://b/k?engine=fsspec")
    assert str(uri / "x/y/") == "s3://b/k/x/y?engine=fsspec"
    assert str(uri.root) == "s3://b/?engine=fsspec"
    assert str(uri.root / "x") == "s3://b/x?engine=fsspec"
    assert uri.engine == "fsspec"
    assert parse_uri("s3://b").engine is None


@pytest.mark.parametrize(
    ("root", "below"),
    [
        ("s3://b/", "x/y"),
        ("file:///", "x/y"),
        ("smb://me@nas/share", "x/y"),
        ("hf://datasets/org/name@main", "x/y"),
        ("hf://org/name", "x/y"),
        ("sftp://nas/", "x/y"),
    ],
)
def test_nothing_is_above_a_bucket_a_share_and_a_repository(root: str, below: str) -> None:
    top, uri = parse_uri(root), parse_uri(root) / below
    assert (uri.root, uri.parent.parent, uri.parent, uri.name) == (top, top, top / "x", "y")
    assert (top.root, top.parent, top.name) == (top, top, "")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("digits", "not a URI"),
        ("S3://b/k", "not a URI"),
        ("://b", "not a URI"),
        ("s3:///k", "names no bucket"),
        ("s3://b/k#x", "a fragment is not allowed here"),
        ("http://h/a/.", "Write http://h/a."),
        ("http://h/../x/?engine=obstore", "Write http://h/x/."),
        ("webdavs://h/./a", "Write webdavs://h/a."),
        ("https://h/.", "Write https://h/."),
        ("file://host/k", "must not name a host"),
        ("s3://b/k?engin=x", "Did you mean 'engine'?"),
        ("s3://b/k?engine=obstor", "Did you mean 'obstore'?"),
        ("s3://b/k?engine=nonsense", "Known: obstore, oss, hdfs,"),
    ],
)
def test_invalid_uris_are_refused(text: str, message: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_uri(text)
    assert message in str(caught.value)


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_uri("s3:///k?engine=x&speed=1")
    assert len(caught.value.problems) == 3


def test_a_bucket_without_a_scheme_is_recognized() -> None:
    with pytest.raises(
        InvalidSpec, match=r"Did you mean s3://bucket/x\? If it is a local path, write the absolute one"
    ):
        parse_uri("bucket/x")


@pytest.mark.parametrize("text", ["./bucket/x", "../x", "~/x", "x"])
def test_the_remedy_for_a_relative_path_is_an_absolute_one(text: str) -> None:
    with pytest.raises(InvalidSpec, match=r"absolute path\.$"):
        parse_uri(text)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{{$.inputs.parameters['pipelinechannel--out']}}/models", "KFP has not filled in this text"),
        ("s3://results/{{$.pipeline_job_name}}", "KFP has not filled in this text"),
        ("null/models", "not a URI"),
    ],
)
def test_what_kfp_has_not_filled_in_is_named(text: str, what: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_uri(text)
    (problem,) = caught.value.problems
    assert (problem.what, problem.measured) == (what, repr(text))
    assert "Pass the parts, and join them where they are used" in problem.remedy


@pytest.mark.parametrize(
    "text",
    [
        "sftp://me:s3cret@host/x",
        "https://me:s3cret@host/x#y?z=1",
        "smb://LAB;me:s3cret@[::1]:445/s",
        "ftp://u:pa/s3cret@h/x",
        'ftp://me:a"s3cret@nas/x',
    ],
)
def test_a_password_in_a_uri_is_refused_and_never_shown(text):
    with pytest.raises(InvalidSpec, match="must not have a password") as caught:
        parse_uri(text)
    assert "s3cret" not in str(caught.value)
    assert "_PASSWORD" in caught.value.problems[0].remedy


@pytest.mark.parametrize("before", ["", "s3cret", "a@s3cret"])
@pytest.mark.parametrize(
    "character", ["/", "?", "#", "'", '"', " ", "\n", ":", "%", "?=", "&", "{", "'/", "@"]
)
@pytest.mark.parametrize("scheme", ["s3", "sftp", "hdfs", "s4"])
def test_whatever_a_password_has_in_it_is_not_shown(scheme: str, character: str, before: str) -> None:
    for parse in (parse_uri, parse_reference):
        with pytest.raises(InvalidSpec, match="must not have a password") as caught:
            parse(f"{scheme}://AKIA:{before}{character}s3cret{character}@bucket/x@1")
        assert "s3cret" not in str(caught.value)
        assert "belong in the Secret" in str(caught.value)


def test_a_user_without_a_password_is_part_of_the_host():
    assert parse_uri("sftp://me@[::1]:22/x").bucket == "me@[::1]:22"


@pytest.mark.parametrize(
    "text",
    [
        "https://elsewhere.example\\.lab/x",
        "sftp://nas evil/x",
        "ftp://nas\r\nDELE x/y",
        "s3://da\tta/x",
        "smb://<nas>/share",
        "webdav://na{s}/x",
    ],
)
def test_characters_that_no_host_has(text: str) -> None:
    with pytest.raises(InvalidSpec, match="characters that none has"):
        parse_uri(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://[::1].lab.example/x",
        "sftp://me@lab[::1]/x",
        "ftp://[::1/x",
        "s3://[::1]/x",
        "webdav://[::1]:80.lab/x",
    ],
)
def test_only_a_complete_address_is_in_brackets(text: str) -> None:
    with pytest.raises(InvalidSpec, match="only a complete address of IPv6 is in brackets"):
        parse_uri(text)


@pytest.mark.parametrize(
    "text",
    [
        "https://h:80.lab/x",
        "webhdfs://h:99999/x",
        "sftp://me@nas:ssh/x",
        "smb://[::1]:x/y",
    ],
)
def test_a_port_is_a_number(text: str) -> None:
    with pytest.raises(InvalidSpec, match=r"no valid host and port|only a complete address"):
        parse_uri(text)


@pytest.mark.parametrize(
    "text", ["hdfs:///data", "sftp://@/data", "ftp://me@/data", "sftp://:22/data", "smb://"]
)
def test_a_uri_without_a_host(text: str) -> None:
    with pytest.raises(InvalidSpec, match=r"names no host .* Write \w+://HOST/"):
        parse_uri(text)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("sftp://nas:data/digits", "Write sftp://nas/data/digits or sftp://nas:PORT/digits"),
        ("sftp://me@nas:data", "Write sftp://me@nas/data or sftp://me@nas:PORT/"),
        ("ftp://nas:99999/x", "Write ftp://nas:PORT/x"),
        ("smb://nas\\share\\x", "Write smb://nas/share/x"),
        ("sftp://[fd00::7/x", "Write sftp://HOST/x"),
    ],
)
def test_the_remedy_for_a_host_has_the_path(text: str, remedy: str) -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_uri(text)
    assert caught.value.problems[0].remedy == remedy


@pytest.mark.parametrize(
    "text",
    [
        "sftp://[fd00::1]:22/x",
        "smb://LAB;me@nas/x",
        "hdfs://nn1:8020/x",
        "abfss://c@a.dfs.core.windows.net/x",
    ],
)
def test_hosts_with_users_and_ports(text: str) -> None:
    assert str(parse_uri(text)) == text


def test_a_signature_belongs_in_the_secret() -> None:
    with pytest.raises(InvalidSpec, match="belong in the Secret") as caught:
        parse_uri("https://store.example/digits?X-Amz-Signature=0a1b2c")
    assert "0a1b2c" not in str(caught.value)
