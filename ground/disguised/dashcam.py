# defect: to find the recordings of one vehicle, all recordings in the folder are opened and their headers parsed, though the file names begin with the vehicle
# kinds: file-opened-each-time, directory-scan
# guilty: Archive.segments_of, Archive.read_header
# gain: 40
#
# A fleet recorder: vehicles send telemetry, segments are closed and written, old ones are removed, a status board shows the fleet.
import json
import math
import os
import random
import shutil
import sys
import tempfile
import time
import zlib


class Vehicle:
    def __init__(self, number):
        self.name = f"veh{number:03d}"
        self.rnd = random.Random(number)
        self.x = self.rnd.uniform(-500, 500)
        self.y = self.rnd.uniform(-500, 500)
        self.heading = self.rnd.uniform(0, 6.28)
        self.speed = 10.0
        self.battery = 100.0
        self.samples = []
        self.written = 0

    def drive(self, t):
        self.heading += 0.1 * math.sin(0.3 * t + self.x * 0.01)
        self.speed += 0.2 * (8 + 4 * math.sin(0.05 * t + self.y * 0.01) - self.speed)
        self.x += math.cos(self.heading) * self.speed * 0.1
        self.y += math.sin(self.heading) * self.speed * 0.1
        self.battery = max(5.0, self.battery - 0.0004 * self.speed)
        self.samples.append((t, round(self.x, 3), round(self.y, 3), round(self.speed, 3)))


class Archive:
    """Segments of the last minutes, one file each: a line of JSON as its header, then the compressed samples."""

    KEEP = 4

    def __init__(self, folder, by_name):
        self.folder = folder
        self.by_name = by_name

    def write(self, vehicle):
        rows = "\n".join("%.1f,%.3f,%.3f,%.3f" % row for row in vehicle.samples)
        body = zlib.compress(rows.encode(), 6)
        header = {"vehicle": vehicle.name, "segment": vehicle.written, "from": vehicle.samples[0][0],
                  "rows": len(vehicle.samples), "bytes": len(body), "crc": zlib.crc32(body)}
        path = os.path.join(self.folder, f"{vehicle.name}-{vehicle.written:06d}.seg")
        with open(path, "wb") as f:
            f.write(json.dumps(header).encode() + b"\n" + body)
        vehicle.written += 1
        vehicle.samples.clear()

    def read_header(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return json.loads(f.readline())

    def segments_of(self, vehicle):
        found = []
        names = os.listdir(self.folder)
        if self.by_name:
            names = [n for n in names if n.startswith(vehicle)]
        for name in names:
            header = self.read_header(name)
            if header["vehicle"] == vehicle:
                found.append((header["segment"], name, header))
        found.sort()
        return found

    def retain(self, vehicle):
        """Removes the oldest segments of a vehicle; returns the bytes that are kept."""
        segments = self.segments_of(vehicle)
        for _, name, _ in segments[: -self.KEEP]:
            os.unlink(os.path.join(self.folder, name))
        return sum(header["bytes"] for _, _, header in segments[-self.KEEP:])


class Board:
    """What the operators see: a heat map, the nearest neighbours, alarms."""

    SIDE = 32

    def __init__(self):
        self.heat = [0.0] * (self.SIDE * self.SIDE)
        self.alarms = 0

    def draw(self, fleet):
        side, heat = self.SIDE, self.heat
        heat[:] = [0.95 * h for h in heat]
        for v in fleet:
            i, j = int((v.x + 2000) / 125) % side, int((v.y + 2000) / 125) % side
            for di, dj, w in ((0, 0, 1.0), (1, 0, 0.5), (-1, 0, 0.5), (0, 1, 0.5), (0, -1, 0.5)):
                heat[(j + dj) % side * side + (i + di) % side] += w * v.speed
        return max(heat)

    def blurred(self):
        side, h = self.SIDE, self.heat
        total = 0.0
        for j in range(1, side - 1):
            row = j * side
            for i in range(row + 1, row + side - 1):
                total += abs(h[i] - 0.25 * (h[i - 1] + h[i + 1] + h[i - side] + h[i + side]))
        return total

    def watch(self, fleet):
        cells = {}
        for v in fleet:
            cells.setdefault((int(v.x // 100), int(v.y // 100)), []).append(v)
        for group in cells.values():
            for k, a in enumerate(group):
                for b in group[k + 1:]:
                    if math.hypot(a.x - b.x, a.y - b.y) < 8:
                        self.alarms += 1


class Dispatcher:
    """Sends the vehicles with a low battery to the nearest of the chargers, and estimates when they arrive."""

    def __init__(self):
        self.chargers = [(400.0 * math.cos(k), 400.0 * math.sin(k)) for k in range(12)]
        self.eta = 0.0

    def assign(self, fleet):
        for v in fleet:
            best = min(math.hypot(v.x - cx, v.y - cy) for cx, cy in self.chargers)
            self.eta = 0.99 * self.eta + 0.01 * best / (v.speed + 0.1)


class Recorder:
    def __init__(self, folder, by_name):
        self.fleet = [Vehicle(k) for k in range(48)]
        self.archive = Archive(folder, by_name)
        self.board = Board()
        self.dispatcher = Dispatcher()
        self.kept = 0
        self.t = 0.0
        self.ticks = 0
        self.total = 0.0
        for v in self.fleet:                     # what the last run has left
            for _ in range(Archive.KEEP):
                for _ in range(10):
                    v.drive(0.0)
                self.archive.write(v)

    def tick(self):
        for k in range(6):
            for v in self.fleet:
                v.drive(self.t + 0.1 * k)
        self.total += self.board.draw(self.fleet) + self.board.blurred()
        self.board.watch(self.fleet)
        self.dispatcher.assign(self.fleet)
        closing = self.fleet[self.ticks % len(self.fleet)]
        self.archive.write(closing)
        self.kept += self.archive.retain(closing.name)
        self.t += 0.6
        self.ticks += 1


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: dashcam.py slow|fast [ticks]")
    ticks = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    folder = tempfile.mkdtemp(prefix="dashcam-")
    try:
        recorder = Recorder(folder, sys.argv[1] == "fast")
        due = time.monotonic()
        while not ticks or recorder.ticks < ticks:
            recorder.tick()
            due = max(due + 0.012, time.monotonic() - 0.1)
            time.sleep(max(0.0, due - time.monotonic()))
        print(f"{recorder.total:.4f} {recorder.kept} {recorder.board.alarms} {recorder.dispatcher.eta:.6f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
