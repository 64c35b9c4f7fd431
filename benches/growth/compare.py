"""Stepscope's laws of growth beside Extra-P's, on the same synthetic tables. See `run`.

A table has 3 to 8 sizes (doubling from 100, or 100, 200, 300, ...), 3 to 10 runs each, normal noise of 2, 5 or 10 %
as a factor, and costs f(n) + u f(100), with u 0 in half of the tables, 1 in a quarter, and 5 in a quarter.
"""

import math
import subprocess
import sys
import warnings

import numpy as np

from extrap.entities.callpath import Callpath
from extrap.entities.coordinate import Coordinate
from extrap.entities.experiment import Experiment
from extrap.entities.functions import ConstantFunction
from extrap.entities.measurement import Measurement
from extrap.entities.metric import Metric
from extrap.entities.parameter import Parameter
from extrap.modelers.model_generator import ModelGenerator

# Name: power of n, power of log n.
LAWS = {
    "constant": (0, 0),
    "log n": (0, 1),
    "n": (1, 0),
    "n log n": (1, 1),
    "n^1.5": (1.5, 0),
    "n^2": (2, 0),
    "n^3": (3, 0),
}


class Table:
    def __init__(self, random, law, points, noise, runs, draw):
        self.law, self.points, self.noise, self.runs = law, points, noise, runs
        power, logs = LAWS[law]
        growing = lambda n: n**power * math.log(n) ** logs
        self.offset = 0 if law == "constant" else [0, 1, 0, 5][draw % 4]
        self.cost = lambda n: growing(n) + self.offset * growing(100)
        doubling = draw % 8 < 4
        self.sizes = [100 * 2**i if doubling else 100 * (i + 1) for i in range(points)]
        self.values = [self.cost(n) * np.exp(random.normal(0, noise, runs)) for n in self.sizes]

    def line(self):
        return " ".join(f"{n}:" + ",".join(f"{v:.10g}" for v in values) for n, values in zip(self.sizes, self.values))

    def truth(self):
        return self.cost(4 * self.sizes[-1])


def extra_p(tables):
    """The name of Extra-P's law and its cost at four times the largest size, for each table."""
    metric = Metric("time")
    found = []
    for table in tables:
        # One experiment a table, for Extra-P takes the sizes of all its tables together.
        experiment = Experiment()
        experiment.add_parameter(Parameter("n"))
        experiment.add_metric(metric)
        path = Callpath("f")
        experiment.add_callpath(path)
        for n, values in zip(table.sizes, table.values):
            coordinate = Coordinate(n)
            experiment.add_coordinate(coordinate)
            experiment.add_measurement(Measurement(coordinate, path, metric, values))
        generator = ModelGenerator(experiment)
        generator.model_all()
        function = generator.models[(path, metric)].hypothesis.function
        found.append((name_of(function), float(function.evaluate(4 * table.sizes[-1]))))
    return found


def name_of(function):
    if isinstance(function, ConstantFunction) or not function.compound_terms:
        return "constant"
    power = logs = 0.0
    for term in function.compound_terms[0].simple_terms:
        if term.term_type == "polynomial":
            power = float(term.exponent)
        else:
            logs = float(term.exponent)
    for name, powers in LAWS.items():
        if powers == (power, logs):
            return name
    return f"n^{power:.3g} log^{logs:.3g} n"


def ours(program, tables):
    lines = "\n".join(table.line() for table in tables) + "\n"
    output = subprocess.run([program, "fit"], input=lines, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in output.splitlines()]


def percent(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "-"


def main():
    program, draws = sys.argv[1], int(sys.argv[2])
    warnings.filterwarnings("ignore")
    random = np.random.default_rng(1)
    tables = [
        Table(random, law, points, noise, runs, draw)
        for law in LAWS
        for points in (3, 4, 5, 6, 8)
        for noise in (0.02, 0.05, 0.1)
        for runs in (3, 5, 10)
        for draw in range(draws)
    ]
    rows = list(zip(tables, ours(program, tables), extra_p(tables)))
    groups = [("all", lambda t: True)]
    groups += [(name, lambda t, name=name: t.law == name) for name in LAWS]
    groups += [(f"{p} sizes", lambda t, p=p: t.points == p) for p in (3, 4, 5, 6, 8)]
    groups += [(f"{noise:.0%} noise".replace("%", " %"), lambda t, noise=noise: t.noise == noise) for noise in (0.02, 0.05, 0.1)]
    groups += [(f"{r} runs", lambda t, r=r: t.runs == r) for r in (3, 5, 10)]
    groups += [("no fixed part", lambda t: t.offset == 0), ("with fixed part", lambda t: t.offset > 0)]
    print(f"{len(tables)} tables. Ours: share where the most probable law is right, share where a law is named, share")
    print("of those where it is right. Error: median and 90th percentile of |predicted / true - 1| at four times the")
    print("largest size. Held: share of our 95 % intervals that hold the true cost there.\n")
    print("| tables | law right | Extra-P | law named | named right | error | Extra-P | error, 90th | Extra-P | held |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, belongs in groups:
        part = [row for row in rows if belongs(row[0])]
        count = len(part)
        best = sum(fit[0] == table.law for table, fit, _ in part)
        theirs = sum(law == table.law for table, _, (law, _) in part)
        named = [(table, fit) for table, fit, _ in part if fit[2] != "inconclusive"]
        right = sum(fit[2] == table.law for table, fit in named)
        held = sum(float(fit[7]) <= table.truth() <= float(fit[8]) for table, fit, _ in part)
        error = [abs(float(fit[6]) / table.truth() - 1) for table, fit, _ in part]
        error_theirs = [abs(cost / table.truth() - 1) for table, _, (_, cost) in part]
        figures = [percent(best, count), percent(theirs, count), percent(len(named), count), percent(right, len(named))]
        for quantile in (0.5, 0.9):
            figures += [f"{100 * np.quantile(errors, quantile):.1f} %" for errors in (error, error_theirs)]
        print(f"| {name} | " + " | ".join(figures + [percent(held, count)]) + " |")


main()
