import os

import xxhash

from podferry.sidecar.runtime.file_digest import digest_of


def test_the_rest_of_a_file_is_digested(tmp_path):
    data = os.urandom(2_500_000)
    (tmp_path / "file").write_bytes(data)
    with (tmp_path / "file").open("rb", buffering=0) as file:
        assert digest_of(file) == xxhash.xxh3_128_hexdigest(data)
        file.seek(1_000_000)
        assert digest_of(file) == xxhash.xxh3_128_hexdigest(data[1_000_000:])
