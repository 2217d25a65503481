"""Tests of the rules. Run with `python3 -m unittest discover xtask/failover`."""

import json
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

from expected import VISIBLE_AFTER_SECS, Expected, Wrong
from load import Client, Counts, Failed, Response, Tally, process_id, verify_page, verify_unchanged
from mirrors import CommandFailed, Copy, ended_waits
from report import NODE_KILLED, Row, Writes, broken_rules, update

A = ("2026-01-01T00:00:01", "a")
# Half a second after `A`.
B = ("2026-01-01T00:00:01.5", "b")
C = ("2026-03-01T00:00:00", "c")
# Comes after `B`.
X = (B[0], "x")


def array(*positions) -> str:
    batches = [{"batch_id": batch_id, "batch_creation_date": date + "Z"} for date, batch_id in positions]
    return json.dumps(batches, separators=(",", ":"))


def is_right(verifier, *positions) -> bool:
    try:
        verifier.list(array(*positions))
        return True
    except Wrong:
        return False


class ExpectedTest(unittest.TestCase):
    def setUp(self):
        self.expected = Expected(array(B, A, C))

    def test_the_base_must_come_whole_once_and_in_order(self):
        self.assertTrue(is_right(self.expected.verifier(), A, B, C))
        for wrong in [(A, C), (A, A, B, C), (B, A, C), (A, B), (A, B, (B[0], "y"), C), ()]:
            self.assertFalse(is_right(self.expected.verifier(), *wrong), wrong)
        for text in ["[{", "", "{}", array(A, B, C) + "x", array(A, B, C)[:-1], array(A, B, C).replace('"a"', '"a","n":1')]:
            with self.assertRaises(Wrong):
                self.expected.verifier().list(text)

    def test_an_added_batch_may_come_once_in_its_place_and_must_come_after_it_was_acknowledged(self):
        self.assertFalse(is_right(self.expected.verifier(), A, B, X, C))
        self.expected.send(X)
        for right in [(A, B, C), (A, B, X, C)]:
            self.assertTrue(is_right(self.expected.final_verifier(), *right), right)
        for wrong in [(A, X, B, C), (A, B, X, X, C), (A, B, C, X)]:
            self.assertFalse(is_right(self.expected.final_verifier(), *wrong), wrong)
        self.expected.acknowledge(X)
        self.assertFalse(is_right(self.expected.final_verifier(), A, B, C))
        self.assertTrue(is_right(self.expected.verifier(), A, B, C), "not visible yet")
        later = time.monotonic() + 2 * VISIBLE_AFTER_SECS
        self.assertFalse(is_right(self.expected.verifier(None, later), A, B, C))

    def test_a_date_range_includes_its_ends_and_nothing_else(self):
        self.expected.send((C[0], "x"))
        self.assertEqual(self.expected.range(3, 1), (B[0], C[0]))
        first_two = (A[0], B[0])
        self.assertTrue(is_right(self.expected.verifier(first_two), A, B))
        self.assertFalse(is_right(self.expected.verifier(first_two), A, B, (C[0], "x")))

    def test_a_page_is_verified_and_yields_its_cursor(self):
        verify = lambda text: verify_page(self.expected.verifier(), text)
        self.assertEqual(verify(f'{{"data":{array(A)},"next_token":null}}'), {"next_token": None})
        self.assertEqual(verify(f'{{"data":{array(A)},"next_token":"c"}}'), {"next_token": "c"})
        for wrong in [f'{{"data":{array(A, A)},"next_token":null}}', f'{{"data":{array(A)}}}', array(A), "{}"]:
            with self.assertRaises(Wrong):
                verify(wrong)

    def test_a_304_must_be_about_the_sent_etag(self):
        response = Response(304, "x", None, "")
        verify_unchanged(self.expected, response, "x", time.monotonic())
        for sent in ["y", ""]:
            with self.assertRaises(Wrong):
                verify_unchanged(self.expected, response, sent, time.monotonic())


class ClientTest(unittest.TestCase):
    def test_whole_responses_are_read_and_cut_ones_are_broken(self):
        chunked = "transfer-encoding: chunked\r\n\r\n"
        for text, expected in [
            ("200 OK\r\ncontent-length: 3\r\n\r\nabc", (200, "abc")),
            (f"200 OK\r\n{chunked}2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", (200, "abc")),
            ("304 Not Modified\r\ncontent-length: 9\r\n\r\n", (304, "")),
            ("200 OK\r\n", None),
            ("200 OK\r\n\r\nabc", None),
            ("200 OK\r\ncontent-length: 3\r\n\r\nab", None),
            (f"200 OK\r\n{chunked}2\r\nab\r\n", None),
            (f"200 OK\r\n{chunked}5\r\nab", None),
        ]:
            for pause in (0, 0.001):
                self.assertEqual(self.receive(text, pause), expected, (text, pause))

    def receive(self, text: str, pause: float) -> tuple[int, str] | None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                self.wfile.write(f"HTTP/1.1 {text}".encode())

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            serving = threading.Thread(target=server.handle_request)
            serving.start()
            client = Client(server.server_port)
            try:
                response = client.get("/", "token", "etag", pause)
                return response.status, response.body
            except Failed as failed:
                self.assertEqual(failed.column, "broken")
                return None
            finally:
                client.connection.close()
                serving.join()


class TallyTest(unittest.TestCase):
    def test_every_outcome_has_its_column_and_only_streams_through_killed_nodes_are_cut(self):
        tally, broken = Tally(), lambda request_id: Failed("broken", "reset", request_id)
        tally.count("/v1/batches", 0, broken("aaaa-1"))
        tally.expect_kill(process_id("aaaa-15"))
        tally.count("/v1/batches", 0)
        for failed in [Failed("503", ""), Failed("other", ""), broken(None), Failed("wrong", "a gap"), broken("bbbb-1")]:
            tally.count("/v1/batches", 0, failed)
        tally.count("/v1/batches", 0, broken("aaaa-2"))
        tally.count("/v2/batches", 0, broken("aaaa-2"))
        counts = tally.take()
        self.assertEqual(list(counts.requests.values()), [1, 1, 1, 4, 1, 1])
        self.assertEqual((counts.failures(), len(counts.reasons)), (7, 5))
        self.assertEqual(tally.take(), Counts())


class MirrorsTest(unittest.TestCase):
    def test_lines_after_the_last_position_come_again(self):
        copy = Copy()
        copy.apply('{"batch":{"batch_id":"a"}}\n{"batch":{"batch_id":"b"}}\n{"since":"1"}\n{"removed":"a"}\n{"since":"2')
        self.assertEqual((copy.since, list(copy.batches)), ("1", ["a", "b"]))
        copy.apply('{"removed":"a"}\n{"since":"2"}\n')
        self.assertEqual((copy.since, list(copy.batches)), ("2", ["b"]))

    def test_waits_that_ended_are_counted_and_one_that_was_cut_is_an_error(self):
        line = lambda times, status, end: (
            f"127.0.0.1:1 [17/Nov/2026:18:00:00.000] clients nodes/node1 {times} {status} 150 - - {end} "
            '8/8/1/1/0 0/0 "GET /v2/changes?since=x&wait=45 HTTP/1.1"\n'
        )
        short, killed = line("0/0/0/3/3", 200, "----"), line("0/0/0/-1/4001", 200, "CD--")
        whole = line("0/0/0/45003/45003", 200, "----")
        self.assertEqual(ended_waits(short + killed + whole + whole + "node1 is UP\n"), 2)
        with self.assertRaises(CommandFailed):
            ended_waits(line("0/0/0/-1/60004", 503, "sH--"))


def row(event: str, *requests: int, gap=None) -> Row:
    counts = Counts(dict(zip(Counts().requests, requests)), requests[0] / 100)
    return Row(event, counts, gap)


class ReportTest(unittest.TestCase):
    def test_every_failure_and_every_loss_breaks_a_rule(self):
        for requests, count in [((9, 0, 0, 0, 0, 0), 0), ((9, 1, 0, 0, 0, 0), 1), ((9, 0, 0, 0, 1, 0), 1)]:
            self.assertEqual(len(broken_rules([row("standby killed", *requests)], Writes())), count)
        self.assertEqual(broken_rules([], Writes(lost=["added-1"])), ["lost: added-1"])

    def test_streams_may_only_be_cut_when_a_node_is_killed_or_right_after(self):
        broken = lambda *events: len(broken_rules([row(event, 5, 0, 0, 0, 0, 1) for event in events], Writes()))
        self.assertEqual(broken(NODE_KILLED, "primary killed"), 0)
        self.assertEqual(broken(NODE_KILLED, "primary killed", "standby killed"), 1)
        self.assertEqual(broken("rolling restart"), 1)

    def test_the_document_keeps_its_prose_and_gets_totals(self):
        rows = [
            row("primary killed", 3, 0, 0, 0, 0, 0, gap=(2, 1)),
            row(NODE_KILLED, 100, 0, 0, 0, 0, 1),
            row("primary killed", 4, 0, 0, 0, 0, 0, gap=(4, 1)),
        ]
        text = update("# Title\n\n## Results\n\nold\n", "cargo xtask failover", rows, Writes())
        self.assertTrue(text.startswith("# Title\n\n## Results\n\nWritten by `cargo xtask failover`."), text)
        self.assertIn("| primary killed | 2 | 7 | 0 | 0 | 0 | 0 | 0 | 0.04 s | 4.0 s, 1.0 s |", text)
        self.assertNotIn("old", text)
        with self.assertRaises(ValueError):
            update("# Title\n", "", rows, Writes())


if __name__ == "__main__":
    unittest.main()
