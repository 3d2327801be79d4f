"""Tables of the registry's ledger. Names carry the prefix registry_, because on one machine the scheduler's ledger is the same file.

The migrations under adapters/migrations make them; a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)

METADATA = MetaData()

NUMBER = BigInteger().with_variant(Integer, "sqlite")  # SQLite counts up only INTEGER keys

POLICIES = Table(
    "registry_policies",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("run_id", String(200), nullable=False),
    Column("incarnation", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("ref_json", Text, nullable=False),
    Column("parent_json", Text),
    Column("made_by", String(20), nullable=False),
    Column("standing", String(20), nullable=False),
    UniqueConstraint("run_id", "incarnation", "step", name="registry_policies_name"),
    Index(
        "registry_policies_one_champion",
        "standing",
        unique=True,
        sqlite_where=text("standing = 'champion'"),
        postgresql_where=text("standing = 'champion'"),
    ),
)

EVALUATIONS = Table(
    "registry_evaluations",
    METADATA,
    Column("evaluation_id", String(200), primary_key=True),
    Column("spec_json", Text, nullable=False),
)

RESULTS = Table(
    "registry_results",
    METADATA,
    Column("evaluation_id", String(200), ForeignKey("registry_evaluations.evaluation_id"), primary_key=True),
    Column("group_id", String(200), primary_key=True),
    Column("task_id", String(400), nullable=False),
    Column("domain", String(200), nullable=False),
    Column("graded", Boolean, nullable=False),
    Column("passed", Boolean, nullable=False),
    Column("score", Float, nullable=False),
)

DECISIONS = Table(
    "registry_decisions",
    METADATA,
    Column("decision_id", String(200), primary_key=True),
    Column("decision_json", Text, nullable=False),
)

OUTBOX = Table(
    "registry_outbox",
    METADATA,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("topic", String(100), nullable=False),
    Column("key", String(400), nullable=False),
    Column("value", LargeBinary, nullable=False),
    Column("headers_json", Text, nullable=False),
    Column("is_published", Boolean, nullable=False, default=False),
    Index("registry_outbox_waiting", "is_published", "number"),
)
