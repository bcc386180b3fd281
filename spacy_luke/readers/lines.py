"""Lines of text files."""

from pathlib import Path

from ..stores.plain_text import not_utf8


def decode_line(path: Path, number: int, raw: bytes) -> str:
    """A line without its end; only \\n and \\r\\n end lines, so that other line separators may stand in words."""
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: {not_utf8(error, path)}") from None
