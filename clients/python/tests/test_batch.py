"""Parsing and validation of a batch."""

import copy
import pickle
from datetime import datetime, timedelta, timezone
from decimal import Decimal

import pytest

from batchscan import Batch, NotBatchscan
from batchscan.batch import KINDS
from scripted_service import batch


def test_decimals_are_exact_and_the_date_is_in_utc():
    read = Batch.from_json(batch("b-1", batch_creation_date="2026-01-31T08:00:00.25Z"))
    assert str(read.avg_germination_rate) == "92.50"
    assert read.avg_median_seedling_size_mm2 is None
    assert read.batch_creation_date == datetime(2026, 1, 31, 8, 0, 0, 250_000, tzinfo=timezone.utc)
    assert read.batch_creation_date.utcoffset() == timedelta(0)


def test_unknown_fields_are_in_extra():
    read = Batch.from_json(batch("b-1", tray_colour="black", sensors={"left": 1}))
    assert read.extra == {"tray_colour": "black", "sensors": {"left": 1}}
    assert Batch.from_json(batch("b-1")).extra == {}


def test_a_nullable_field_may_be_missing():
    document = batch("b-1")
    del document["crop_type"]
    assert Batch.from_json(document).crop_type is None


def test_a_batch_is_immutable_and_can_be_copied_pickled_and_hashed():
    read = Batch.from_json(batch("b-1", tray_colour="black"))
    with pytest.raises(AttributeError):
        read.warnings = True
    assert not hasattr(read, "__dict__")
    assert pickle.loads(pickle.dumps(read)) == copy.deepcopy(read) == read
    assert len({read, copy.copy(read)}) == 1


def test_the_fields_and_their_order_are_those_of_the_api():
    assert list(KINDS) == list(batch("b-1")) == [name for name in Batch.__slots__ if name != "extra"]
    assert len(KINDS) == 18


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("batch_id", None),
        ("batch_name", 7),
        ("batch_name", "Roma \ud83d"),
        ("comment", "\udc00"),
        ("batch_creation_date", "2026-01-31T08:00:00"),
        ("batch_creation_date", "2026-02-30T08:00:00Z"),
        ("batch_creation_date", "2026-01-31"),
        ("number_of_images", True),
        ("number_of_images", "12"),
        ("number_of_images", 2**63),
        ("total_cells_per_tray", 1.5),
        ("avg_germination_rate", 92.5),
        ("avg_germination_rate", "92.5"),
        ("avg_germination_rate", "NaN"),
        ("avg_germination_rate", "٩٢.٥٠"),
        ("avg_germination_rate", "92.50\n"),
        ("warnings", None),
        ("warnings", 0),
    ],
)
def test_an_invalid_field_is_named(field, value):
    with pytest.raises(NotBatchscan) as caught:
        Batch.from_json(batch("b-1", **{field: value}) if field != "batch_id" else batch(value))
    assert field in str(caught.value) and "\n" not in str(caught.value)
    assert field == "batch_id" or "b-1" in str(caught.value)


@pytest.mark.parametrize("document", [None, [], "batch", 7])
def test_only_an_object_is_a_batch(document):
    with pytest.raises(NotBatchscan):
        Batch.from_json(document)


@pytest.mark.parametrize("extra", [{"colour": "\ud800"}, {"\ud800": 1}, {"colours": [{"left": "\ud800"}]}])
def test_an_unknown_field_must_be_valid_text(extra):
    with pytest.raises(NotBatchscan, match="batch b-1: .* not valid text"):
        Batch.from_json(batch("b-1", **extra))


def test_an_emoji_is_valid_text():
    assert Batch.from_json(batch("b-1", comment="\U0001f345")).comment == "\U0001f345"


def test_a_large_decimal_keeps_its_digits():
    read = Batch.from_json(batch("b-1", avg_usable_seedlings="-999999999999.99"))
    assert read.avg_usable_seedlings == Decimal("-999999999999.99")
