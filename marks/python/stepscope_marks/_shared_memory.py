"""The segment of this process: a file in /dev/shm, see docs/marks-format.md."""

import atexit
import fcntl
import mmap
import os
import struct
import threading
import time
from collections import deque

from . import _pure

_FOLDER = "/dev/shm"
_PREFIX = "stepscope-marks-"
_HEADER_BYTES = 4096
_NAMES_BYTES = (1 << 20) - _HEADER_BYTES
_NAMES_STEP = 16 << 10
_NAMES_MAX = 16384
_NAME_BYTES_MAX = 511
_RINGS_MAX = 8192
_ENTRY_BYTES = 128
_DIRECTORY_AT = _HEADER_BYTES + _NAMES_BYTES
_RINGS_AT = _DIRECTORY_AT + _RINGS_MAX * _ENTRY_BYTES
_RECORD_BYTES = 24
_RECORDS = 32768
_RING_BYTES = _RECORDS * _RECORD_BYTES
_PIECE_RECORDS = 1024
_DROPS_A_LOOK = 65536
_DROPS_A_PIECE = 1024
_BEAT_NS = 10_000_000_000

_THREAD = 5 << 32
_record = struct.Struct("=QQQ").pack_into
_word = struct.Struct("=Q")
_put_word, _get_word = _word.pack_into, _word.unpack_from
_half = struct.Struct("=I")
_put_half, _get_half = _half.pack_into, _half.unpack_from

_lock = threading.Lock()
_open = None
# In a child of fork: the parent's names in the order of their numbers.
_inherited = []


def opened():
    """The segment of this process, created if there is none. Raises OSError if that fails."""
    global _open
    with _lock:
        if _open is None:
            _open = Segment(_inherited)
        return _open


class Segment:
    """The file, its mappings, and its names and rings."""

    def __init__(self, names):
        _sweep()
        pid = os.getpid()
        self.path = f"{_FOLDER}/{_PREFIX}{pid}-{os.urandom(8).hex()}"
        self._pid_namespace = _pid_namespace()
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            # Writing to a part without memory kills the program if /dev/shm is full.
            os.posix_fallocate(fd, 0, _HEADER_BYTES + _NAMES_STEP)
            os.ftruncate(fd, _RINGS_AT)
            self._memory = mmap.mmap(fd, _RINGS_AT)
        except OSError:
            os.unlink(self.path)
            raise
        finally:
            os.close(fd)
        self._names_used = 0
        self._names_committed = _NAMES_STEP
        self.numbers = {}
        self._rings = []
        self._ended = deque()
        self.threads = threading.local()
        self._write_header(pid)
        for name in names:
            self._add_name(name)
        self._memory[0:8] = b"STEPMARK"
        self.flag = memoryview(self._memory)[64:68].cast("I")

    def _write_header(self, pid):
        memory = self._memory
        now = time.monotonic_ns()
        struct.pack_into("=IIIIQQQQ", memory, 8, 1, _HEADER_BYTES, pid, 0, _start_ticks(pid), self._pid_namespace, now, now)
        struct.pack_into(
            "=QQQQQQQ", memory, 192, _HEADER_BYTES, _NAMES_BYTES, _DIRECTORY_AT, _RINGS_MAX, _RINGS_AT, _RING_BYTES, _RECORDS
        )
        recorder = _greeting()
        if recorder:
            # Written for the recorder, until it finds this segment.
            struct.pack_into("=IIQQQ", memory, 64, 1, *recorder, now)

    def name(self, name):
        """The number of a name, equal for equal names; 0 if there are too many."""
        known = self.numbers.get(name)
        if known is not None:
            return known
        with _lock:
            number = self.numbers.get(name) or self._add_name(name)
            if number == 0:
                _put_word(self._memory, 144, _get_word(self._memory, 144)[0] + 1)
            return number

    def _add_name(self, name):
        encoded = name.encode("utf-8", "replace")[:_NAME_BYTES_MAX].decode("utf-8", "ignore").encode()
        end = self._names_used + 2 + len(encoded)
        if len(self.numbers) == _NAMES_MAX or end > _NAMES_BYTES:
            return 0
        if end > self._names_committed:
            if not self._commit(_HEADER_BYTES + self._names_committed, _NAMES_STEP):
                return 0
            self._names_committed += _NAMES_STEP
        at = _HEADER_BYTES + self._names_used
        self._memory[at : at + 2 + len(encoded)] = struct.pack("=H", len(encoded)) + encoded
        self._names_used = end
        self.numbers[name] = number = len(self.numbers) + 1
        _put_word(self._memory, 136, end)
        return number

    def names(self):
        """All names in the order of their numbers."""
        return list(self.numbers)

    def take_ring(self):
        """A ring for this thread; None without room."""
        # There may be room for a ring later. Checking is slow, so it is not done on each mark.
        misses = self.threads.misses = getattr(self.threads, "misses", -1) + 1
        with _lock:
            ring = self._find_ring() if misses % _DROPS_A_PIECE == 0 else None
            if ring is None:
                _put_word(self._memory, 152, _get_word(self._memory, 152)[0] + 1)
                return None
        self.threads.taken = _Taken(ring, self._ended)
        tid = threading.get_native_id()
        ring.begin(tid)
        return ring

    def _find_ring(self):
        if self._ended and self._ended[0].is_drained():
            return self._ended.popleft()
        number = len(self._rings)
        entry_at, ring_at = _DIRECTORY_AT + number * _ENTRY_BYTES, _RINGS_AT + number * _RING_BYTES
        piece_bytes = _PIECE_RECORDS * _RECORD_BYTES
        if number == _RINGS_MAX or not (self._commit(entry_at, _ENTRY_BYTES) and self._commit(ring_at, piece_bytes)):
            return None
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.ftruncate(fd, ring_at + _RING_BYTES)
                records = mmap.mmap(fd, _RING_BYTES, offset=ring_at)
            finally:
                os.close(fd)
        except OSError:
            return None
        ring = Ring(self, records, entry_at, ring_at)
        self._rings.append(ring)
        _put_half(self._memory, 132, number + 1)
        return ring

    def _commit(self, start, length):
        """Allocates a part of the file. Returns whether there was room."""
        # Opened each time: a stored descriptor could be closed and reused by the program.
        try:
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                os.posix_fallocate(fd, start, length)
            finally:
                os.close(fd)
        except OSError:
            return False
        return True

    def look_for_recorder(self):
        """Clears the flag of a killed recorder."""
        if time.monotonic_ns() - _get_word(self._memory, 88)[0] > _BEAT_NS:
            _put_half(self._memory, 64, 0)

    def close(self):
        """Runs when the program ends. Other threads may still mark, so their memory stays mapped."""
        _put_half(self._memory, 128, 1)
        if self.flag[0] == 0:
            try:
                os.unlink(self.path)
            except OSError:
                pass


class _Taken:
    """Releases a thread's ring when the thread ends and this object is deleted."""

    __slots__ = ("ring", "_ended", "_pid")

    def __init__(self, ring, ended):
        self.ring = ring
        self._ended = ended
        self._pid = os.getpid()

    def __del__(self):
        # It is also deleted in a child of fork, where the ring still belongs to the parent's thread.
        if self._pid == os.getpid():
            self.ring.end()
            self._ended.append(self.ring)


class Ring:
    """Records of one thread, written only by that thread, read only by the recorder."""

    __slots__ = ("_segment", "_memory", "_records", "_entry_at", "_ring_at", "_committed", "_at", "_limit", "_drops")

    def __init__(self, segment, records, entry_at, ring_at):
        self._segment = segment
        self._memory = segment._memory
        self._records = records
        self._entry_at = entry_at
        self._ring_at = ring_at
        self._committed = _PIECE_RECORDS
        self._at = self._limit = self._drops = 0

    def begin(self, tid):
        struct.pack_into("=II", self._memory, self._entry_at + 16, tid, 1)
        self._limit = self._find_limit()
        self.write(tid, time.monotonic_ns(), _THREAD)

    def end(self):
        _put_half(self._memory, self._entry_at + 20, 2)

    def is_drained(self):
        return self._tail() == self._at

    def write(self, payload, now, what):
        at = self._at
        if at >= self._limit and not self._make_room():
            return
        _record(self._records, at % _RECORDS * _RECORD_BYTES, payload, now, what | (at & 0xFFFFFF) << 40)
        self._at = at + 1
        _put_word(self._memory, self._entry_at, at + 1)

    def _make_room(self):
        self._limit = self._find_limit()
        if self._at < self._limit:
            return True
        dropped_at = self._entry_at + 8
        _put_word(self._memory, dropped_at, _get_word(self._memory, dropped_at)[0] + 1)
        self._drops += 1
        if self._drops % _DROPS_A_LOOK == 0:
            self._segment.look_for_recorder()
        return False

    def _find_limit(self):
        limit = self._tail() + _RECORDS
        if self._at == self._committed < _RECORDS and self._drops % _DROPS_A_PIECE == 0:
            start = self._ring_at + self._committed * _RECORD_BYTES
            if self._segment._commit(start, _PIECE_RECORDS * _RECORD_BYTES):
                self._committed += _PIECE_RECORDS
                self._drops = 0
        return min(limit, self._committed) if self._committed < _RECORDS else limit

    def _tail(self):
        """The recorder's position; an invalid one counts as 0."""
        for _ in range(64):
            tail, again = struct.unpack_from("=QQ", self._memory, self._entry_at + 64)
            if tail == again and self._at - _RECORDS <= tail <= self._at:
                return tail
        return max(0, self._at - _RECORDS)


def _start_ticks(pid):
    """Start of a process in clock ticks since boot; 0 if there is none."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat:
            # The name before it may contain anything.
            return int(stat.read().rpartition(b")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0


def _pid_namespace():
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _is_dead(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        pass
    return False


def _greeting():
    """The recorder that launched this program, from the environment. It loses no marks before it finds the segment."""
    try:
        pid, start_ticks, token = os.environ.get("STEPSCOPE_RECORDER", "").split(":")
        pid, start_ticks, token = int(pid), int(start_ticks), int(token, 16)
    except ValueError:
        return None
    return (pid, start_ticks, token) if _start_ticks(pid) == start_ticks else None


def _sweep():
    """Removes segments of dead processes without a recorder."""
    for name in os.listdir(_FOLDER):
        if not name.startswith(_PREFIX):
            continue
        try:
            if _is_dead(int(name[len(_PREFIX) :].split("-")[0])):
                _remove_if_abandoned(f"{_FOLDER}/{name}")
        except (OSError, ValueError):
            pass


def _remove_if_abandoned(path):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        header = os.pread(fd, 256, 0)
        if len(header) < 256 or _get_word(header, 32)[0] != _pid_namespace():
            return
        recording, recorder = struct.unpack_from("=II", header, 64)
        if not recording or _is_dead(recorder):
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
    finally:
        os.close(fd)


def _close():
    _pure._end()
    if _open is not None:
        _open.close()


def _in_child():
    global _open, _inherited
    if _open is not None:
        _inherited = _open.names()
        _open = None
    _pure._forget()
    _lock.release()


atexit.register(_close)
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)
