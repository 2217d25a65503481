"""Hooks for schemathesis: real credentials, cursors, positions and ids, which no schema can describe.

A positive case must be accepted by the service, so its generated credentials and cursors are replaced. Negative cases
stay as they are.
"""

import json
import os
import urllib.parse
import urllib.request

import schemathesis

URL = os.environ["BATCHSCAN_URL"]
CREDENTIALS = {
    "client_id": os.environ["BATCHSCAN_CLIENT_ID"],
    "client_secret": os.environ["BATCHSCAN_CLIENT_SECRET"],
}
DATES = ("start_date", "end_date")


def get(path: str) -> dict:
    form = urllib.parse.urlencode({**CREDENTIALS, "grant_type": "client_credentials"}).encode()
    with urllib.request.urlopen(f"{URL}/v2/auth", form, timeout=300) as response:
        token = json.load(response)["access_token"]
    request = urllib.request.Request(f"{URL}{path}", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)


first_page = get("/v2/batches")
first_changes = get("/v2/changes")
# Every cursor that was returned, with the dates of its request.
cursors = {first_page["next_token"]: {}}
# Every position that was returned.
positions = {first_changes["since"]}


@schemathesis.hook
def before_call(context, case, kwargs):
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    if case.path.endswith("/auth") and isinstance(case.body, dict) and len(case.body.get("client_id", "")) % 2 == 0:
        # About half of the cases, so that unknown credentials are tested as well.
        case.body = {**case.body, **CREDENTIALS}
    if case.path == "/v2/batches" and "next_token" in case.query:
        use_real_cursor(case.query)
    if case.path == "/v2/changes":
        if "since" in case.query and case.query["since"] not in positions:
            case.query["since"] = first_changes["since"]
        # Nothing changes, so it would always wait that long.
        if "wait" in case.query:
            case.query["wait"] = 0
    if case.path == "/v2/batches/{batch_id}" and len(case.path_parameters["batch_id"]) % 2 == 0:
        case.path_parameters["batch_id"] = first_page["data"][0]["batch_id"]


def use_real_cursor(query):
    """Dates next to a cursor must be those of its request (decision 021)."""
    if query["next_token"] not in cursors:
        query["next_token"] = next(iter(cursors))
    dates = [name for name in DATES if query.pop(name, None) is not None]
    query.update({name: text for name, text in cursors[query["next_token"]].items() if name in dates})


@schemathesis.hook
def after_call(context, case, response):
    if case.path == "/v2/batches" and case.method == "GET" and response.status_code == 200:
        cursor = response.json()["next_token"]
        if cursor is not None:
            cursors.setdefault(cursor, {name: case.query[name] for name in DATES if name in case.query})
    if case.path == "/v2/changes" and case.method == "GET" and response.status_code == 200:
        positions.add(response.json()["since"])
