"""Settings, the connection pool, credentials and bearer tokens.

Shared by the plain and the tuned application. Knows nothing about batches.
"""

import hashlib
import hmac
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Literal

import asyncpg
import jwt
from fastapi import APIRouter, Depends, FastAPI, Form, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel

DATABASE_URL = os.environ["DATABASE_URL"]
JWT_SECRET = os.environ["JWT_SECRET"]

TOKEN_TTL_SECS = 3600
# Per worker. More would only queue inside PostgreSQL.
POOL_CONNECTIONS = 10
# Longer than any query on a healthy database takes, including all batches for v1.
STATEMENT_TIMEOUT_SECS = 300
RETRY_AFTER_SECS = "3"


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with open_pool() as app.state.pool:
        yield


def open_pool(**options) -> asyncpg.Pool:
    return asyncpg.create_pool(
        DATABASE_URL,
        min_size=POOL_CONNECTIONS,
        max_size=POOL_CONNECTIONS,
        command_timeout=STATEMENT_TIMEOUT_SECS,
        **options,
    )


# Asynchronous, because FastAPI runs a plain function on a thread.
async def get_pool(request: Request) -> asyncpg.Pool:
    return request.app.state.pool


Pool = Annotated[asyncpg.Pool, Depends(get_pool)]


async def unavailable(_request: Request, _error: Exception) -> JSONResponse:
    return JSONResponse(
        {"detail": "The database is unreachable."}, status_code=503, headers={"Retry-After": RETRY_AFTER_SECS}
    )


OUTAGES = {
    OSError: unavailable,
    TimeoutError: unavailable,
    asyncpg.PostgresConnectionError: unavailable,
    asyncpg.CannotConnectNowError: unavailable,
    asyncpg.InterfaceError: unavailable,
}


class TokenRequest(BaseModel):
    client_id: str
    client_secret: str
    grant_type: Literal["client_credentials"]


class TokenResponse(BaseModel):
    access_token: str
    token_type: str = "bearer"
    expires_in: int = TOKEN_TTL_SECS


router = APIRouter()


@router.post("/v1/auth")
@router.post("/v2/auth")
async def auth(pool: Pool, response: Response, form: Annotated[TokenRequest, Form()]) -> TokenResponse:
    client = await pool.fetchrow(
        "SELECT client_secret_hash, organisation FROM clients WHERE client_id = $1", form.client_id
    )
    digest = hashlib.sha256(form.client_secret.encode()).hexdigest()
    if client is None or not hmac.compare_digest(digest, client["client_secret_hash"]):
        raise HTTPException(401, "Invalid client credentials", {"WWW-Authenticate": "Bearer"})
    response.headers["Cache-Control"] = "no-store"
    response.headers["Pragma"] = "no-cache"
    return TokenResponse(access_token=issue_token(form.client_id, client["organisation"]))


def issue_token(client_id: str, organisation: str) -> str:
    now = int(time.time())
    claims = {"sub": client_id, "org": organisation, "iat": now, "exp": now + TOKEN_TTL_SECS}
    return jwt.encode(claims, JWT_SECRET, algorithm="HS256")


bearer = HTTPBearer(auto_error=False)


async def calling_organisation(
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)],
) -> str:
    if credentials is None:
        raise HTTPException(401, "Not authenticated", {"WWW-Authenticate": "Bearer"})
    try:
        claims = jwt.decode(
            credentials.credentials, JWT_SECRET, algorithms=["HS256"], options={"require": ["exp", "sub", "org"]}
        )
    except jwt.InvalidTokenError:
        raise HTTPException(401, "Invalid access token", {"WWW-Authenticate": 'Bearer error="invalid_token"'}) from None
    return claims["org"]


Organisation = Annotated[str, Depends(calling_organisation)]
