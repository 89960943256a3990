"""${message}

Revision ID: ${up_revision}
"""

from __future__ import annotations

from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = ${repr(branch_labels)}
depends_on = ${repr(depends_on)}


def upgrade() -> None:
    """${message}. A batch rebuild drops the table's triggers: make them again."""
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    """Restore the backup that was made before the upgrade."""
    raise NotImplementedError("memdb files are not taken back to an older schema; restore the backup that was made")
