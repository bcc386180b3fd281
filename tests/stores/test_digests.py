"""Files are read when they are first opened; what is remembered of them is never believed of others."""

import os
import subprocess
import sys

import pytest

from spacy_luke.stores import digests
from spacy_luke.stores.digests import SMALL, FilePart, digest_file, find_changed

DATA = bytes(range(256)) * 4


@pytest.fixture
def memory(tmp_path, monkeypatch):
    """An empty memory, files that count as large, and changes that have settled at once."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(digests, "_remembered", set())
    monkeypatch.setattr(digests, "SMALL", 100)
    monkeypatch.setattr(digests, "SETTLED", -1)
    return tmp_path / "cache" / "spacy_luke" / "digests.txt"


@pytest.fixture
def part(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(DATA)
    return FilePart(path, digest_file(path), len(DATA))


@pytest.fixture
def read(monkeypatch):
    """The files that are read."""
    seen, real = [], digests._digest

    def digest(path, *rest):
        seen.append(path)
        return real(path, *rest)

    monkeypatch.setattr(digests, "_digest", digest)
    return seen


def as_another_process(monkeypatch):
    monkeypatch.setattr(digests, "_remembered", set())


def flip(path, place):
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1]))


def test_read_once_on_a_machine(memory, part, read, monkeypatch):
    assert find_changed([part]) is None
    assert find_changed([part]) is None
    as_another_process(monkeypatch)
    assert find_changed([part]) is None
    assert len(read) == 1
    assert len(memory.read_text().split()) == 1
    assert find_changed([part], every=True) is None
    assert len(read) == 2


def test_what_is_small_is_always_read(memory, part, read, monkeypatch):
    monkeypatch.setattr(digests, "SMALL", len(DATA))
    assert find_changed([part]) is find_changed([part]) is None
    assert len(read) == 2
    assert not memory.exists()


def test_a_changed_file_is_read_again(memory, part):
    """Also where its size and the time of the change are put back."""
    assert find_changed([part]) is None
    about = part.file.stat()
    flip(part.file, 500)
    os.utime(part.file, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert find_changed([part]) == part
    flip(part.file, 500)
    assert find_changed([part]) is None


def test_another_digest_or_place_is_another_part(memory, part):
    assert find_changed([part]) is None
    assert find_changed([wrong := part._replace(digest="0" * 32)]) == wrong
    assert find_changed([wrong := part._replace(start=100, size=len(DATA) - 100)]) == wrong
    assert find_changed([part, wrong, part]) == wrong


def test_a_damaged_file_is_not_remembered(memory, part):
    flip(part.file, 0)
    assert find_changed([part]) == find_changed([part]) == part
    assert not memory.exists()


def test_copies_are_read(memory, part, read, tmp_path):
    assert find_changed([part]) is None
    (tmp_path / "copy").write_bytes(DATA)
    assert find_changed([part._replace(file=tmp_path / "copy")]) is None
    assert read == [part.file, tmp_path / "copy"]


def test_a_change_of_the_last_moment_may_have_the_same_time(memory, part, read, monkeypatch):
    monkeypatch.setattr(digests, "SETTLED", 10**18)
    assert find_changed([part]) is find_changed([part]) is None
    assert len(read) == 2
    assert not memory.exists()


def make_file(path):
    path.parent.parent.mkdir()
    path.parent.write_text("in the way")


def make_folder(path):
    path.mkdir(parents=True)


def make_nonsense(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(os.urandom(5000))


@pytest.mark.parametrize("make", [make_file, make_folder, make_nonsense])
def test_a_memory_that_is_none_costs_time_alone(memory, part, read, monkeypatch, make):
    make(memory)
    assert find_changed([part]) is None
    assert find_changed([part]) is None
    assert len(read) == 1, "this process remembers"
    as_another_process(monkeypatch)
    flip(part.file, 3)
    assert find_changed([part]) == part


def test_nobody_has_a_home(part, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setattr(digests.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    monkeypatch.setattr(digests, "SMALL", 100)
    assert find_changed([part]) is None


def test_the_memory_stays_small(memory, part, read, monkeypatch):
    memory.parent.mkdir(parents=True)
    lines = [f"{number:032x}\n" for number in range(100)]
    memory.write_text("".join(lines))
    monkeypatch.setattr(digests, "MOST_REMEMBERED", 3000)
    assert find_changed([part]) is None
    found = memory.read_text().splitlines(keepends=True)
    assert found[:-1] == lines[50:]
    as_another_process(monkeypatch)
    assert find_changed([part]) is None
    assert len(read) == 1


def test_opening_a_store_settles_nothing_for_the_users_processes(tmp_path):
    """tqdm makes a lock of the default start method, even where it shows nothing."""
    file = tmp_path / "large"
    file.write_bytes(bytes(SMALL + 1))
    code = (
        "import multiprocessing, sys\n"
        "from pathlib import Path\n"
        "from spacy_luke.stores.digests import FilePart, digest_file, find_changed\n"
        "file = Path(sys.argv[1])\n"
        "part = FilePart(file, digest_file(file), file.stat().st_size)\n"
        "assert find_changed([part], every=True) is None\n"
        "multiprocessing.set_start_method('spawn')\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
