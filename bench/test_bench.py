"""Tests of the arithmetic, the verdicts and the checks. Run with `python3 -m unittest discover bench`."""

import json
import os
import unittest

from charts import draw_pages
from checks import check_batches
from report import Results, Target, document, number
from servers import cpu_times
from wrk import BenchError, Request, read_result

BATCH = {"batch_id": "a", "batch_creation_date": "2026-01-31T08:00:00.405Z", "avg_usable": "92.50", "warnings": True}


def row(entry: str, round_index: int, cpu_ms: float, **figures) -> dict:
    return {"section": "page-uncached", "entry": entry, "round": round_index, "cpu_ms": cpu_ms, **figures}


ROWS = [
    row("batchscan", 0, 1.0, rate=100), row("batchscan", 1, 2.0, rate=100), row("floor", 0, 0.5), row("floor", 1, 0.5),
    row("fastapi", 0, 8.0, rate=10, database_cpu_ms=2.0), row("fastapi", 1, 20.0, rate=20, database_cpu_ms=10.0),
]


class ReportTest(unittest.TestCase):
    def test_ratios_are_taken_within_a_round_and_include_the_database(self):
        measured = Results(ROWS).ratio("page-uncached", "fastapi", "batchscan")
        self.assertEqual((measured.median, measured.low, measured.high), (12.5, 11.25, 13.75))
        self.assertEqual(measured.spread(), 0.2)

    def test_the_widest_ratio_is_the_spread_of_a_scenario(self):
        self.assertEqual(Results(ROWS).spread("page-uncached"), 1 / 3)

    def test_the_document_has_ratios_floors_and_marks(self):
        text = document(Results(ROWS), {"date": "today"}, "run.py")
        self.assertIn("SQLite | FastAPI | 60× | 45× | **MISSED** by 72% | 12.5× | 11.2–13.8× **wide** |", text)
        self.assertIn("| FastAPI | 12.5× | 11.2–13.8× **wide** | 40.0× | 14.0 | 6.00 | 15.0 |", text)
        self.assertIn("| auth | FastAPI | 24× | 18× | not measured |", text)
        self.assertIn(">667<", draw_pages(Results(ROWS)))

    def test_verdicts(self):
        more = Target("", "", 60, 45, "")
        less = Target("", "", 1, 1.1, "", less_is_better=True)
        for target, median, verdict in [
            (more, 60, "goal met"),
            (more, 59.996, "goal met"),
            (more, 59, "acceptable"),
            (more, 36, "**MISSED** by 20%"),
            (less, 1.004, "goal met"),
            (less, 1.1, "acceptable"),
            (less, 1.21, "**MISSED** by 10%"),
        ]:
            self.assertEqual(target.verdict(median), verdict, (target, median))

    def test_numbers_have_three_significant_digits(self):
        values = {12345.6: "12,346", 99.96: "100", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.123"}
        self.assertEqual({value: number(value) for value in values}, values)


class CheckTest(unittest.TestCase):
    def test_another_form_of_the_same_date_is_accepted(self):
        longer = BATCH | {"batch_creation_date": "2026-01-31T08:00:00.405000Z"}
        check_batches(json.dumps({"data": [BATCH, longer]}).encode(), [BATCH, BATCH])

    def test_wrong_batches_are_rejected(self):
        wrong = [[], [BATCH, BATCH], [BATCH | {"batch_id": "b"}], [BATCH | {"avg_usable": "92.51"}]]
        wrong += [[BATCH | {"batch_creation_date": "2026-01-31T08:00:01Z"}], [BATCH | {"comment": None}]]
        for rows in wrong:
            with self.assertRaises(BenchError, msg=rows):
                check_batches(json.dumps(rows).encode(), [BATCH])


class CostTest(unittest.TestCase):
    def test_cpu_time_counts_up(self):
        before = cpu_times(os.getpid())[os.getpid()]
        sum(range(100_000))
        self.assertGreater(cpu_times(os.getpid())[os.getpid()], before)


class WrkTest(unittest.TestCase):
    def test_placeholders_count_up(self):
        self.assertEqual(Request("/?e={date}").fill(1_000_001).path, "/?e=2199-01-01T00:00:01.000001Z")
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
