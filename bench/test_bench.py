"""Tests of the arithmetic, the verdicts and the checks. Run with `python3 -m unittest discover bench`."""

import json
import tempfile
import unittest
from pathlib import Path

from charts import bar_length
from checks import check_batches, same_bytes, same_ids
from report import Results, Target, number, requests
from wrk import BenchError, Request, read_result

BATCH = {
    "batch_id": "a",
    "batch_creation_date": "2026-01-31T08:00:00.405Z",
    "avg_germination_rate": "92.50",
    "comment": None,
    "warnings": True,
}


def row(server: str, round_index: int, rate: float, cpu_ms: float = 1.0) -> dict:
    return requests("auth", server) | {"round": round_index, "rate": rate, "cpu_ms": cpu_ms}


class ReportTest(unittest.TestCase):
    def test_ratios_are_taken_within_a_round(self):
        rows = [row("batchscan", 0, 100), row("batchscan", 1, 300), row("fastapi", 0, 10), row("fastapi", 1, 20)]
        measured = Results(rows).ratio(requests("auth"), requests("auth", "fastapi"))
        self.assertEqual((measured.median, measured.low, measured.high), (12.5, 10, 15))
        self.assertEqual(measured.by_cpu, 1)

    def test_a_server_that_waits_is_noted(self):
        rows = [row("batchscan", 0, 1000, 0.5), row("fastapi", 0, 10, 100)]
        note = Results(rows).ratio(requests("auth"), requests("auth", "fastapi")).note
        self.assertEqual(note, "the other core was the bottleneck of batchscan, SQLite")

    def test_verdicts(self):
        more = Target("", "", 60, 45, lambda r: None)
        less = more._replace(goal=1, minimum=1.1, less_is_better=True)
        ahead = more._replace(goal=1, minimum=1)
        for target, median, verdict in [
            (more, 60, "goal met"),
            (more, 59.996, "goal met"),
            (more, 59, "acceptable"),
            (more, 36, "**MISSED** by 20%"),
            (less, 1.004, "goal met"),
            (less, 1.1, "acceptable"),
            (less, 1.21, "**MISSED** by 10%"),
            (ahead, 1.001, "goal met"),
            (ahead, 1, "**MISSED** by 0%"),
        ]:
            self.assertEqual(target.verdict(median), verdict, (target, median))

    def test_numbers_have_three_significant_digits(self):
        values = {12345.6: "12,346", 99.96: "100", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.123", None: ""}
        self.assertEqual({value: number(value) for value in values}, values)

    def test_the_longest_bar_fills_its_room(self):
        self.assertEqual(bar_length(1000, [10, 1000], True), bar_length(1000, [10, 1000], False))
        self.assertAlmostEqual(bar_length(10, [10, 1000], True) * 3, bar_length(1000, [10, 1000], True))


class CheckTest(unittest.TestCase):
    def test_other_forms_of_the_same_batch_are_accepted(self):
        check_batches(json.dumps({"data": [BATCH]}).encode(), [BATCH])
        date = {"batch_creation_date": 1769846400405000}
        datasette = BATCH | date | {"avg_germination_rate": 9250, "warnings": 1}
        check_batches(json.dumps([datasette]).encode(), [BATCH])
        roapi = BATCH | {"batch_creation_date": "2026-01-31T08:00:00.405000Z", "avg_germination_rate": 92.5}
        del roapi["comment"]
        check_batches(json.dumps([roapi]).encode(), [BATCH], omits_nulls=True)

    def test_wrong_batches_are_rejected(self):
        wrong = [[], [BATCH, BATCH], [BATCH | {"batch_id": "b"}], [BATCH | {"avg_germination_rate": "92.51"}]]
        wrong += [[BATCH | {"warnings": False}], [BATCH | {"comment": ""}], [BATCH | {"batch_creation_date": 5}]]
        wrong += [[{name: BATCH[name] for name in BATCH if name != "comment"}]]
        for rows in wrong:
            with self.assertRaises(BenchError, msg=rows):
                check_batches(json.dumps(rows).encode(), [BATCH])

    def test_v1_is_compared_by_bytes_or_ids(self):
        with tempfile.TemporaryDirectory() as folder:
            lines, body = Path(folder, "lines"), Path(folder, "body")
            lines.write_text('{"batch_id":"a"}\n{"batch_id":"b"}\n')
            for text, bytes_match, ids_match in [
                ('[{"batch_id":"a"},{"batch_id":"b"}]', True, True),
                ('[{"batch_id": "a"}, {"batch_id": "b"}]', False, True),
                ('[{"batch_id":"b"},{"batch_id":"a"}]', False, False),
                ('[{"batch_id":"a"}]', False, False),
            ]:
                body.write_text(text)
                self.assertEqual((same_bytes(body, lines), same_ids(body, lines)), (bytes_match, ids_match), text)


class WrkTest(unittest.TestCase):
    def test_placeholders_count_up(self):
        self.assertEqual(Request("/?e={date}").fill(1_000_001).path, "/?e=2199-01-01T00:00:01.000001Z")
        self.assertEqual(Request("/?e={number}").fill(7).path, "/?e=7226582400000007")
        self.assertEqual(Request("/?e=1{fraction}").fill(1_000_007).path, "/?e=1000007")

    def test_errors_and_small_responses_are_rejected(self):
        good = {"requests": 10, "duration_us": 1_000_000, "bytes": 1_000, "p50_us": 1, "p99_us": 2}
        good |= dict.fromkeys(("status", "connect", "read", "write", "timeout"), 0)
        self.assertEqual(read_result("result " + json.dumps(good), 100)["rate"], 10)
        for wrong, min_bytes in [({"status": 1}, 100), ({"requests": 0}, 100), ({}, 200), ({"bytes": 99_999}, 0)]:
            with self.assertRaises(BenchError):
                read_result("result " + json.dumps(good | wrong), min_bytes)


if __name__ == "__main__":
    unittest.main()
