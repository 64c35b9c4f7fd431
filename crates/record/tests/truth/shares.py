"""Native work that three Python functions call: 70, 20 and 10 % of the time, by the number of calls.

usage: shares.py ROUNDS [fork]
"""
import os
import sys
import zlib

DATA = bytes(64 << 10)


class World:
    def physics(self):
        for _ in range(70):
            zlib.crc32(DATA)

    def sensors(self):
        for _ in range(20):
            zlib.crc32(DATA)


def render():
    for _ in range(10):
        zlib.crc32(DATA)


def run(rounds):
    world = World()
    for _ in range(rounds):
        world.physics()
        world.sensors()
        render()


if sys.argv[2:] == ["fork"]:
    # The functions have run, so that the child has their names from its parent only.
    run(1)
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    else:
        run(int(sys.argv[1]))
        os._exit(0)
else:
    run(int(sys.argv[1]))
