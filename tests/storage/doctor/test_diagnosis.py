"""Whole diagnoses of fakes and of the S3 server of these tests."""

from podferry.contract.uri import parse_uri
from podferry.storage.doctor.finding import Outcome
from podferry.storage.memory.store import CONTENTS
from podferry.storage.store import StoreConfig
from tests.support.doctor_site import fill, findings, outcomes, unused
from tests.support.store_calls import KEYS

READ = ["engine", "list", "read", "throughput"]
WRITTEN = ["write", "exclusive commit", "delete"]


async def test_a_healthy_store():
    uri = unused()
    await fill(uri)
    found = await findings(uri, write=True)
    assert list(found) == READ + WRITTEN
    assert set(outcomes(found).values()) == {Outcome.OK}
    assert found["list"].measured.startswith("1 names at the top")
    assert "8.6 MiB in" in found["throughput"].measured
    assert found["exclusive commit"].measured == "1 of 8 writers of one name succeeded"
    assert sorted(CONTENTS[parse_uri(uri).bucket].objects) == ["data/d/a", "data/d/b"]


async def test_nothing_is_written_unless_asked():
    uri = unused()
    await fill(uri)
    found = await findings(uri)
    assert outcomes(found)["write"] is Outcome.SKIPPED
    assert "--write" in found["write"].measured
    assert not any(call == "write" for call, _ in CONTENTS[parse_uri(uri).bucket].calls[2:])


async def test_a_single_object():
    uri = unused()
    await fill(uri)
    found = await findings(f"{uri}/d/a")
    assert found["list"].measured == "one file of 1000 B"
    assert found["read"].measured.startswith("1000 B of a in")


async def test_an_s3_server(moto, s3, fresh):
    config = StoreConfig(endpoint=moto, credentials=KEYS)
    uri = f"s3://bucket/{fresh.replace('%', '%25')}"
    await fill(uri, config)
    found = await findings(uri, config, write=True)
    ways = ["engine", "name", "connection", "TLS", "clock"]
    assert list(found) == [*ways, "list", "read", "throughput", *WRITTEN]
    assert {name for name, outcome in outcomes(found).items() if outcome is not Outcome.OK} == {"TLS"}
    assert "AWS_SECRET_ACCESS_KEY" in found["engine"].measured
    assert KEYS["AWS_SECRET_ACCESS_KEY"] not in str(found)
