# defect: each spectator of the match has a thread of its own, which wakes for each score
# kinds: thread-per-client
# guilty: -
import math
import queue
import sys
import threading
import time

SLOW = sys.argv[1:] == ["slow"]
SPECTATORS = 64


def watch(inbox):
    seen = 0
    while True:
        seen += len(inbox.get())


def serve(inboxes):
    seen = 0
    while True:
        for inbox in inboxes:
            seen += len(inbox.get())


inboxes = [queue.SimpleQueue() for _ in range(SPECTATORS)]
if SLOW:
    for inbox in inboxes:
        threading.Thread(target=watch, args=(inbox,), daemon=True).start()
else:
    threading.Thread(target=serve, args=(inboxes,), daemon=True).start()
at = 0.0
while True:
    for i in range(4000):
        at += 1e-3 * math.sin(at + i)
    score = f"score {at:.3f}"
    for inbox in inboxes:
        inbox.put(score)
    time.sleep(0.004)
