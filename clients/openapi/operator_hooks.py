"""Hooks for schemathesis on the operator API: real organisations, credentials and files, which no schema can describe.

A positive case must be accepted by the service, so some of its values are replaced. Negative cases keep theirs.
"""

import itertools
import json
import os
import unicodedata
import urllib.request

import schemathesis

URL = os.environ["BATCHSCAN_URL"] + "/operator/v1/organisations"
HEADERS = {"Authorization": f"Bearer {os.environ['BATCHSCAN_CLIENT_SECRET']}"}
# No other case changes this batch: a file that empties stored values is rejected.
CSV = """batch_id,batch_name,batch_creation_date,number_of_images,warnings
b-csv,Tray,2026-01-31T08:00:00Z,1,false
"""
FILES = ("text/csv", "application/x-ndjson", "application/vnd.apache.parquet")
FILES += ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",)
numbers = itertools.count()


def post(path: str, body: dict) -> dict:
    request = urllib.request.Request(f"{URL}{path}", json.dumps(body).encode(), HEADERS)
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)


@schemathesis.serializer(*FILES)
def file_content(context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@schemathesis.hook
def before_call(context, case, kwargs):
    parameters = case.path_parameters or {}
    if case.path.endswith("/{name}") and parameters.get("name") == "Nursery":
        # The other cases need it.
        parameters["name"] = "Unknown"
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    # Half of the cases, so that unknown names are tested as well. Stateful tests have names of their own.
    is_stateful = case.meta.phase.name.value == "stateful"
    if "name" in parameters and not is_stateful and len(parameters["name"]) % 2 == 0:
        use_real_names(case, parameters)
    if "Idempotency-Key" in (case.headers or {}):
        case.headers["Idempotency-Key"] = f"key-{next(numbers)}"
    if "timezone" in (case.query or {}):
        case.query["timezone"] = "Europe/Berlin"
    if "mapping" in (case.query or {}):
        case.query["mapping"] = 'ignore = ["Notes"]'
    if case.media_type in FILES:
        case.media_type, case.body = "text/csv", CSV
    use_valid_body(case, parameters)


def use_real_names(case, parameters):
    parameters["name"] = "Nursery"
    if case.path.endswith("/{name}"):
        # It will be renamed or removed.
        parameters["name"] = post("", {"name": f"Organisation {next(numbers)}"})["name"]
    if "client_id" in parameters:
        parameters["client_id"] = post("/Nursery/credentials", {})["client_id"]


def is_invisible(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Zl", "Zp")


def use_valid_body(case, parameters):
    """Names without invisible characters, ids of at most 128 bytes, links that a browser would not repair, dates in the future, 7 instead of 7.0."""
    if "batch_id" in parameters:
        parameters["batch_id"] = "b-1"
    batches = case.body if isinstance(case.body, list) else [case.body]
    for number, batch in enumerate(one for one in batches if isinstance(one, dict)):
        if "batch_id" in batch:
            batch["batch_id"] = f"b-{number + 1}"
        if isinstance(batch.get("name"), str) and any(map(is_invisible, batch["name"])):
            batch["name"] = f"Organisation {next(numbers)}"
        if batch.get("analysis_link") is not None:
            batch["analysis_link"] = "https://example.org/report"
        if batch.get("expires_at") is not None:
            batch["expires_at"] = "2999-01-31T08:00:00+01:00"
        if isinstance(batch.get("retire_after_seconds"), float):
            batch["retire_after_seconds"] = int(batch["retire_after_seconds"])
