"""The API as a good FastAPI developer writes it: response models, a pool, keyset pagination."""

from decimal import Decimal

import asyncpg
from fastapi import FastAPI
from fastapi.middleware.gzip import GZipMiddleware
from pydantic import AwareDatetime, BaseModel

from access import OUTAGES, Organisation, Pool, lifespan, router
from position import PAGE_ROWS, OptionalDate, Position


class Batch(BaseModel):
    batch_id: str
    batch_name: str
    batch_creation_date: AwareDatetime
    crop_type: str | None
    number_of_images: int
    total_cells_per_tray: int | None
    avg_germinated_seedlings: Decimal | None
    avg_non_germinated_seedlings: Decimal | None
    avg_germination_rate: Decimal | None
    avg_usable_seedlings: Decimal | None
    avg_non_usable_cells: Decimal | None
    avg_usable_seedling_rate: Decimal | None
    avg_coefficient_of_variation: Decimal | None
    avg_median_seedling_size_mm2: Decimal | None
    scanned_by_email: str | None
    analysis_link: str | None
    comment: str | None
    warnings: bool


class Page(BaseModel):
    data: list[Batch]
    next_token: str | None


app = FastAPI(title="Batch scan data", lifespan=lifespan, exception_handlers=OUTAGES)
app.add_middleware(GZipMiddleware)
app.include_router(router)

IN_ORDER = f"""
    SELECT {", ".join(Batch.model_fields)} FROM batches
    WHERE organisation = $1 AND (batch_creation_date, batch_id) > ($2, $3) AND batch_creation_date <= $4
    ORDER BY batch_creation_date, batch_id
"""
# One more row than a page shows whether another page follows.
ONE_PAGE = f"{IN_ORDER} LIMIT {PAGE_ROWS + 1}"


@app.get("/v1/batches")
async def list_v1(
    pool: Pool, organisation: Organisation, start_date: OptionalDate = None, end_date: OptionalDate = None
) -> list[Batch]:
    position = Position.parse(start_date, end_date, None)
    return await batches(pool, IN_ORDER, organisation, position)


@app.get("/v2/batches")
async def list_v2(
    pool: Pool,
    organisation: Organisation,
    start_date: OptionalDate = None,
    end_date: OptionalDate = None,
    next_token: str | None = None,
) -> Page:
    position = Position.parse(start_date, end_date, next_token)
    found = await batches(pool, ONE_PAGE, organisation, position)
    if len(found) <= PAGE_ROWS:
        return Page(data=found, next_token=None)
    last = found[PAGE_ROWS - 1]
    return Page(data=found[:PAGE_ROWS], next_token=position.after(last.batch_creation_date, last.batch_id))


async def batches(pool: asyncpg.Pool, query: str, organisation: str, position: Position) -> list[Batch]:
    rows = await pool.fetch(query, organisation, position.created, position.batch_id, position.end)
    return [Batch.model_validate(dict(row)) for row in rows]
