"""Known shares of lines: native work of 70, 20 and 10 % below three lines of one function, which two lines call, one of them
three times as often as the other; and arithmetic that the interpreter does itself.

usage: lines.py ROUNDS
"""
import sys
import zlib

SEVENTY = bytes(70 << 16)
TWENTY = bytes(20 << 16)
TEN = bytes(10 << 16)


def step():
    zlib.crc32(SEVENTY)
    zlib.crc32(TWENTY)
    return zlib.crc32(
        TEN)


def twice(function):
    return function() + function()


def run(rounds):
    for _ in range(rounds):
        step()
        twice(step), step()


def count(rounds):
    total = 0
    for number in range(rounds * 10000):
        total = total * 3 + number & 0xffff; total = total * 5 - number & 0xffff; total = total * 7 + number & 0xffff
    return total


run(int(sys.argv[1]))
count(int(sys.argv[1]))
