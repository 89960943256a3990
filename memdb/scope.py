"""Whose memory: the scope that every row and every query carries."""

from __future__ import annotations

from dataclasses import dataclass

from memdb.text.check import check_id

DEFAULT_USER = "default"
DEFAULT_SESSION = "default"


@dataclass(frozen=True, slots=True)
class Scope:
    """One user and one session of theirs.

    Args:
        user_id: exact text, 1 to 1,000 characters. It is the wall: nothing of another user is ever seen.
        session_id: exact text, 1 to 1,000 characters. Only layers that live by session heed it.

    Raises:
        InvalidInput: an id that is empty, too long, or no valid text.
    """

    user_id: str = DEFAULT_USER
    session_id: str = DEFAULT_SESSION

    def __post_init__(self) -> None:
        check_id(self.user_id, "user_id")
        check_id(self.session_id, "session_id")

    def __str__(self) -> str:
        return f"user {self.user_id!r} session {self.session_id!r}"
