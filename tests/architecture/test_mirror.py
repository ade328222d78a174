"""The tests mirror the code: a module's path leads to its tests, and back."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from tests.support.package_graph import ROOT

MIRRORED = ("cache", "cli", "contract", "sidecar", "storage", "webhook")

TESTED_ELSEWHERE = {
    "cache/holder/in_place_readers.py": "tests/cache/shared_stage/test_shared_stage.py",
    "cache/holder/next_version.py": "tests/cache/holder/test_refresher.py",
    "cache/holder/served_versions.py": "tests/cache/holder/test_refresher.py",
    "cache/holder/shared_fetch.py": "tests/cache/peers/test_shared_fill.py",
    "cache/holder/version.py": "tests/cache/holder/test_refresher.py",
    "contract/cache_api.py": "tests/cache/holder/test_server.py",
    "contract/http_api.py": "tests/sidecar/control/test_http_server.py",
    "contract/shared_stage.py": "tests/sidecar/dataset/test_shared_set.py",
    "sidecar/agent/worker.py": "tests/sidecar/agent/test_supervisor.py",
    "sidecar/checkpoint/detect/formats/verdict.py": "tests/sidecar/checkpoint/detect/test_format_checks.py",
    "sidecar/checkpoint/pipeline/dependencies.py": "tests/sidecar/checkpoint/pipeline/test_pipeline.py",
    "sidecar/config/tuning.py": "tests/docs/test_writers_page.py",
    "sidecar/dataset/dataset_placement.py": "tests/sidecar/dataset/test_dataset_job.py",
    "sidecar/fetch/source.py": "tests/sidecar/fetch/test_fetcher.py",
    **{
        f"storage/sftp/{name}.py": "tests/servers/test_sftp.py"
        for name in ("channel", "client", "connections", "directories", "errors", "pending_read", "store")
    },
    "storage/sftp/transfers.py": "tests/servers/test_sftp.py",
    **{
        f"storage/ftp/{name}.py": "tests/servers/test_ftp.py"
        for name in ("listed_lines", "session", "sessions", "store")
    },
    "storage/credentials/ambient.py": "tests/storage/credentials/test_sources.py",
    "storage/timeouts_and_limits.py": "tests/storage/fsspec/test_store.py",
    "storage/hadoop/files.py": "tests/servers/test_hdfs.py",
    "storage/hdfs/native_files.py": "tests/servers/test_hdfs.py",
    "storage/hdfs/store.py": "tests/servers/test_hdfs.py",
    "storage/store.py": "tests/storage/test_store_contract.py",
    "storage/doctor/finding.py": "tests/storage/doctor/test_diagnosis.py",
    "storage/webhdfs/files.py": "tests/servers/test_hdfs.py",
    "storage/webhdfs/store.py": "tests/servers/test_hdfs.py",
    "storage/engine.py": "tests/storage/test_engines.py",
    **{
        f"storage/smb/{name}.py": "tests/servers/smb/test_smb.py"
        for name in ("connections", "login", "store", "writes")
    },
    "storage/web/response.py": "tests/storage/web/test_file.py",
    "storage/smb/nt_status.py": "tests/storage/smb/test_errors.py",
}
"""Modules of values or protocols, or started as processes, and the tests that run them."""

UNMIRRORED = ("storage/*/engine.py", "storage/contract_suite/*.py")
"""Declarations, which tests/storage/test_engines.py compares with what is opened; tests of all engines."""

SUITES = {
    "tests/sidecar/sync/test_sync_between_stores.py",
    "tests/sidecar/sync/test_sync_of_archives.py",
    "tests/storage/ftp/test_hostile.py",
    "tests/storage/oss/test_imitation.py",
    "tests/storage/smb/test_hostile.py",
    "tests/storage/s3/test_foreign_responses.py",
    "tests/storage/test_hostile.py",
    "tests/storage/test_store_contract.py",
    "tests/storage/test_third_party_engine.py",
    "tests/storage/test_unlistable.py",
    "tests/webhook/test_every_scheme.py",
    "tests/webhook/test_golden.py",
}
"""Tests of several modules; more of them are in `SCENARIOS`."""

SCENARIOS = "tests/sidecar/scenarios/"


def files(folder: str, pattern: str) -> list[str]:
    return sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / folder).rglob(pattern))


def mirror_of(module: str) -> str:
    path = PurePosixPath("tests", module)
    return str(path.with_name(f"test_{path.name}"))


def modules(folder: str) -> list[str]:
    found = files(folder, "*.py")
    return [
        module
        for module in found
        if not module.endswith("__init__.py") and not any(map(PurePosixPath(module).match, UNMIRRORED))
    ]


@pytest.mark.parametrize("folder", MIRRORED)
def test_every_module_has_its_tests_at_the_mirrored_path(folder: str) -> None:
    untested = [module for module in modules(folder) if not (ROOT / mirror_of(module)).exists()]
    assert sorted(untested) == sorted(
        module for module in TESTED_ELSEWHERE if module.startswith(f"{folder}/")
    )


@pytest.mark.parametrize("folder", MIRRORED)
def test_every_test_file_names_a_module(folder: str) -> None:
    mirrors = set(map(mirror_of, modules(folder)))
    found = files(f"tests/{folder}", "test_*.py")
    assert [test for test in found if test not in mirrors | SUITES and not test.startswith(SCENARIOS)] == []


def test_the_tests_named_here_exist() -> None:
    assert [test for test in SUITES.union(TESTED_ELSEWHERE.values()) if not (ROOT / test).exists()] == []
