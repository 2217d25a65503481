"""The example of the package."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib.image

from service import Service

FOLDER = Path(__file__).parent.parent


def test_the_example_prints_a_table_and_draws_a_chart(service, tmp_path):
    picture = tmp_path / "germination.png"
    printed = run_example(service, picture)
    assert "worst_tenth" in printed and "Lettuce" in printed
    height, width, _ = matplotlib.image.imread(str(picture)).shape
    assert 1500 <= width <= 2500 and 700 <= height <= 1500
    # A blank image of that size has a few thousand bytes.
    assert 40_000 < picture.stat().st_size < 1_000_000
    assert service.client_secret not in printed


def run_example(service: Service, picture: Path) -> str:
    environment = {
        **os.environ,
        "BATCHSCAN_URL": service.url,
        "BATCHSCAN_CLIENT_ID": service.client_id,
        "BATCHSCAN_CLIENT_SECRET": service.client_secret,
        "PYTHONPATH": str(FOLDER / "src"),
    }
    command = [sys.executable, str(FOLDER / "examples" / "germination.py"), str(picture)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout
