"""Alembic migrations of the log, run by `dagger_kernel.log.schema` (there is no alembic.ini)."""
