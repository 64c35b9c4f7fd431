# defect: while chapters are marked, a pattern is compiled for each name and chapter; there are more names than Python keeps patterns
# kinds: pattern-compiled-each-step
# guilty: mark, Book.mark, pattern_of
# seconds: 20
import math
import re
import sys


class Book:
    def __init__(self, chapters, words):
        self.chapters = []
        for chapter in range(chapters):
            text = " ".join(f"w{(chapter * 31 + i * i) % 5000}" for i in range(words))
            self.chapters.append(text)
        self.marks = {}

    def lengths(self):
        return [len(text) for text in self.chapters]


def pattern_of(name):
    return re.compile(r"\b" + name + r"[a-c]?\b")


def mark(book, names, patterns):
    for number, text in enumerate(book.chapters):
        for name in names:
            pattern = patterns[name] if patterns else pattern_of(name)
            found = pattern.search(text)
            if found:
                book.marks.setdefault(name, []).append((number, found.start()))


def weigh(book, rounds):
    weights = [float(length) for length in book.lengths()]
    for _ in range(rounds):
        last = weights[-1]
        for i, weight in enumerate(weights):
            weights[i] = 0.5 * weight + 0.25 * last + math.sin(weight)
            last = weight
    return sum(weights)


def spread(book, rounds):
    total = 0.0
    for k in range(rounds):
        for name, places in book.marks.items():
            first, last = places[0][1], places[-1][1]
            total += math.sqrt(abs(last - first) + k) / (1 + len(places))
    return total


def main():
    slow = sys.argv[1] == "slow"
    book = Book(12, 900)
    names = [f"w{i * 7}" for i in range(640)]
    before = weigh(book, 60000)
    patterns = None if slow else {name: pattern_of(name) for name in names}
    mark(book, names, patterns)
    print(before, spread(book, 1500))


main()
