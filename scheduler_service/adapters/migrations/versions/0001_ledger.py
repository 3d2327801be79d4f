"""The first ledger: runs, groups, tasks, quarantine, slot-seconds, outbox."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

NUMBER = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "scheduler_runs",
        sa.Column("run_id", sa.String(200), primary_key=True),
        sa.Column("run_json", sa.Text, nullable=False),
    )
    op.create_table(
        "scheduler_groups",
        sa.Column("group_id", sa.String(220), primary_key=True),
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("drop_reason", sa.String(20)),
        sa.Column("detail", sa.Text, nullable=False),
        sa.Column("task_id", sa.String(400), nullable=False),
        sa.Column("domain", sa.String(200), nullable=False),
        sa.Column("level", sa.Integer, nullable=False),
        sa.Column("rollouts_json", sa.Text, nullable=False),
        sa.Column("ready_members_json", sa.Text, nullable=False),
        sa.Column("admitted_at_s", sa.Float, nullable=False),
        sa.Column("changed_at_s", sa.Float, nullable=False),
        sa.Column("incarnation", sa.Integer),
        sa.Column("step", sa.Integer),
        sa.Column("task", sa.LargeBinary, nullable=False),
    )
    op.create_index("scheduler_groups_order", "scheduler_groups", ["run_id", "number"], unique=True)
    op.create_index("scheduler_groups_state", "scheduler_groups", ["state"])
    op.create_table(
        "scheduler_tasks",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("run_id", sa.String(200), nullable=False),
        sa.Column("task_id", sa.String(400), nullable=False),
        sa.Column("is_queued", sa.Boolean, nullable=False),
        sa.Column("task", sa.LargeBinary, nullable=False),
        sa.UniqueConstraint("run_id", "task_id", name="scheduler_tasks_name"),
    )
    op.create_table(
        "scheduler_quarantine",
        sa.Column("run_id", sa.String(200), primary_key=True),
        sa.Column("task_id", sa.String(400), primary_key=True),
    )
    op.create_table(
        "scheduler_slot_seconds",
        sa.Column("cause", sa.String(40), primary_key=True),
        sa.Column("seconds", sa.Float, nullable=False),
    )
    op.create_table(
        "scheduler_outbox",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("topic", sa.String(100), nullable=False),
        sa.Column("key", sa.String(400), nullable=False),
        sa.Column("value", sa.LargeBinary, nullable=False),
        sa.Column("headers_json", sa.Text, nullable=False),
    )
