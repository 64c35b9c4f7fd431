"""What a scope costs a Python program, in nanoseconds of CPU time: run alone, while nobody records; run by `stepscope record`, recorded."""

import sys
import time

sys.path.insert(0, sys.argv[1])
import stepscope_marks as marks

BATCH = 10_000


@marks.scope("function")
def function():
    pass


def bare():
    pass


def block():
    with marks.scope("block"):
        pass


def median_ns(call):
    times = []
    for _ in range(25):
        # The recorder empties the ring.
        time.sleep(0.06)
        started = time.thread_time_ns()
        for _ in range(BATCH):
            call()
        times.append((time.thread_time_ns() - started) / BATCH)
    return sorted(times)[len(times) // 2]


empty = median_ns(bare)
print(f"{median_ns(block) - empty:.0f} {median_ns(function) - empty:.0f}")
