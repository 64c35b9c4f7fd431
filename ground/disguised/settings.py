# defect: each step asks whether its settings file changed, and reads it again
# kinds: file-opened-each-time, values-through-text, file-state-each-step
# guilty: -
import json
import math
import os
import sys
import tempfile

import stepscope_marks as marks

slow = sys.argv[1:] == ["slow"]
path = os.path.join(tempfile.mkdtemp(), "settings.json")
with open(path, "w") as file:
    json.dump({f"gain_{i}": i * 0.5 for i in range(200)}, file)


def load():
    with open(path) as file:
        return json.load(file)


def control(settings, step):
    total = 0.0
    for i in range(600):
        total += math.sin(settings["gain_7"] * i + step)
    return total


settings = load()
print("ready", flush=True)
step = 0
while True:
    marks.step(step * 0.001)
    if slow and os.path.exists(path):
        settings = load()
    control(settings, step)
    step += 1
