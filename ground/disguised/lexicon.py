# defect: a species is found by going through a list of objects and comparing one attribute of each, for each sighting
# kinds: list-search, full-scan-each-step, superlinear-lookup
# guilty: Lexicon.find, Survey.count
import math
import sys


class Species:
    __slots__ = ("code", "seen", "weight")

    def __init__(self, code):
        self.code, self.seen, self.weight = code, 0, 1.0


class Lexicon:
    def __init__(self, number, searches):
        self.species = [Species(code * 7 + 3) for code in range(number)]
        self.by_code = {one.code: one for one in self.species}
        self.searches = searches

    def find(self, code):
        if not self.searches:
            return self.by_code.get(code)
        for one in self.species:
            if one.code == code:
                return one
        return None


class Survey:
    def __init__(self, lexicon):
        self.lexicon = lexicon
        self.total = 0.0

    def walk(self, day):
        place = 0.0
        for i in range(3000):
            place += math.sin(day * 0.1 + i) * 0.01
        self.total += place

    def count(self, day):
        for i in range(25):
            one = self.lexicon.find(((i * 37 + day * 11) % 400) * 7 + 3)
            one.seen += 1
            one.weight = 0.99 * one.weight + 0.01 * i


def main():
    survey = Survey(Lexicon(400, sys.argv[1] == "slow"))
    days = int(sys.argv[2]) if len(sys.argv) > 2 else 1 << 60
    for day in range(days):
        survey.walk(day)
        survey.count(day)


main()
