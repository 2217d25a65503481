"""Loads batches into the peers' databases.

Reads NDJSON as the API sends it (one organisation, eighteen fields per line)
and writes an SQLite file, PostgreSQL tables or a Parquet file, replacing what
exists. Memory does not grow with the input.
"""

import argparse
import asyncio
import hashlib
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import islice
from pathlib import Path

import orjson

DECIMALS = (
    "avg_germinated_seedlings",
    "avg_non_germinated_seedlings",
    "avg_germination_rate",
    "avg_usable_seedlings",
    "avg_non_usable_cells",
    "avg_usable_seedling_rate",
    "avg_coefficient_of_variation",
    "avg_median_seedling_size_mm2",
)
FIELDS = (
    "batch_id",
    "batch_name",
    "batch_creation_date",
    "crop_type",
    "number_of_images",
    "total_cells_per_tray",
    *DECIMALS,
    "scanned_by_email",
    "analysis_link",
    "comment",
    "warnings",
)
REQUIRED = {"batch_id", "batch_name", "batch_creation_date", "number_of_images", "warnings"}

CLIENTS_TABLE = (
    "CREATE TABLE clients (client_id TEXT PRIMARY KEY, client_secret_hash TEXT NOT NULL, organisation TEXT NOT NULL)"
)
POSITION_INDEX = "CREATE INDEX batches_by_position ON batches (organisation, batch_creation_date, batch_id)"

# About 15 MB of text: large enough that the cost per block does not matter.
BLOCK_ROWS = 20_000
# The rows of a response are adjacent; small groups let a reader skip the others.
PARQUET_ROW_GROUP_ROWS = 10_000

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Owner:
    """The organisation and its only credential."""

    organisation: str
    client_id: str
    client_secret: str

    def client_row(self) -> tuple[str, str, str]:
        """The row of `clients`. A random 256-bit secret does not need a slow hash."""
        digest = hashlib.sha256(self.client_secret.encode()).hexdigest()
        return self.client_id, digest, self.organisation


def main() -> None:
    arguments = read_arguments()
    owner = Owner(arguments.organisation, arguments.client_id, arguments.client_secret)
    if arguments.sqlite:
        run_timed("sqlite", lambda: load_sqlite(arguments.input, arguments.sqlite, owner))
    if arguments.postgres:
        run_timed("postgres", lambda: asyncio.run(load_postgres(arguments.input, arguments.postgres, owner)))
    if arguments.parquet:
        run_timed("parquet", lambda: load_parquet(arguments.input, arguments.parquet, owner))


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("input", type=Path, help="NDJSON of batches, as the API sends them")
    parser.add_argument("--organisation", required=True)
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--client-secret", required=True)
    parser.add_argument("--sqlite", type=Path, metavar="OUT.db")
    parser.add_argument("--postgres", metavar="DSN")
    parser.add_argument("--parquet", type=Path, metavar="OUT.parquet")
    arguments = parser.parse_args()
    if not (arguments.sqlite or arguments.postgres or arguments.parquet):
        parser.error("name at least one of --sqlite, --postgres, --parquet")
    return arguments


def run_timed(name, load) -> None:
    started = time.monotonic()
    rows = load()
    print(f"{name}: {rows} batches in {time.monotonic() - started:.1f} s", flush=True)


def read_rows(source: Path) -> Iterator[list]:
    """The eighteen values of each line, in the order of `FIELDS`."""
    with source.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            batch = orjson.loads(line)
            if len(batch) != len(FIELDS) or not all(field in batch for field in FIELDS):
                raise SystemExit(f"{source}, line {number}: expected the eighteen fields of a batch")
            yield [batch[field] for field in FIELDS]


# SQLite: integers, as it has no exact decimals.


def load_sqlite(source: Path, target: Path, owner: Owner) -> int:
    target.unlink(missing_ok=True)
    database = sqlite3.connect(target)
    # No protection against crashes: an incomplete file is thrown away.
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    columns = ", ".join(f"{field} {sqlite_type(field)}" for field in FIELDS)
    database.execute(f"CREATE TABLE batches (organisation TEXT NOT NULL, {columns})")
    database.execute(CLIENTS_TABLE)
    marks = ", ".join("?" * (1 + len(FIELDS)))
    rows = (sqlite_row(owner.organisation, values) for values in read_rows(source))
    count = database.executemany(f"INSERT INTO batches VALUES ({marks})", rows).rowcount
    database.execute("INSERT INTO clients VALUES (?, ?, ?)", owner.client_row())
    database.execute(POSITION_INDEX)
    database.commit()
    database.execute("ANALYZE")
    database.execute("PRAGMA journal_mode = DELETE")
    database.close()
    return count


def sqlite_type(field: str) -> str:
    whole = {"batch_creation_date", "number_of_images", "total_cells_per_tray", "warnings", *DECIMALS}
    return ("INTEGER" if field in whole else "TEXT") + (" NOT NULL" if field in REQUIRED else "")


def sqlite_row(organisation: str, values: list) -> list:
    row = [organisation, *values]
    row[3] = microseconds(values[2])
    for index in DECIMAL_INDEXES:
        text = values[index]
        row[index + 1] = None if text is None else int(text.replace(".", "", 1))
    return row


DECIMAL_INDEXES = tuple(FIELDS.index(field) for field in DECIMALS)


def microseconds(date: str) -> int:
    return (datetime.fromisoformat(date) - EPOCH) // MICROSECOND


# PostgreSQL: COPY reads the API's texts, so only escapes are needed.


async def load_postgres(source: Path, dsn: str, owner: Owner) -> int:
    import asyncpg

    connection = await asyncpg.connect(dsn)
    columns = ", ".join(f"{field} {postgres_type(field)}" for field in FIELDS)
    await connection.execute("DROP TABLE IF EXISTS batches, clients")
    await connection.execute(CLIENTS_TABLE)
    await connection.execute("INSERT INTO clients VALUES ($1, $2, $3)", *owner.client_row())
    await connection.execute(f"CREATE TABLE batches (organisation text NOT NULL, {columns})")
    status = await connection.copy_to_table("batches", source=copy_blocks(source, owner.organisation))
    await connection.execute(POSITION_INDEX)
    await connection.execute("VACUUM (ANALYZE) batches")
    await connection.close()
    return int(status.removeprefix("COPY "))


def postgres_type(field: str) -> str:
    types = dict.fromkeys(DECIMALS, "numeric(14,2)") | {
        # Ids are ordered by their bytes, whatever the locale.
        "batch_id": 'text COLLATE "C"',
        "batch_creation_date": "timestamptz",
        "number_of_images": "bigint",
        "total_cells_per_tray": "bigint",
        "warnings": "boolean",
    }
    return types.get(field, "text") + (" NOT NULL" if field in REQUIRED else "")


async def copy_blocks(source: Path, organisation: str) -> AsyncIterator[bytes]:
    rows = read_rows(source)
    while block := list(islice(rows, BLOCK_ROWS)):
        lines = ("\t".join(map(copy_text, (organisation, *values))) for values in block)
        yield ("\n".join(lines) + "\n").encode()


COPY_ESCAPES = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def copy_text(value) -> str:
    if value is None:
        return r"\N"
    if type(value) is not str:
        return str(value)
    # Faster than always translating, as few texts need it.
    needs_escape = "\\" in value or "\t" in value or "\n" in value or "\r" in value
    return value.translate(COPY_ESCAPES) if needs_escape else value


# Parquet: decimals and timestamps; pyarrow parses the lines.


def load_parquet(source: Path, target: Path, owner: Owner) -> int:
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema(
        [pyarrow.field("organisation", pyarrow.string(), nullable=False)]
        + [pyarrow.field(field, parquet_type(field), nullable=field not in REQUIRED) for field in FIELDS]
    )
    count = 0
    with source.open("rb") as lines, pyarrow.parquet.ParquetWriter(target, schema, compression="zstd") as writer:
        while block := list(islice(lines, BLOCK_ROWS)):
            writer.write_table(parquet_block(block, owner.organisation, schema), PARQUET_ROW_GROUP_ROWS)
            count += len(block)
    return count


def parquet_type(field: str):
    import pyarrow

    types = dict.fromkeys(DECIMALS, pyarrow.decimal128(14, 2)) | {
        "batch_creation_date": pyarrow.timestamp("us", tz="UTC"),
        "number_of_images": pyarrow.int64(),
        "total_cells_per_tray": pyarrow.int64(),
        "warnings": pyarrow.bool_(),
    }
    return types.get(field, pyarrow.string())


def parquet_block(lines: list[bytes], organisation: str, schema):
    import pyarrow
    import pyarrow.json

    text = b"".join(lines)
    source = pyarrow.schema([(f, pyarrow.string() if is_json_string(f) else schema.field(f).type) for f in FIELDS])
    table = pyarrow.json.read_json(
        pyarrow.BufferReader(text),
        read_options=pyarrow.json.ReadOptions(block_size=len(text) + 1),
        parse_options=pyarrow.json.ParseOptions(explicit_schema=source, unexpected_field_behavior="error"),
    )
    owner = pyarrow.repeat(organisation, len(table))
    columns = [table[field].cast(schema.field(field).type) for field in FIELDS]
    return pyarrow.table([owner, *columns], schema=schema)


def is_json_string(field: str) -> bool:
    return field not in {"number_of_images", "total_cells_per_tray", "warnings"}


if __name__ == "__main__":
    main()
