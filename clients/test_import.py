"""Files of other libraries are imported, or rejected if they are damaged."""

import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from service import EXECUTABLE, run

NAME = b"Roma W5 bench 3"


def dry_run(folder: Path, file: Path) -> subprocess.CompletedProcess[str]:
    command = [EXECUTABLE, "import", "--org", "Nursery", "--dry-run", str(file)]
    command += ["--database", f"sqlite:{folder / 'batchscan.db'}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("has_dictionary", [False, True])
def test_a_changed_byte_in_a_parquet_page_is_noticed_by_its_checksum(tmp_path, version, has_dictionary):
    run(tmp_path, "org", "add", "Nursery")
    columns = {
        "batch_id": ["b-1"],
        "batch_name": [NAME.decode()],
        "batch_creation_date": [datetime(2026, 1, 31, 8, tzinfo=UTC)],
        "number_of_images": [12],
        "warnings": [False],
    }
    file = tmp_path / "scans.parquet"
    for has_checksum in [False, True]:
        pyarrow.parquet.write_table(
            pyarrow.table(columns),
            file,
            compression="none",
            use_dictionary=has_dictionary,
            data_page_version=version,
            write_statistics=False,
            write_page_checksum=has_checksum,
        )
        assert dry_run(tmp_path, file).returncode == 0
        content = file.read_bytes()
        assert content.count(NAME) == 1
        file.write_bytes(content.replace(NAME, b"Romb W5 bench 3"))
        damaged = dry_run(tmp_path, file)
        # Without a checksum, nothing shows that the name is another one.
        assert (damaged.returncode != 0) == has_checksum, damaged.stderr
    assert "expected a complete Parquet file, found a damaged file" in damaged.stderr
    assert "checksum" in damaged.stderr
