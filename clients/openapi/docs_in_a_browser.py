"""Opens /docs in a real browser: reads the document, signs in, tries an operation out.

Fails if anything is asked of another server, or if the page's own fence (its Content-Security-Policy) stopped it.
"""

import os
import shutil
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect, sync_playwright

URL = os.environ["BATCHSCAN_URL"]
# The machine is shared; a page takes a second or two.
LIMIT_MILLIS = 30_000


def main() -> None:
    with sync_playwright() as playwright:
        # No sandbox: tests may run as root, and the page is our own.
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        page.set_default_timeout(LIMIT_MILLIS)
        expect.set_options(timeout=LIMIT_MILLIS)
        complaints, hosts = [], set()
        page.on("console", lambda said: said.type in ("warning", "error") and complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
        for path in ("/docs/", "/docs"):
            page.goto(URL + path)
            expect(page).to_have_title("batchscan API")
            expect(page.locator("#operations-Batches-listBatches")).to_be_visible()
        operations = page.locator(".opblock").count()
        sign_in(page)
        shown = try_out(page)
        browser.close()
    assert hosts == {urlsplit(URL).netloc}, hosts
    assert complaints == [], complaints
    print(f"/docs: {operations} operations, signed in, {shown} by trying it out, nothing from elsewhere")


def sign_in(page: Page) -> None:
    page.locator(".auth-wrapper button.authorize").click()
    scheme = page.locator(".auth-container").filter(has_text="OAuth2, clientCredentials")
    expect(scheme.locator("#client_id_clientCredentials")).to_be_focused()
    scheme.locator("#client_id_clientCredentials").fill(os.environ["BATCHSCAN_CLIENT_ID"])
    scheme.locator("#client_secret_clientCredentials").fill(os.environ["BATCHSCAN_CLIENT_SECRET"])
    scheme.locator("button.authorize").click()
    expect(scheme.locator("button", has_text="Logout")).to_be_visible()
    page.locator(".close-modal").click()


def try_out(page: Page) -> str:
    operation = page.locator("#operations-Batches-listBatches")
    operation.locator(".opblock-summary-control").click()
    operation.locator(".try-out__btn").click()
    with page.expect_response(lambda response: "/v2/batches" in response.url) as answered:
        operation.locator("button.execute").click()
    batches = answered.value.json()["data"]
    expect(operation.locator(".live-responses-table .response-col_status").nth(1)).to_contain_text("200")
    assert len(batches) == 1000, len(batches)
    return f"{len(batches)} batches"


main()
