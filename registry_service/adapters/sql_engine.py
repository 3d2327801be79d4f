"""Opens the registry's ledger: SQLAlchemy engine with the right transactions, tables brought up to date by Alembic.

Called by __main__ and by tests. On one machine the scheduler writes into the same SQLite file, so write transactions begin
IMMEDIATE: a deferred one that reads first fails at once, without waiting, when another process wrote in between.
"""

import asyncio
import logging
from pathlib import Path
from sqlite3 import Connection as SqliteConnection

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from journeyman.errors import ErrorCode, JourneymanError

WRITES = {"registry_writes": True}
"""Execution options of a transaction that writes."""

MIGRATIONS = Path(__file__).parent / "migrations"
BUSY_TIMEOUT_S = 30.0


async def open_engine(url: str) -> Engine:
    """An engine on an up-to-date ledger. INVALID_INPUT naming REGISTRY_LEDGER when the URL or the place is unusable."""
    return await asyncio.to_thread(_open, url)


def _open(url: str) -> Engine:
    try:
        engine = _create(url)
        with engine.execution_options(**WRITES).begin() as connection:
            upgrade(connection)
    except (ArgumentError, SQLAlchemyError, ModuleNotFoundError) as error:
        reason = str(error).splitlines()[0]
        raise JourneymanError(ErrorCode.INVALID_INPUT, f"REGISTRY_LEDGER={_without_password(url)}: {reason}") from error
    return engine


def upgrade(connection: Connection) -> None:
    """Runs the migrations that are missing, inside the caller's transaction."""
    logging.getLogger("alembic").setLevel(logging.WARNING)  # it announces every step at INFO
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _create(url: str) -> Engine:
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(parsed, pool_pre_ping=True, pool_size=4)
    engine = create_engine(parsed, connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: SqliteConnection, _record: object) -> None:
    connection.isolation_level = None  # the driver's own BEGIN would always be deferred
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("PRAGMA foreign_keys=ON")


def _begin_sqlite(connection: Connection) -> None:
    writes = connection.get_execution_options().get("registry_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _without_password(url: str) -> str:
    try:
        return make_url(url).render_as_string(hide_password=True)
    except ArgumentError:
        return "(not a URL)"
