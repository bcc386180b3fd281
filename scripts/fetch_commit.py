"""Folders of a git repository as they were at a commit, each with its checksum; what is there already stays.

    python scripts/fetch_commit.py REPOSITORY COMMIT --take PATH DESTINATION CHECKSUM [--take ...]

`python -m spacy project assets` can name a branch alone, which moves. CHECKSUM is weasel's of the folder: MD5 over the
bytes of its files in the order of their paths.
"""

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

from weasel.util.hashing import get_checksum


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("repository", help="address of the repository")
    parser.add_argument("commit", help="all 40 digits of it")
    parser.add_argument("--take", nargs=3, action="append", required=True, metavar=("PATH", "DESTINATION", "CHECKSUM"))
    options = parser.parse_args()
    fetch(options.repository, options.commit, [(path, Path(to), checksum) for path, to, checksum in options.take])


def fetch(repository: str, commit: str, wanted: list[tuple[str, Path, str]]) -> None:
    """wanted: folders of the repository, where each goes, and its checksum. SystemExit where what is there, or what was
    fetched, is something else; nothing is written then."""
    missing = [one for one in wanted if not is_there(one[1], one[2])]
    if not missing:
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run("git", "init", "--quiet", name)
        run("git", "-C", name, "fetch", "--quiet", "--depth", "1", repository, commit)
        run("git", "-C", name, "checkout", "--quiet", "FETCH_HEAD", "--", *(path for path, _, _ in missing))
        for path, _, checksum in missing:
            if (found := get_checksum(folder / path)) != checksum:
                raise SystemExit(f"{path} of {repository} at {commit}: expected the checksum {checksum}, got {found}.")
        for path, to, _ in missing:
            shutil.copytree(folder / path, to)
            print(f"Fetched {to}: {sum(1 for _ in to.iterdir()):,} files of {repository} at {commit[:7]}")


def is_there(to: Path, checksum: str) -> bool:
    if not to.exists():
        return False
    if (found := get_checksum(to)) != checksum:
        raise SystemExit(
            f"{to} is there, but with the checksum {found} instead of {checksum}: remove it, and run this again."
        )
    print(f"{to} is there already")
    return True


def run(*command: str) -> None:
    """A command; what it says of a failure is shown."""
    if subprocess.run(command).returncode:
        raise SystemExit(f"{' '.join(command)} failed: is git installed, and the network there?")


if __name__ == "__main__":
    main()
