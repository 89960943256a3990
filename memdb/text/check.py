"""What any text must be before it is stored: no NUL, no lone surrogate, within its limit."""

from __future__ import annotations

from memdb.errors import InvalidInput

MAX_ID_CHARS = 1_000
MAX_TITLE_CHARS = 10_000
MAX_CONTENT_BYTES = 16 * 1024 * 1024  # FTS5 indexes 25 MB in 0.5 s under the write lock: larger texts belong in parts


def is_valid(text: str) -> bool:
    """Return whether SQLite keeps a text as it stands: no NUL, no lone surrogate."""
    if "\x00" in text:
        return False
    try:
        return text.isascii() or text.encode() is not None
    except UnicodeEncodeError:
        return False


def check_text(value: object, name: str, *, max_chars: int | None = None) -> str:
    """Return `value` if it is text that SQLite keeps as it stands.

    Args:
        value: what the caller gave.
        name: the argument's name, for the message.
        max_chars: the longest that is accepted, in characters; by default MAX_CONTENT_BYTES in UTF-8 bytes.

    Raises:
        InvalidInput: not a str, a NUL or a lone surrogate in it, or too long.
    """
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be text, not {type(value).__name__}")
    if "\x00" in value:
        raise InvalidInput(f"{name} holds a NUL character at position {value.index(chr(0))}; remove it")
    if max_chars is not None and len(value) > max_chars:
        raise InvalidInput(f"{name} has {len(value):,} characters; at most {max_chars:,} are kept")
    if value.isascii():
        size = len(value)
    else:
        try:
            size = len(value.encode())
        except UnicodeEncodeError as error:
            raise InvalidInput(
                f"{name} holds a lone surrogate at position {error.start}; it is not valid text"
            ) from None
    if max_chars is None and size > MAX_CONTENT_BYTES:
        raise InvalidInput(f"{name} has {size:,} bytes; at most {MAX_CONTENT_BYTES:,} are kept: store it in parts")
    return value


def check_id(value: object, name: str) -> str:
    """Return `value` if it can be an id: text of 1 to MAX_ID_CHARS characters, kept exactly as given.

    Raises:
        InvalidInput: empty, or not such a text.
    """
    text = check_text(value, name, max_chars=MAX_ID_CHARS)
    if not text:
        raise InvalidInput(f"{name} must not be empty")
    return text
