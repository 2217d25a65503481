"""Checks /openapi.json and /docs with other people's programs."""

import datetime
import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from service import ROOT, Service, start_demo, start_operator_api

FOLDER = ROOT / "clients/openapi"
BIN = Path(sys.executable).parent
# The same requests in every run. Set OPENAPI_SEED to generate others.
SEED = os.environ.get("OPENAPI_SEED", "1")
PAGE_MILLIS_MAX = 300_000


@pytest.fixture
def document(service: Service, tmp_path: Path) -> Path:
    return download(f"{service.url}/openapi.json", tmp_path)


def download(url: str, folder: Path) -> Path:
    path = folder / "openapi.json"
    with urlopen(url, timeout=300) as response:
        path.write_bytes(response.read())
    return path


def run_schemathesis(service: Service, document: Path, name: str) -> None:
    environment = {**service.environment(document.parent), "SCHEMATHESIS_HOOKS": str(FOLDER / f"{name}_hooks.py")}
    command = [BIN / "schemathesis", "--config-file", FOLDER / f"{name}_schemathesis.toml", "run", document]
    done = subprocess.run(
        [*map(str, command), "--url", service.url, "--seed", SEED],
        env=environment, cwd=document.parent, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr
    generated, passed = re.search(r"Test cases:\s+([\d,]+) generated, ([\d,]+) passed", done.stdout).groups()
    assert generated == passed and int(generated.replace(",", "")) > 500, done.stdout


def test_schemathesis_finds_no_difference(service, document):
    run_schemathesis(service, document, "public")


def test_schemathesis_finds_no_difference_in_the_operator_api(tmp_path):
    with start_operator_api(tmp_path, "--role", "admin") as service:
        document = download(f"{service.url}/operator/v1/openapi.json", tmp_path)
        run_schemathesis(service, document, "operator")


def test_a_generated_client_reads_every_batch(service, document, tmp_path, monkeypatch):
    command = [BIN / "openapi-python-client", "generate", "--meta", "none", "--fail-on-warning", "--path", document]
    command += ["--config", FOLDER / "generator.yaml", "--output-path", tmp_path / "generated_client"]
    subprocess.run([*map(str, command)], cwd=tmp_path, check=True, timeout=300)
    monkeypatch.syspath_prepend(tmp_path)
    generated, models = import_module("generated_client"), import_module("generated_client.models")
    list_batches = import_module("generated_client.api.batches.list_batches")
    list_batches_v1 = import_module("generated_client.api.batches.list_batches_v1")
    get_token = import_module("generated_client.api.tokens.get_token")

    def request_token(secret: str):
        client = generated.Client(base_url=service.url, raise_on_unexpected_status=True)
        body = models.TokenRequest(grant_type="client_credentials", client_id=service.client_id, client_secret=secret)
        return get_token.sync(client=client, body=body)

    token, error = request_token(service.client_secret), request_token("not-a-valid-secret")
    assert isinstance(token, models.Token) and token.token_type == "bearer"
    assert isinstance(error, models.TokenError) and error.error == "invalid_client"

    client = generated.AuthenticatedClient(
        base_url=service.url, token=token.access_token, raise_on_unexpected_status=True
    )
    pages = [list_batches.sync(client=client)]
    while pages[-1].next_token is not None and len(pages) < 50:
        pages.append(list_batches.sync(client=client, next_token=pages[-1].next_token))
    batches = [batch for page in pages for batch in page.data]
    assert len(pages) > 1 and batches == list_batches_v1.sync(client=client)
    for batch in batches:
        assert batch.batch_creation_date.utcoffset() == datetime.timedelta(0)
        assert batch.avg_germination_rate is None or isinstance(batch.avg_germination_rate, str)
        assert isinstance(batch.number_of_images, int) and isinstance(batch.warnings, bool)
    assert any(batch.comment is None for batch in batches)

    # The generated client writes dates with an offset.
    dates = {"start_date": batches[100].batch_creation_date, "end_date": batches[200].batch_creation_date}
    page = list_batches.sync_detailed(client=client, **dates)
    assert page.parsed.data == batches[100:201]
    again = list_batches.sync_detailed(client=client, **dates, if_none_match=page.headers["etag"])
    assert again.status_code == 304

    list_changes = import_module("generated_client.api.batches.list_changes")
    changes = [list_changes.sync(client=client)]
    while changes[-1].more and len(changes) < 50:
        changes.append(list_changes.sync(client=client, since=changes[-1].since))
    assert [batch for part in changes for batch in part.data] == batches
    get_batch = import_module("generated_client.api.batches.get_batch")
    assert get_batch.sync(batches[7].batch_id, client=client) == batches[7]

    naive = list_batches.sync(client=client, start_date=datetime.datetime(2026, 1, 31))
    assert isinstance(naive, models.InvalidQuery)
    assert [(error.type_, error.loc) for error in naive.detail] == [("timezone_aware", ["query", "start_date"])]


def test_docs_work_in_a_browser_and_load_nothing_from_elsewhere():
    chromium = shutil.which("chromium")
    assert chromium, "chromium not found; install the package chromium"
    expect.set_options(timeout=PAGE_MILLIS_MAX)
    # Console messages include violations of the Content-Security-Policy.
    messages: list[str] = []
    hosts: set[str] = set()
    # A small page, because Swagger UI takes long to highlight a full one.
    with start_demo("--batches", "50") as service, sync_playwright() as playwright:
        # Without the sandbox, because tests may run as root.
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(PAGE_MILLIS_MAX)
        page.on("console", lambda message: message.type in ("warning", "error") and messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        for path in ("/docs/", "/docs"):
            page.goto(service.url + path)
            expect(page).to_have_title("batchscan API")
            expect(page.locator("#operations-Batches-listBatches")).to_be_visible()
        sign_in(page, service)
        assert try_out(page) == 50
        browser.close()
    assert hosts == {urlsplit(service.url).netloc}
    assert messages == []


def sign_in(page: Page, service: Service) -> None:
    page.locator(".auth-wrapper button.authorize").click()
    scheme = page.locator(".auth-container").filter(has_text="OAuth2, clientCredentials")
    expect(scheme.locator("#client_id_clientCredentials")).to_be_focused()
    scheme.locator("#client_id_clientCredentials").fill(service.client_id)
    scheme.locator("#client_secret_clientCredentials").fill(service.client_secret)
    scheme.locator("button.authorize").click()
    expect(scheme.locator("button", has_text="Logout")).to_be_visible()
    page.locator(".close-modal").click()


def try_out(page: Page) -> int:
    """The number of batches in the response."""
    operation = page.locator("#operations-Batches-listBatches")
    operation.locator(".opblock-summary-control").click()
    operation.locator(".try-out__btn").click()
    with page.expect_response(lambda response: "/v2/batches" in response.url) as response:
        operation.locator("button.execute").click()
    expect(operation.locator(".live-responses-table .response-col_status").nth(1)).to_contain_text("200")
    return len(response.value.json()["data"])
