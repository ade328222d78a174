import pytest

from podferry.contract.secret_endpoints import secret_endpoint_problems


def problems(credentials: dict[str, str], *guards: list[str]) -> list[str]:
    return [str(one) for one in secret_endpoint_problems(credentials, guards)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("AWS_ENDPOINT_URL", "https://evil.example/"),
        ("AWS_ENDPOINT_URL_S3", "https://evil.example"),
        ("OSS_ENDPOINT", "https://evil.example"),
        ("FSSPEC_S3", '{"client_kwargs": {"endpoint_url": "https://evil.example"}}'),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;BlobEndpoint=https://evil.example;AccountKey=b"),
    ],
)
def test_endpoints_of_a_secret(name: str, text: str) -> None:
    assert problems({name: text}, ["*"], ["https://store.example"]) == [
        (
            f"the Secret's key {name}: the policy does not allow this endpoint (https://evil.example). "
            "Use one of the allowed endpoints: https://store.example."
        )
    ]
    assert problems({name: text}, ["*"]) == []
    assert problems({name: text}, ["https://evil.*"]) == []


@pytest.mark.parametrize("name", ["STORAGE_EMULATOR_HOST", "OSS_ENDPOINT", "URL"])
def test_an_endpoint_without_a_scheme(name: str) -> None:
    (problem,) = problems({name: "evil.example:80"}, [])
    assert "evil.example:80" in problem


def test_what_is_no_endpoint() -> None:
    credentials = {
        "AWS_ACCESS_KEY_ID": "key",
        "GOOGLE_SERVICE_ACCOUNT_KEY": '{"token_uri": "https://oauth2.googleapis.com/token"}',
        "HTTPS_PROXY": "http://proxy:3128",
        "AWS_ENDPOINT_URL": "",
        "FSSPEC_AZ_ACCOUNT_NAME": "lake1",
        "AZURE_STORAGE_CONNECTION_STRING": "AccountName=lake1;AccountKey=a+b/c==;EndpointSuffix=",
    }
    assert problems(credentials, []) == []


def test_a_metadata_service_is_never_allowed() -> None:
    (problem,) = problems({"AWS_ENDPOINT_URL": "http://169.254.169.254"}, ["*"])
    assert "a metadata service gives out the node's credentials" in problem


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("AWS_ENDPOINT_URL", "HTTPS://evil.example"),
        ("FSSPEC_S3_CLIENT_KWARGS", '{"endpoint_url": "https:\\/\\/evil.example"}'),
        ("FSSPEC_S3_CLIENT_KWARGS", '[{"endpoint_url": "https:\\u002f/evil.example"}]'),
        ("FSSPEC_AZ_ACCOUNT_HOST", "evil.example"),
        ("FSSPEC_AZ_ACCOUNT_NAME", "evil.example/"),
        ("FSSPEC_AZ_CONNECTION_STRING", "AccountName=evil.example/;AccountKey=b"),
        ("AZURE_STORAGE_CONNECTION_STRING", "BlobEndpoint=evil.example;AccountName=a"),
        ("FSSPEC_DBFS_INSTANCE", "evil.example"),
        ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=a;AccountKey=b;EndpointSuffix=evil.example"),
        ("HADOOP_CONF_DIR", "/podferry/claims/evil.example"),
    ],
)
def test_other_spellings_of_an_endpoint(name: str, text: str) -> None:
    (problem,) = problems({name: text}, ["https://store.example"])
    assert "evil.example" in problem
    assert "Use one of the allowed endpoints: https://store.example." in problem


@pytest.mark.parametrize(
    "text",
    [
        "<property><name>{}</name><value>evil:8020</value></property>",
        "<property><name>{}</name><value >evil:8020</value ></property>",
        "<property><name>{}</name><value>evil&#58;8020</value></property>",
        "<property><name>{}</name><value><![CDATA[evil:8020]]></value></property>",
        "<property><name>{}</name><value><!-- -->evil:8020</value></property>",
        "<property><value a='b'>evil:8020</value><name> {} </name></property>",
    ],
)
def test_the_name_nodes_of_a_configuration(text: str) -> None:
    """Read as the store reads it, not by the look of its text."""
    site = f"<configuration>{text.format('dfs.namenode.rpc-address.ha.nn1')}</configuration>"
    assert ["(evil:8020)" in one for one in problems({"hdfs-site.xml": site}, ["hdfs://nn1:8020"])] == [True]
    assert problems({"hdfs-site.xml": site}, ["hdfs://evil:8020"]) == []


def test_directories_of_other_name_nodes() -> None:
    site = """<configuration><property><name>fs.viewfs.mounttable.all.link./data</name>
<value>hdfs://evil:8020/private</value></property></configuration>"""
    (problem,) = problems({"core-site.xml": site}, ["hdfs://nn1*"])
    assert "hdfs://evil:8020" in problem


def test_what_is_no_address_in_a_configuration() -> None:
    site = """<configuration>
<property><name>fs.defaultFS</name><value>hdfs://ha</value></property>
<property><name>ha.zookeeper.quorum</name><value>zk1:2181,zk2:2181</value></property>
<property><name>dfs.replication</name><value>2</value></property>
</configuration>"""
    assert problems({"core-site.xml": site, "hdfs-site.xml": "<broken"}, []) == []


@pytest.mark.parametrize(
    "name", ["FSSPEC_S3_KEY", "FSSPEC_SMB_PASSWORD", "FSSPEC_GS_TOKEN", "FSSPEC_AZ_ACCOUNT_NAME"]
)
def test_who_opens_a_store_is_no_address(name: str) -> None:
    assert problems({name: "abc"}, []) == []


def test_a_password_in_an_endpoint_is_not_shown() -> None:
    for host in ("store.example", "169.254.169.254"):
        (problem,) = problems({"AWS_ENDPOINT_URL": f"https://me:pa55@{host}"}, [])
        assert "pa55" not in problem
        assert host in problem
