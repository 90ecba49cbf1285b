"""A file that is there whole or not at all, on whatever somebody has plugged in.

A stick may be full, read-only, pulled out in the middle, or of a file system without owners, rights and links
(FAT). So a file is written under a name of its own, brought to the medium, and renamed last; and what the
medium has against it is said in words that help whoever holds it.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from heek.durable import FULL, sync_folder
from heek.errors import CarriedFileError, TableError

_GONE: Final = frozenset({errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.ENOTCONN})
_NO_LINKS: Final = frozenset({errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL})

_NO_LOCKS: Final = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})


@contextlib.contextmanager
def whole_file(file: Path, *, replace: bool = False) -> Iterator[BinaryIO]:
    """Write a file; it has its name once the block has come to its end.

    With `replace` it takes the place of one that is there. Raises CarriedFileError: then there is no such
    file, and one that was there before is as it was.
    """
    if not replace and os.path.lexists(file):
        raise _there_already(file)
    draft = file.with_name(f".{file.name}.part")
    try:
        handle = _open(draft)
        try:
            with os.fdopen(handle, "wb") as writing:
                yield writing
                writing.flush()
                os.fsync(handle)
            _name(draft, file, replace=replace)
        except BaseException:
            with contextlib.suppress(OSError):
                draft.unlink()
            raise
    except OSError as error:
        # Some other file's trouble, that came up within the block, is not this one's.
        if isinstance(error, TableError) or error.filename not in (None, str(draft), str(file)):
            raise
        raise not_written(file, error) from None
    sync_folder(file.parent)


def _open(draft: Path) -> int:
    """Open a draft for us alone; what one who was killed has left of it is written over.

    Raises CarriedFileError if somebody writes it just now, and OSError.
    """
    import fcntl

    while True:
        # For everybody to read: where the stick goes, other users are at home.
        handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                # Where there are no locks, two who write the same file at once are on their own.
                if error.errno not in _NO_LOCKS:
                    raise
            if _is(draft, handle):
                os.ftruncate(handle, 0)
                return handle
        except BlockingIOError:
            os.close(handle)
            raise CarriedFileError(
                f"{draft}: another heek writes this just now; wait until it is done"
            ) from None
        except BaseException:
            os.close(handle)
            raise
        # Between our opening and our locking it got its name, or was given up: begin with a new one.
        os.close(handle)


def _is(draft: Path, handle: int) -> bool:
    """Whether what is open still has that name."""
    try:
        there, opened = draft.stat(), os.fstat(handle)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (opened.st_dev, opened.st_ino)


def not_written(file: Path, error: OSError) -> CarriedFileError:
    """Why a file cannot be written, and what to do about it."""
    if error.errno in FULL:
        words = "there is no room left; make room, or take another stick"
    elif error.errno == errno.EROFS:
        words = "it can only be read there; is the stick's switch on, or does it need to be mounted again?"
    elif error.errno in _GONE:
        words = f"{_said(error)}; was the stick pulled out? Put it in again, and try again"
    elif error.errno == errno.ENOENT:
        words = "there is no such folder; is the stick mounted?"
    elif error.errno in (errno.EACCES, errno.EPERM):
        words = "you may not write there; name another folder, or run as the user who may"
    else:
        words = f"{_said(error)}; name another file"
    return CarriedFileError(f"{file}: cannot be written: {words}")


def not_read(file: Path, error: OSError) -> CarriedFileError:
    """Why a file cannot be read, and what to do about it."""
    if error.errno == errno.ENOENT:
        words = "there is no such file; is the stick mounted?"
    elif error.errno in _GONE:
        words = f"{_said(error)}; was the stick pulled out? Put it in again, and try again"
    elif error.errno == errno.EISDIR:
        words = "it is a folder; name the file in it"
    else:
        words = _said(error)
    return CarriedFileError(f"{file}: cannot be read: {words}")


def _name(draft: Path, file: Path, *, replace: bool) -> None:
    if replace:
        draft.replace(file)
        return
    try:
        # Not renamed: that would take the place of a file that has come into being meanwhile.
        os.link(draft, file)
    except FileExistsError:
        raise _there_already(file) from None
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if os.path.lexists(file):
            raise _there_already(file) from None
        draft.rename(file)
        return
    draft.unlink()


def _there_already(file: Path) -> CarriedFileError:
    return CarriedFileError(f"{file}: is there already, and is left as it is; name a file that is not")


def _said(error: OSError) -> str:
    return error.strerror or str(error)
