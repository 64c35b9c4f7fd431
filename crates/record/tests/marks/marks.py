"""A program that marks what it does: steps, scopes of functions and blocks, threads, a child."""

import os
import sys
import threading

sys.path.insert(0, sys.argv[1])
import stepscope_marks as marks

print("compiled:", marks.is_compiled)
assert marks.is_recording()


@marks.scope("fibonacci")
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def work():
    for _ in range(3):
        with marks.scope("brief"):
            pass


for step in range(101):
    if step % 2:
        marks.step(ns=step * 1_000_000)
    else:
        marks.step(step * 0.001)
    with marks.scope("physics"):
        with marks.scope("contacts"):
            pass
    marks.counter("contacts", step - 7)
    marks.flow_begin("odometry", step)
    marks.flow_step("odometry", step)
    marks.flow_end("odometry", step)
    if step % 10 == 0:
        marks.frame_mark("render")

assert fibonacci(5) == 5

for _ in range(20):
    threads = [threading.Thread(target=work) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

child = os.fork()
if child == 0:
    with marks.scope("child"):
        pass
    with marks.scope("contacts"):
        pass
    os._exit(0)
os.waitpid(child, 0)

try:
    marks.counter("height", 0.5)
except TypeError as error:
    print(error)
