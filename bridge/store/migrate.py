"""Brings a database to the shape of this release, when the store is opened."""

from __future__ import annotations

from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

_SCRIPTS = Path(__file__).with_name("migrations")


class NewerDatabase(Exception):
    """Raised when the database was written by a newer release than this one."""


def _config(connection: sa.Connection) -> Config:
    config = Config()
    # a percent sign begins an interpolation there
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def migrate(connection: sa.Connection) -> None:
    """Run what is missing, inside the connection's transaction. Raises NewerDatabase."""
    config = _config(connection)
    scripts = ScriptDirectory.from_config(config)
    here = MigrationContext.configure(connection).get_current_revision()
    if here == scripts.get_current_head():
        return
    if here is not None and here not in {script.revision for script in scripts.walk_revisions()}:
        raise NewerDatabase(
            f"the database is at revision {here}, which this release does not know; "
            "run the release that wrote it, or a newer one"
        )
    command.upgrade(config, "head")
