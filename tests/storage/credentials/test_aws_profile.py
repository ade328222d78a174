"""Profiles of Amazon's shared files; see `test_sources` for what stores get of them."""

import pytest

from podferry.storage.credentials.aws_profile import profile_variables, read_profile


@pytest.fixture
def environ(tmp_path):
    (tmp_path / "config").write_text(
        "[default]\nregion = d\n[profile one]\nregion = r\nsso_session = corp\n[one]\nregion = wrong\n"
    )
    (tmp_path / "credentials").write_text("[one]\naws_access_key_id = hunter2\n")
    names = {"AWS_CONFIG_FILE": "config", "AWS_SHARED_CREDENTIALS_FILE": "credentials"}
    return {name: str(tmp_path / file) for name, file in names.items()}


def test_a_profile_has_the_settings_of_both_files(environ):
    found = read_profile({**environ, "AWS_PROFILE": "one"})
    assert found.settings == {"region": "r", "sso_session": "corp", "aws_access_key_id": "hunter2"}
    assert "hunter2" not in repr(found)
    variables = profile_variables({**environ, "AWS_PROFILE": "one"})
    assert variables == {"AWS_DEFAULT_REGION": "r", "AWS_ACCESS_KEY_ID": "hunter2"}


def test_without_a_name_it_is_the_default_one(environ):
    found = read_profile({**environ, "AWS_PROFILE": ""})
    assert (found.name, found.settings) == ("default", {"region": "d"})
    assert read_profile({}).settings == {}
