"""Writing files and folders so that a crash leaves the old ones whole, and what a killed process left is swept.

What is written lies in a hidden folder beside its place until it is whole:

    .NAME.RANDOM.new/.lock_of_spacy_luke    held (flock) by the process that writes, until it ends; says on
                                            which machine
    .NAME.RANDOM.new/NAME                   the new file or folder

The next write beside it removes such folders that no living process holds: the lock is free, and was taken on this
machine since it started (containers on it share its kernel, and so its locks). Of one that was taken elsewhere, on a
disk that machines share, a free lock may mean nothing; it goes when nothing in it has changed for a week.
"""

import ctypes
import errno
import glob
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from safetensors import SafetensorError

try:
    import fcntl
except ImportError:  # Windows: nothing is held, and so nothing swept
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock_of_spacy_luke"
_WEEK = 7 * 24 * 3600  # seconds


@contextmanager
def write_atomically(path: Path) -> Iterator[Path]:
    """Gives a temporary path beside `path`, or beside what it is a link to; when the block ends well, what was written
    there becomes that file.

    On any error (a full disk, Ctrl-C) the temporary file goes and the old file stays as it was. A killed process leaves
    the old file, and a hidden folder beside it, which the next write to a place beside it removes.
    """
    path = Path(os.path.realpath(path))
    held = HeldFolder(path)
    try:
        held.path.touch()
        with _disk_errors(path):
            yield held.path
            _sync(held.path)
            os.replace(held.path, path)
        _sync(path.parent)
    finally:
        held.close()


@contextmanager
def write_folder_atomically(folder: Path, *, busy: str | None = None) -> Iterator[Path]:
    """Gives an empty temporary folder; when the block ends well, it takes the place of `folder`, at once where the
    system can exchange two names (Linux).

    On any error the temporary folder goes and the old one stays as it was. Everything in the old folder goes, so the
    caller checks that it may. The folder around the temporary one is hidden and goes too: the place for other files
    that are needed meanwhile. busy: a ValueError with this text where another process writes the same folder; None: the
    last one stays.
    """
    folder = Path(folder).resolve()
    folder.parent.mkdir(parents=True, exist_ok=True)
    mend(folder)
    held = HeldFolder(folder)
    try:
        if busy is not None and held.has_rivals():
            raise ValueError(busy)
        held.path.mkdir()
        with _disk_errors(folder):
            yield held.path
        for path in [*sorted(held.path.rglob("*")), held.path]:
            _sync(path)
        _swap(held.path, folder)
        _sync(folder.parent)
    finally:
        held.close()


class HeldFolder:
    """A hidden folder beside `place` that this process holds until `close`, or until it ends. path: in it, with the
    name of `place`, for the caller to make. Older ones beside it that nobody holds are removed first."""

    def __init__(self, place: Path) -> None:
        sweep(place.parent)
        self._process = os.getpid()
        self._lock: int | None = None
        while self._lock is None:
            with _disk_errors(place):
                self.folder = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".new", dir=place.parent))
            self._lock = _take(self.folder / LOCK)
        self.path = self.folder / place.name

    def has_rivals(self) -> bool:
        """Whether others hold such a folder for the same place: of two at least the second sees the other one."""
        beside = self.folder.parent.glob(f".{glob.escape(self.path.name)}.{'?' * 8}.new/{LOCK}")
        return any(path.parent != self.folder and _is_held(path) for path in beside)

    @classmethod
    def temporary(cls) -> "HeldFolder":
        """One among the system's temporary files."""
        return cls(Path(tempfile.gettempdir(), "spacy_luke"))

    def close(self) -> None:
        """Remove it. Only the process that made it removes it, none that was forked from it."""
        if os.getpid() == self._process and self._lock is not None:
            lock, self._lock = self._lock, None
            if fcntl is None:
                os.close(lock)  # Windows removes no open file
            _remove(self.folder)
            if fcntl is not None:
                os.close(lock)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    """A full disk is an OSError, whoever writes: safetensors and torch have errors of their own. Errors at the hidden
    folder name the place that was asked for."""
    try:
        yield
    except OSError as error:
        hidden = os.fspath(path.parent / f".{path.name}.")
        if not isinstance(error.filename, (str, os.PathLike)) or not os.fspath(error.filename).startswith(hidden):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    except (SafetensorError, RuntimeError) as error:
        if isinstance(error, RuntimeError) and "inline_container" not in str(error):  # of torch.save
            raise
        raise OSError(f"{path} could not be written: {error}. Is the disk full?") from error


def mend(folder: Path) -> None:
    """What a kill during `write_folder_atomically` leaves: a folder between two renames comes back, and what was half
    written beside it goes."""
    old = _old(folder)
    if old.exists():
        if folder.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            os.replace(old, folder)
    sweep(folder.parent)


def sweep(parent: Path) -> None:
    """Remove the hidden folders in `parent` that killed processes left (see above)."""
    if not parent.is_dir():
        return
    with os.scandir(parent) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(".") and entry.name.endswith(".new")]
    for name in names:
        if len(name.split(".")[-2]) == 8:  # what tempfile appends
            try:
                _remove_if_left(parent / name)
            except OSError:
                continue  # another process removed it, or may


@contextmanager
def hold(path: Path, *, busy: str) -> Iterator[None]:
    """Hold a file that is there against others that do. ValueError with the text `busy` where one holds it already, or
    has just replaced it; where the system cannot lock it, nothing is held."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(busy) from error
            except OSError:
                pass
        if not os.path.samestat(os.fstat(descriptor), os.stat(path)):
            raise ValueError(busy)
        yield
    finally:
        os.close(descriptor)


def link_or_copy(source: Path, target: Path) -> None:
    """A hard link shares the file's mode too, so files that this user may not write are copied."""
    try:
        if not os.access(source, os.W_OK):
            raise PermissionError(source)
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def usual_mode(mode: int) -> int:
    """What `mode` becomes for files that this process makes."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


def _take(path: Path) -> int | None:
    """A descriptor that holds a new file, which says where it was taken; None where another process removed it
    first."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except FileNotFoundError:
        return None
    try:
        if fcntl is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            except OSError:
                return descriptor  # a file system without locks: others cannot take it either
        os.write(descriptor, _machine())
        if os.fstat(descriptor).st_nlink:
            return descriptor
    except BaseException:
        os.close(descriptor)
        _remove(path.parent)
        raise
    os.close(descriptor)
    return None


def _remove_if_left(folder: Path) -> None:
    about = folder.lstat()
    if fcntl is None or about.st_uid != os.geteuid() or folder.is_symlink():
        return
    try:
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):  # just made, or of an earlier version, which held nothing
        if not folder.is_dir() or any(folder.iterdir()):
            if _is_idle(folder):
                _remove(folder)
        else:
            os.rmdir(folder)  # if its process lives it makes another one
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError: somebody holds it
        machine = os.read(lock, 100)
        just_made = not machine and len(os.listdir(folder)) == 1  # nothing but the lock
        if machine == _machine() or just_made or _is_idle(folder):
            _remove(folder)
    finally:
        os.close(lock)


def _is_held(lock: Path) -> bool:
    if fcntl is None:
        return False
    try:
        with lock.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:  # else it is gone, another user's, or on a disk without locks
        return isinstance(error, BlockingIOError)
    return False


def _machine() -> bytes:
    """Tells machines, and one machine before and after a start, apart."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
    except OSError:
        return platform.node().encode()


def _is_idle(path: Path) -> bool:
    newest = max(file.lstat().st_mtime for file in [path, *path.rglob("*")])
    return time.time() - newest > _WEEK


def _remove(folder: Path) -> None:
    """The lock last, so that what is half removed is still known for what it is."""
    if not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for path in folder.iterdir():
        if path.name == LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)


def _old(folder: Path) -> Path:
    return folder.with_name(f".{folder.name}.old")


def _swap(new: Path, folder: Path) -> None:
    """The new folder takes the place of the old one, which takes that of the new one or is removed. Other processes may
    do
    the same at the same time: the last one stays."""
    for _ in range(20):
        try:
            if not folder.exists():
                os.replace(new, folder)
            elif not _exchange(new, folder):
                _rename_twice(new, folder)
            return
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTEMPTY, errno.EEXIST) or not new.exists():
                raise
            time.sleep(0.01)
    raise OSError(errno.EBUSY, "other processes replace it again and again", str(folder))


def _exchange(one: Path, other: Path) -> bool:
    """Exchange two names at once. False where the system or the disk cannot."""
    rename = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if sys.platform == "linux" else None
    if rename is None:
        return False
    rename.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    if rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0:
        return True
    code = ctypes.get_errno()
    if code in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM):
        return False
    raise OSError(code, os.strerror(code), str(one), None, str(other))


def _rename_twice(new: Path, folder: Path) -> None:
    """A process that is killed between the two leaves the old folder as `.NAME.old`; the next write puts it back
    first."""
    old = _old(folder)
    os.replace(folder, old)
    try:
        os.replace(new, folder)
    except BaseException:
        os.replace(old, folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def _sync(path: Path) -> None:
    """Wait until the disk has it; folders cannot be opened on Windows, which needs no such thing."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
