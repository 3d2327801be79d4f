"""Tables of the scheduler's ledger. Names carry the prefix scheduler_, because on one machine the registry's ledger is the same file.

The migrations under adapters/migrations make them; a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

METADATA = MetaData()

NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only INTEGER keys

RUNS = Table(
    "scheduler_runs",
    METADATA,
    Column("run_id", String(200), primary_key=True),
    Column("run_json", Text, nullable=False),
)

GROUPS = Table(
    "scheduler_groups",
    METADATA,
    Column("group_id", String(220), primary_key=True),
    Column("run_id", String(200), nullable=False),
    Column("number", Integer, nullable=False),
    Column("state", String(20), nullable=False),
    Column("drop_reason", String(20)),
    Column("detail", Text, nullable=False),
    Column("task_id", String(400), nullable=False),
    Column("domain", String(200), nullable=False),
    Column("level", Integer, nullable=False),
    Column("rollouts_json", Text, nullable=False),
    Column("ready_members_json", Text, nullable=False),
    Column("admitted_at_s", Float, nullable=False),
    Column("changed_at_s", Float, nullable=False),
    Column("incarnation", Integer),
    Column("step", Integer),
    Column("task", LargeBinary, nullable=False),
    Index("scheduler_groups_order", "run_id", "number", unique=True),
    Index("scheduler_groups_state", "state"),
)

TASKS = Table(
    "scheduler_tasks",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("run_id", String(200), nullable=False),
    Column("task_id", String(400), nullable=False),
    Column("is_queued", Boolean, nullable=False),
    Column("task", LargeBinary, nullable=False),
    UniqueConstraint("run_id", "task_id", name="scheduler_tasks_name"),
)

QUARANTINE = Table(
    "scheduler_quarantine",
    METADATA,
    Column("run_id", String(200), primary_key=True),
    Column("task_id", String(400), primary_key=True),
)

SLOT_SECONDS = Table(
    "scheduler_slot_seconds",
    METADATA,
    Column("cause", String(40), primary_key=True),
    Column("seconds", Float, nullable=False),
)

OUTBOX = Table(
    "scheduler_outbox",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("topic", String(100), nullable=False),
    Column("key", String(400), nullable=False),
    Column("value", LargeBinary, nullable=False),
    Column("headers_json", Text, nullable=False),
)
