"""Lines of text files."""

from pathlib import Path


def decode_line(path: Path, number: int, raw: bytes) -> str:
    """A line without its end; only \\n and \\r\\n end lines, so that other line separators may stand in words."""
    try:
        return raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}, line {number}: expected UTF-8, but got {raw!r} ({error.reason}).") from None
