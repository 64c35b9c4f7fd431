"""Marks in Python alone, for where the compiled module is not installed. See `stepscope_marks`."""

import operator
import os
import time

from ._decorated import decorated

_SCOPE, _STEP, _COUNTER, _FRAME = 1 << 32, 2 << 32, 3 << 32, 4 << 32
_FLOW_BEGIN, _FLOW_STEP, _FLOW_END = 6 << 32, 7 << 32, 8 << 32
_UNTIMED = -(1 << 63)

_now = time.monotonic_ns
_off = False  # Marks cannot be made, or are not wanted.
_segment = None
# Whether a recorder records: 1 before the first mark, then a view of the segment's word.
_flag = [1]


def _ring():
    """The ring of this thread; None while not recording, or without room."""
    global _off, _segment, _flag
    if _off:
        return None
    if _segment is None:
        try:
            from . import _shared_memory

            _segment = _shared_memory.opened()
            _flag = _segment.flag
        except (ImportError, OSError, ValueError):
            _off, _flag = True, [0]
            return None
    if not _flag[0]:
        return None
    try:
        return _segment.threads.taken.ring
    except AttributeError:
        return _segment.take_ring()


def is_recording():
    _ring()
    return bool(_flag[0]) and _segment is not None


def _forget():
    """Forgets the segment, in a child of fork or at the end."""
    global _segment, _flag
    _segment = None
    _flag = [0 if _off else 1]


def _end():
    global _off
    _off = True
    _forget()


class scope:
    """A named interval on a thread: `with scope("physics"):`, or `@scope("physics")` before a function.

    Use one object for one `with` at a time. A decorated function may be called by any thread, and recursively.
    """

    __slots__ = ("_name", "_start")

    def __init__(self, name):
        self._name = name

    def __enter__(self):
        self._start = _now() if _flag[0] else 0
        return self

    def __exit__(self, kind, error, trace):
        if self._start:
            end = _now()
            ring = _ring()
            if ring is not None:
                name = self._name
                ring.write(self._start, end, _SCOPE | (_segment.numbers.get(name) or _segment.name(name)))

    def __call__(self, function):
        return decorated(scope, self._name, function)


def step(sim_time_s=None, *, ns=None):
    """Ends a step of the simulation and starts the next.

    Simulated time is that of this moment, in seconds, or as an integer of nanoseconds in `ns`, or not known.
    """
    if not _flag[0]:
        return
    ring = _ring()
    if ring is None:
        return
    if ns is None:
        # NaN and times beyond 292 years are unknown.
        known = sim_time_s is not None and -9.2e9 < sim_time_s < 9.2e9
        ns = round(sim_time_s * 1e9) if known else _UNTIMED
    ring.write(ns & 0xFFFFFFFFFFFFFFFF, _now(), _STEP)


def counter(name, value):
    """Marks a reading of an integer. Scale other numbers and name their unit: `counter("height_um", round(1e6 * z))`."""
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(f"counter {name!r} is no integer: scale it, and name its unit, as in height_um") from None
    if not _flag[0]:
        return
    ring = _ring()
    if ring is not None:
        ring.write(value & 0xFFFFFFFFFFFFFFFF, _now(), _COUNTER | _segment.name(name))


def frame_mark(name):
    """Ends an iteration of another periodic loop (rendering, a sensor) and starts the next."""
    if not _flag[0]:
        return
    ring = _ring()
    if ring is not None:
        ring.write(0, _now(), _FRAME | _segment.name(name))


def flow_begin(topic, id):
    """Marks that a message is published. The topic and this integer name it in all recorded processes."""
    _write_flow(topic, id, _FLOW_BEGIN)


def flow_step(topic, id):
    """Marks that a message passes here, on any thread of any process."""
    _write_flow(topic, id, _FLOW_STEP)


def flow_end(topic, id):
    """Marks that a message has arrived, once for each subscriber."""
    _write_flow(topic, id, _FLOW_END)


def _write_flow(topic, id, kind):
    if not _flag[0]:
        return
    ring = _ring()
    if ring is not None:
        ring.write(operator.index(id) & 0xFFFFFFFFFFFFFFFF, _now(), kind | _segment.name(topic))


if os.environ.get("STEPSCOPE_MARKS") == "0" or not os.path.isdir("/dev/shm"):
    _off, _flag = True, [0]
