"""A program with functions of many forms. It runs `look.py` (second argument) in its first half, and checks in both halves that all calls give what
they must. First argument: the folder of the look.

Functions named `again_*` do the same work again; the results must say so, and of no other function."""

import dataclasses
import enum
import functools
import inspect
import random
import sys
import threading
import time

if sys.version_info < (3, 9):
    sys.exit("Python 3.9 is needed for this test")

FOLDER, LOOK = sys.argv[1], sys.argv[2]


def spin(number):
    total = 0
    for one in range(300):
        total = (total * 31 + one + number) % 1000003
    return total


class Kind(enum.Enum):
    FAST = 1
    SLOW = 2


@dataclasses.dataclass
class Body:
    place: float
    speed: float
    kind: Kind = Kind.FAST
    tags: dict = dataclasses.field(default_factory=dict)


class Slotted:
    __slots__ = ("weight", "other")

    def __init__(self, weight):
        self.weight = weight


class Point(tuple):
    pass


FACTORS = {"drag": 3}
LOG = []
NOWHERE = open("/dev/null", "w")


class Base:
    def cost(self, number):
        return spin(number)


class World(Base):
    limit = 5

    def __init__(self):
        self.tick = 0
        self.map = {(x, y): {"time": x * y, "tags": [1, 2.5, None]} for x in range(8) for y in range(8)}
        self.weather, self.table, self.field = {"time": 0}, {}, []
        self.bodies = [Body(0.0, 0.0) for _ in range(10)]
        self.moving = [Body(0.0, 1.0) for _ in range(10)]
        self.random = random.Random(1)
        self.slotted = Slotted(2)
        self.points = {Point((1, 2)), Point((-1, -2)), "a"}
        self.opened = None

    # Do the same again.
    def again_path(self, start, end):
        return [spin(start + end + len(self.map)) for _ in range(3)] + [self.map[start % 8, end % 8]["time"]]

    def again_table(self):
        self.table = {number: spin(number) for number in range(8)}

    def again_super(self, number):
        return super().cost(number) + __class__.limit + super().cost(number + 1)

    def again_many(self, one, /, two=2, *rest, three=3, **others):
        assert (two, others.get("x", 9)) != (0, 0)
        return (spin(one + two + three + len(rest)), spin(two), sorted(others), self.slotted.weight, len(self.points), spin(three))

    @staticmethod
    def again_static(body, factor):
        return [spin(int(body.place) + factor) for _ in range(3)], body.kind

    @classmethod
    def again_class(cls, number):
        return [spin(number + cls.limit) for _ in range(3)]

    def again_out(self, out):
        for number in range(6):
            out.append(spin(number))

    # Do not, or cannot be known to.
    def reads_weather(self, number):
        return [spin(number + self.weather["time"]) for _ in range(3)]

    def mutates(self):
        self.field.append(1)
        return [spin(len(self.field)) for _ in range(3)]

    def draws(self):
        return [spin(2) for _ in range(3)] + [self.random.random()]

    def draws_by_module(self):
        return [spin(2) for _ in range(3)][random.randrange(1)]

    def asks_clock(self):
        return [spin(2) for _ in range(3)] and time.time() < 0

    def writes(self):
        self.opened.write("%s\n" % [spin(2) for _ in range(3)])
        return 1

    def waits(self):
        time.sleep(0)
        return [spin(2) for _ in range(3)]

    def at_rest(self):
        for body in self.bodies:
            body.speed += body.place * 0.1
            body.place += body.speed * 0.1
            spin(3)

    def at_rest_with_result(self):
        for body in self.bodies:
            body.place += body.speed * 0.1
            spin(3)
        return len(self.bodies)

    def moves(self):
        for body in self.moving:
            body.place += body.speed * 0.1
            spin(3)

    def getter(self):
        return self.map

    def reads_global(self, number):
        return [spin(number + FACTORS["drag"]) for _ in range(3)]

    def logs(self, number):
        LOG.append(number)
        return [spin(number) for _ in range(3)]

    def generates(self, number):
        for one in range(number):
            yield spin(one)

    async def waits_for(self, number):
        return spin(number)

    def raises(self, number):
        if spin(number) >= 0:
            spin(number + 1)
            raise KeyError(number)

    def deep(self, number):
        return 0 if number == 0 else 1 + self.deep(number - 1)

    def consumes(self, numbers):
        return [spin(one) for one in numbers]

    def callers(self):
        return sys._getframe(1).f_code.co_name, spin(1), spin(2), spin(3)


class Robot:
    """All are at rest. Each must be asked."""

    def __init__(self):
        self.speed = 0.0

    def is_moving(self):
        return [spin(2) for _ in range(3)] and self.speed > 0


def again_fibonacci(number):
    return spin(number) % 2 + (1 if number < 2 else again_fibonacci(number - 1) + again_fibonacci(number - 2))


def decorated(function):
    @functools.wraps(function)
    def inner(*arguments):
        return function(*arguments)
    return inner


@decorated
def again_wrapped(number):
    return [spin(number) for _ in range(4)]


def maker(fixed, state):
    def again_closure(number):
        return [spin(number + fixed["offset"]) for _ in range(3)]

    def changing_closure(number):
        return [spin(number + state["count"]) for _ in range(3)]
    return again_closure, changing_closure


STATE = {"count": 0}
again_closure, changing_closure = maker({"offset": 1}, STATE)


def expected(world, step):
    """Calls everything, and checks it against the same work written otherwise."""
    three = lambda number: [spin(number) for _ in range(3)]
    for start in range(3):
        path = world.again_path(start, 2)
        assert path == three(start + 2 + 64) + [world.map[start, 2]["time"]], path
    world.again_table()
    assert world.table[3] == spin(3) and len(world.table) == 8
    assert world.again_super(4) == spin(4) + 5 + spin(5)
    assert world.again_many(1) == (spin(6), spin(2), [], 2, 3, spin(3))
    assert world.again_many(1, 5, 6, three=7, x=1) == (spin(14), spin(5), ["x"], 2, 3, spin(7))
    assert World.again_static(Body(1.5, 2.0), 3) == (three(4), Kind.FAST)
    assert World.again_class(2) == three(7)
    out = []
    assert world.again_out(out) is None and out == [spin(number) for number in range(6)]
    world.weather["time"] = step
    assert world.reads_weather(1) == three(1 + step)
    world.mutates()
    assert len(world.draws()) == 4
    assert world.draws_by_module() == spin(2)
    assert world.asks_clock() is False
    assert world.writes() == 1
    assert world.waits() == three(2)
    world.at_rest()
    assert world.at_rest_with_result() == 10
    world.moves()
    assert abs(world.moving[0].place - 0.1 * (step + 1)) < 1e-6
    assert world.getter() is world.map
    FACTORS["drag"] = step
    assert world.reads_global(1) == three(1 + step)
    assert world.logs(1) == three(1)
    assert list(world.generates(3)) == [spin(0), spin(1), spin(2)]
    coroutine = world.waits_for(3)
    try:
        coroutine.send(None)
    except StopIteration as stop:
        assert stop.value == spin(3)
    try:
        world.raises(5)
        raise AssertionError
    except KeyError as error:
        assert error.args == (5,)
    assert world.deep(300) == 300
    assert world.consumes(iter([1, 2])) == [spin(1), spin(2)]
    assert world.callers()[0] == "expected"
    assert not any(robot.is_moving() for robot in (Robot(), Robot()))
    assert again_fibonacci(4) >= 5
    assert again_wrapped(3) == three(3) + [spin(3)]
    assert again_closure(1) == three(2)
    STATE["count"] = step
    assert changing_closure(1) == three(1 + step)


def watched():
    import gc
    names = []
    for one in gc.get_objects():
        if inspect.isfunction(one) and one.__code__.co_filename == __file__:
            name = getattr(one.__code__, "co_qualname", one.__code__.co_name)
            if name not in ("spin", "expected", "watched", "main", "maker", "decorated", "look") and "__" not in name:
                names.append(name)
    return sorted(set(names))


def look():
    with open(LOOK, "rb") as file:
        code = compile(file.read(), "<stepscope look>", "exec")
    space = {"FOLDER": FOLDER}
    exec(code, space)
    return space["LOOK"]


def main():
    world = World()
    world.opened = NOWHERE
    signatures = {name: str(inspect.signature(getattr(World, name))) for name in dir(World) if callable(getattr(World, name)) and not name.startswith("__")}
    for step in range(3):
        expected(world, step)
    with open(FOLDER + "/functions", "w") as file:
        for name in watched():
            file.write("%s\t%s\n" % (name, __file__))
    codes = {name: getattr(World, name).__code__ for name in signatures if hasattr(getattr(World, name), "__code__")}
    with open(FOLDER + "/go", "wb") as file:
        file.write(b"\1")
    running = look()
    assert any(getattr(World, name).__code__ is not codes[name] for name in codes), "nothing is watched"
    assert signatures == {name: str(inspect.signature(getattr(World, name))) for name in signatures}, "signatures are others"
    stop = threading.Event()
    other = World()
    other.opened = world.opened

    def beside():
        while not stop.is_set():
            assert again_fibonacci(4) >= 5 and other.deep(200) == 200

    thread = threading.Thread(target=beside)
    thread.start()
    end = time.monotonic() + 60
    while not running.ended and time.monotonic() < end:
        step += 1
        expected(world, step)
    stop.set()
    thread.join()
    assert running.ended, "the look does not end"
    for _ in range(3):
        step += 1
        expected(world, step)
    assert all(getattr(World, name).__code__ is codes[name] for name in codes), "code was not put back"
    assert sys.getprofile() is None
    NOWHERE.close()
    print("all calls were right")


main()
