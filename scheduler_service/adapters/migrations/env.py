"""Alembic's entry: runs the migrations on the connection that sql_engine.upgrade hands over."""

from alembic import context

from scheduler_service.adapters.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    version_table="scheduler_alembic_version",  # the registry keeps its own in the same database on one machine
)
with context.begin_transaction():
    context.run_migrations()
