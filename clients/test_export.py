"""Compares every value of the exports with v1 and with `batchscan pull`, through other people's readers (decision 053)."""

import json
import subprocess
from base64 import b64encode
from pathlib import Path
from urllib.request import HTTPBasicAuthHandler, HTTPPasswordMgrWithDefaultRealm, build_opener

import pandas
import pytest
import requests

from batchscan.batch import KINDS
from service import EXECUTABLE, Service
from test_pull import compare_csv, compare_parquet, compare_xlsx, csv_text, typed


@pytest.fixture(scope="session")
def exports(service: Service, tmp_path_factory) -> Path:
    """A folder with an export of each format. The client sends its credentials when the service asks for them."""
    passwords = HTTPPasswordMgrWithDefaultRealm()
    passwords.add_password(None, service.url, service.client_id, service.client_secret)
    opener = build_opener(HTTPBasicAuthHandler(passwords))
    folder = tmp_path_factory.mktemp("exports")
    for name in ("csv", "ndjson", "parquet", "xlsx"):
        with opener.open(f"{service.url}/v2/export.{name}", timeout=300) as response:
            assert response.headers.get_filename() == f"batches.{name}"
            (folder / f"batches.{name}").write_bytes(response.read())
    return folder


def test_every_export_contains_the_values_of_v1(exports, v1_batches):
    compare_csv(exports / "batches.csv", v1_batches)
    assert [json.loads(line) for line in (exports / "batches.ndjson").open()] == v1_batches
    compare_parquet(exports / "batches.parquet", v1_batches)
    compare_xlsx(exports / "batches.xlsx", v1_batches)


@pytest.mark.parametrize("name", ["csv", "ndjson", "parquet", "xlsx"])
def test_an_export_has_the_bytes_of_a_pull(name, exports, service, tmp_path):
    command = [EXECUTABLE, "pull", "--output", str(tmp_path / f"batches.{name}")]
    subprocess.run(command, env=service.environment(tmp_path), check=True, timeout=300)
    assert (tmp_path / f"batches.{name}").read_bytes() == (exports / f"batches.{name}").read_bytes()


def test_pandas_reads_exports_from_the_url(service, v1_batches):
    secret = b64encode(f"{service.client_id}:{service.client_secret}".encode()).decode()
    options = {"storage_options": {"Authorization": f"Basic {secret}"}}
    frame = pandas.read_csv(f"{service.url}/v2/export.csv", dtype=str, keep_default_na=False, **options)
    assert list(frame.columns) == list(KINDS)
    assert frame.values.tolist() == [[csv_text(value) for value in batch.values()] for batch in v1_batches]
    frame = pandas.read_parquet(f"{service.url}/v2/export.parquet", **options)
    rates = [typed(batch)["avg_germination_rate"] for batch in v1_batches]
    assert list(frame["avg_germination_rate"]) == rates
    frame = pandas.read_excel(f"{service.url}/v2/export.xlsx", dtype={"batch_name": str}, **options)
    assert list(frame["batch_id"]) == [batch["batch_id"] for batch in v1_batches]


def test_dates_select_as_in_v1(service, v1_batches):
    dates = {"start_date": v1_batches[100]["batch_creation_date"], "end_date": v1_batches[200]["batch_creation_date"]}
    credentials = (service.client_id, service.client_secret)
    response = requests.get(f"{service.url}/v2/export.ndjson", dates, auth=credentials, timeout=300)
    assert [json.loads(line) for line in response.iter_lines()] == service.v1(**dates) != v1_batches
    etag = {"If-None-Match": response.headers["etag"]}
    again = requests.get(f"{service.url}/v2/export.ndjson", dates, auth=credentials, headers=etag, timeout=300)
    assert (again.status_code, again.content) == (304, b"")
