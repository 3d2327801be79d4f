"""Fixtures that several kinds of tests share: an empty PostgreSQL database a test, from one throw-away server."""

import itertools
import os
from collections.abc import Iterator

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from journeyman.testing.local_postgres import find_binaries, local_postgres
from journeyman.testing.missing import missing

os.environ.setdefault(
    "OMP_NUM_THREADS", "1"
)  # before torch is imported: two spinning threads on a busy machine collapse
_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    binaries = find_binaries()
    if binaries is None:
        missing("no PostgreSQL server: apt-get install postgresql")
    with local_postgres(binaries) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """SQLAlchemy URL of a database that nobody used before."""
    name = f"test_{next(_NUMBERS)}"
    engine = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return make_url(postgres_server).set(database=name).render_as_string(hide_password=False)
