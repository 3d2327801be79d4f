"""The first ledger: policies, evaluations, results, decisions, outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")
IS_CHAMPION = sa.text("standing = 'champion'")


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "registry_policies",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("incarnation", sa.Integer, nullable=False),
        sa.Column("step", sa.Integer, nullable=False),
        sa.Column("ref_json", sa.Text, nullable=False),
        sa.Column("parent_json", sa.Text),
        sa.Column("made_by", sa.String(20), nullable=False),
        sa.Column("standing", sa.String(20), nullable=False),
        sa.UniqueConstraint("run_id", "incarnation", "step", name="registry_policies_name"),
    )
    op.create_index(
        "registry_policies_one_champion",
        "registry_policies",
        ["standing"],
        unique=True,
        sqlite_where=IS_CHAMPION,
        postgresql_where=IS_CHAMPION,
    )
    op.create_table(
        "registry_evaluations",
        sa.Column("evaluation_id", sa.String(200), primary_key=True),
        sa.Column("spec_json", sa.Text, nullable=False),
    )
    op.create_table(
        "registry_results",
        sa.Column(
            "evaluation_id", sa.String(200), sa.ForeignKey("registry_evaluations.evaluation_id"), primary_key=True
        ),
        sa.Column("group_id", sa.String(200), primary_key=True),
        sa.Column("task_id", sa.String(400), nullable=False),
        sa.Column("domain", sa.String(200), nullable=False),
        sa.Column("graded", sa.Boolean, nullable=False),
        sa.Column("passed", sa.Boolean, nullable=False),
        sa.Column("score", sa.Float, nullable=False),
    )
    op.create_table(
        "registry_decisions",
        sa.Column("decision_id", sa.String(200), primary_key=True),
        sa.Column("decision_json", sa.Text, nullable=False),
    )
    op.create_table(
        "registry_outbox",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("topic", sa.String(100), nullable=False),
        sa.Column("key", sa.String(400), nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("headers_json", sa.Text, nullable=False),
        sa.Column("is_published", sa.Boolean, nullable=False),
    )
    op.create_index("registry_outbox_waiting", "registry_outbox", ["is_published", "number"])
