"""Runs the code blocks of each page in docs/recipes in an empty folder, and checks the files they write.

docs/recipes/README.md explains the comments that mark the blocks. The code for Excel is parsed in
node/clients.test.mjs.
"""

import csv
import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from scripted_service import ScriptedService, changes
from scripted_service import page as batches_page
from service import ROOT, Service, start_operator_api

PAGES = {path.stem: path for path in (ROOT / "docs/recipes").glob("*.md")}
# Far more than any block needs.
BLOCK_SECS_MAX = 300

COMMENT = re.compile(r"^<!-- (.*) -->$", re.M)
BLOCK = re.compile(r"\n```(\w+)\n(.*?\n)```$", re.M | re.S)
INTERPRETERS = {
    "bash": ["bash", "-euo", "pipefail"],
    "python": [sys.executable],
    "r": ["Rscript", "--no-init-file"],
}


@dataclass
class Step:
    action: str
    name: str
    language: str = ""
    text: str = ""


@pytest.mark.parametrize("page", sorted(PAGES.keys() - {"README", "excel-power-bi", "deliver-curl", "deliver-windows"}))
def test_a_recipe_writes_every_batch(page, service, v1_ids, tmp_path):
    checked = 0
    for number, step in enumerate(parse(PAGES[page].read_text())):
        if step.action == "save":
            (tmp_path / step.name).write_text(step.text)
        elif step.action == "run":
            block = tmp_path / f"block-{number}.{step.language}"
            block.write_text(step.text)
            run([*INTERPRETERS[step.language], block.name], service, tmp_path)
        else:
            assert read_ids(tmp_path / step.name) == v1_ids, f"{step.name} differs from v1"
            checked += 1
    assert checked, "no comment says which file contains every batch"


@pytest.mark.parametrize(
    ("page", "command", "copy"),
    [("curl", "bash keep.sh", "copy.ndjson"), ("dlt", "python changes.py", "copy.duckdb")],
)
def test_a_copy_follows_corrections_and_removals(page, command, copy, tmp_path):
    save_files(page, tmp_path)
    with ScriptedService() as scripted:
        scripted.batches.extend([changes("a", "b", since="p/1+=", more=True), changes("c", since="p2")])
        run(["bash", "-c", command], as_service(scripted), tmp_path)
        scripted.batches.append(changes("c", "d", removed=["b", "unknown"], since="p3"))
        run(["bash", "-c", command], as_service(scripted), tmp_path)
    queries = [request.query for request in scripted.requests_to("/v2/changes")]
    assert queries == [{}, {"since": "p/1+="}, {"since": "p2"}]
    assert read_ids(tmp_path / copy) == ["a", "c", "d"]


def test_a_file_is_delivered_once_or_rejected(tmp_path):
    save_files("deliver-curl", tmp_path)
    header, line = "batch_id,batch_name,batch_creation_date,number_of_images,warnings", "a,Tray,2026-01-31T08:00:00Z"
    (tmp_path / "scans 1.csv").write_text(f"{header}\n{line},1,false\n")
    (tmp_path / "invalid.csv").write_text(f"{header}\n{line},many,false\n")
    with start_operator_api(tmp_path, "--role", "ingest", "--org", "Nursery") as service:

        def deliver(name: str) -> "subprocess.CompletedProcess[str]":
            operator = {"BATCHSCAN_OPERATOR_URL": service.url, "BATCHSCAN_OPERATOR_TOKEN": service.client_secret}
            environment = {**service.environment(tmp_path), **operator, "BATCHSCAN_ORG": "Nursery"}
            command = ["bash", "deliver.sh", name]
            return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

        first, again, invalid = map(deliver, ["scans 1.csv", "scans 1.csv", "invalid.csv"])
    assert (first.returncode, first.stdout) == (0, "1 new, 0 corrected, 0 unchanged; warnings: 0\n"), first.stderr
    assert (again.returncode, again.stdout) == (0, "imported before: nothing was changed\n")
    assert invalid.returncode == 1 and "number_of_images" in invalid.stderr, invalid.stderr


def test_the_singer_tap_continues_from_its_state(tmp_path):
    save_files("singer", tmp_path)
    (tmp_path / "state.json").write_text('{"since": "p1"}')
    with ScriptedService() as scripted:
        scripted.batches.append(changes("a", removed=["b"], since="p2"))
        command = ["bash", "-c", "python tap_batchscan.py state.json > messages"]
        run(command, as_service(scripted), tmp_path)
    assert scripted.requests_to("/v2/changes")[0].query == {"since": "p1"}
    schema, changed, removed, state = map(json.loads, (tmp_path / "messages").read_text().splitlines())
    assert (schema["type"], changed["record"]["batch_id"]) == ("SCHEMA", "a")
    assert removed["record"].keys() == {"batch_id", "_sdc_deleted_at"} and removed["record"]["batch_id"] == "b"
    assert state == {"type": "STATE", "value": {"since": "p2"}}


def test_the_airbyte_stream_continues_from_its_position(tmp_path):
    save_files("airbyte", tmp_path)
    blocks = [step.text for step in parse(PAGES["airbyte"].read_text()) if step.action == "run"]
    with ScriptedService() as scripted:
        scripted.batches.extend([batches_page("a"), changes("a", since="p1", more=True), changes("b", since="p2")])
        for block in (blocks[0], blocks[-1]):
            run([*INTERPRETERS["bash"], "-c", block], as_service(scripted), tmp_path)
        scripted.batches.append(changes("c", removed=["a"], since="p3"))
        run([*INTERPRETERS["bash"], "-c", blocks[-1]], as_service(scripted), tmp_path)
    queries = [request.query for request in scripted.requests_to("/v2/changes")]
    assert queries == [{}, {"since": "p1"}, {"since": "p2"}]
    assert json.loads((tmp_path / "changes.jsonl").read_text())["removed"] == ["a"]
    assert (tmp_path / "config.json").stat().st_mode & 0o077 == 0


def test_an_unknown_comment_or_a_missing_block_fails():
    assert parse("<!-- run -->\n```bash\ntrue\n```\n") == [Step("run", "", "bash", "true\n")]
    block = "```bash\ntrue\n```\n"
    for page in [f"<!-- runs -->\n{block}", f"<!-- run -->\n\n{block}", "<!-- run -->\n```bash\n"]:
        with pytest.raises(AssertionError):
            parse(page)


def parse(page: str) -> list[Step]:
    steps = []
    for comment in COMMENT.finditer(page):
        action, _, name = comment[1].partition(": ")
        assert action in ("save", "run", "contains every batch"), f"unknown comment: {comment[0]}"
        block = BLOCK.match(page, comment.end())
        assert block or action == "contains every batch", f"no code block below {comment[0]}"
        steps.append(Step(action, name, *(block.groups() if block else ())))
    return steps


def save_files(page: str, folder: Path) -> None:
    for step in parse(PAGES[page].read_text()):
        if step.action == "save":
            (folder / step.name).write_text(step.text)


def as_service(scripted: ScriptedService) -> Service:
    return Service(scripted.url, "bs_scripted", scripted.client_secret)


def run(command: list[str], service: Service, folder: Path) -> None:
    environment = service.environment(folder)
    # Python and the Singer target of this virtual environment; Airbyte's program of the other.
    folders = [Path(sys.executable).parent, Path(sys.prefix).parent / "airbyte/bin"]
    environment["PATH"] = ":".join([*map(str, folders), environment["PATH"]])
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=BLOCK_SECS_MAX)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"


def read_ids(path: Path) -> list[str]:
    if path.suffix == ".csv":
        rows = csv.reader(path.read_text().splitlines())
        return [row[0] for row in rows if row[0] != "batch_id"]
    if path.suffix == ".json":
        return [batch["batch_id"] for batch in json.loads(path.read_text())]
    if path.suffix == ".duckdb":
        with duckdb.connect(str(path), read_only=True) as database:
            query = "select batch_id from nursery.batches order by batch_creation_date, batch_id"
            return [row[0] for row in database.execute(query).fetchall()]
    lines = map(json.loads, path.read_text().splitlines())
    if path.suffix == ".ndjson":
        return [batch["batch_id"] for batch in lines]
    return [message["record"]["data"]["batch_id"] for message in lines if message["type"] == "RECORD"]
