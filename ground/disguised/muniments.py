# defect: while deeds are catalogued, the register is opened and closed for each deed
# kinds: file-opened-each-time
# guilty: Register.enter, catalogue
# seconds: 20
import math
import os
import sys
import tempfile


class Deed:
    __slots__ = ("number", "year", "acres", "parish", "value")

    def __init__(self, number):
        self.number, self.year = number, 1600 + number * 37 % 250
        self.acres, self.parish, self.value = (number * 7919 % 1000) / 10, number * 31 % 97, 0.0


class Register:
    def __init__(self, path, reopens):
        self.path, self.reopens = path, reopens
        self.file = None if reopens else open(path, "a")

    def enter(self, line):
        if self.reopens:
            with open(self.path, "a") as file:
                file.write(line)
        else:
            self.file.write(line)

    def close(self):
        if self.file:
            self.file.close()


def read_deeds(number):
    deeds = []
    for i in range(number):
        deed = Deed(i)
        deed.value = math.sqrt(deed.acres) * (deed.year - 1500)
        deeds.append(deed)
    return deeds


def parish_rents(deeds, rounds):
    rents = [1.0] * 97
    for _ in range(rounds):
        for deed in deeds:
            rents[deed.parish] = 0.999 * rents[deed.parish] + 0.001 * deed.value
    return rents


def catalogue(register, deeds, rents):
    for deed in deeds:
        share = rents[deed.parish]
        for k in range(1, 12):
            share = 0.9 * share + math.log1p(deed.value * k)
        register.enter(f"{deed.number};{deed.year};{share:.2f}\n")


def trace_descent(deeds, rounds):
    longest = 0.0
    for k in range(rounds):
        line = 0.0
        for deed in deeds:
            line = max(0.0, line + math.sin(deed.year + k) * deed.acres - 0.3)
            longest = max(longest, line)
    return longest


def main():
    slow = sys.argv[1] == "slow"
    with tempfile.TemporaryDirectory() as folder:
        deeds = read_deeds(90000)
        rents = parish_rents(deeds, 6)
        register = Register(os.path.join(folder, "register.txt"), slow)
        catalogue(register, deeds[:60000], rents)
        register.close()
        print(trace_descent(deeds, 10))


main()
