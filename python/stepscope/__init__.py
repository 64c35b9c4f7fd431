"""Stepscope from Python: captures as data frames, and every analysis of the program by its name.

    import stepscope

    capture = stepscope.open("run.capture")
    capture.pandas("samples")                            # a table of the capture; also .polars() and .arrow()
    stepscope.show("run.capture", "wall")["wall"]        # the tables of `stepscope show --view wall`
    stepscope.diagnose("stepscope-runs", owned="sim::*") # also rank, compare, explain, gate
    stepscope.flamegraph("run.capture")                  # a picture in a notebook

Options are those of the command line: `limit=5` is `--limit 5`, `per_step=True` is `--per-step`, a list repeats its option.
The module needs only the standard library; pandas, polars and pyarrow are imported when they are asked for.
"""

from __future__ import annotations

import html
import json
import os
import shutil
import subprocess
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Union

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Capture", "Column", "Error", "Picture", "Table", "compare", "diagnose", "explain", "flamegraph", "gate", "open",
           "program", "rank", "show", "tables"]

PathLike = Union[str, "os.PathLike[str]"]


class Error(Exception):
    """The program failed. The text is its message."""


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    #: Unit of its values: `ns`, `bytes`, `percent`, ...; empty for text and ratios.
    unit: str
    doc: str


@dataclass
class Table:
    """A table that the program computed, with exact values."""

    name: str
    title: str
    columns: List[Column]
    #: One dictionary per row; unknown values are `None`.
    rows: List[Dict[str, Any]]
    notes: List[str] = field(default_factory=list)

    def pandas(self) -> "pandas.DataFrame":
        import pandas

        return pandas.DataFrame(self.rows, columns=[column.name for column in self.columns])

    def polars(self) -> "polars.DataFrame":
        import polars

        return polars.DataFrame(self.rows, schema=[column.name for column in self.columns], infer_schema_length=None)

    def arrow(self) -> "pyarrow.Table":
        import pyarrow

        return pyarrow.table({column.name: [row.get(column.name) for row in self.rows] for column in self.columns})

    def _repr_html_(self) -> str:
        heads = "".join(f'<th title="{html.escape(column.doc)}">{html.escape(column.name)}'
                        f'{html.escape(f" [{column.unit}]") if column.unit else ""}</th>' for column in self.columns)
        cells = lambda row: "".join(f"<td>{html.escape(_shown(row.get(column.name)))}</td>" for column in self.columns)
        rows = "".join(f"<tr>{cells(row)}</tr>" for row in self.rows[:100])
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<p><b>{html.escape(self.title)}</b></p><table><tr>{heads}</tr>{rows}</table>{notes}"


class Picture:
    """An SVG, which notebooks show."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def save(self, path: PathLike) -> None:
        Path(path).write_text(self.svg, encoding="utf-8")

    def _repr_html_(self) -> str:
        # In a frame, so that zoom and search work.
        return f'<iframe srcdoc="{html.escape(self.svg)}" style="width: 100%; height: 30em; border: 0"></iframe>'


class Capture:
    """A capture on disk: a folder with `capture.json` and Parquet tables (docs/captures.md)."""

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        description = self.path / "capture.json"
        if not description.is_file():
            raise Error(f"{self.path}: not a capture: it has no capture.json")
        #: Content of capture.json: what was recorded, on which machine, and what was lost.
        self.info: Dict[str, Any] = json.loads(description.read_text(encoding="utf-8"))

    @property
    def tables(self) -> List[str]:
        """Names of the tables, e.g. `samples`, `steps`."""
        return sorted(path.stem for path in self.path.glob("*.parquet"))

    def file(self, table: str) -> Path:
        """The Parquet file of a table."""
        if table not in self.tables:
            raise Error(f"{self.path}: no table {table!r}; there are {', '.join(self.tables)}")
        return self.path / f"{table}.parquet"

    def pandas(self, table: str) -> "pandas.DataFrame":
        """A table; integers with empty cells stay integers (nullable types)."""
        import pandas

        return pandas.read_parquet(self.file(table), dtype_backend="numpy_nullable")

    def polars(self, table: str) -> "polars.DataFrame":
        import polars

        return polars.read_parquet(self.file(table))

    def arrow(self, table: str) -> "pyarrow.Table":
        import pyarrow.parquet

        return pyarrow.parquet.read_table(self.file(table))

    def show(self, view: str = "hotspots", **options: Any) -> Dict[str, Table]:
        """As :func:`show`."""
        return show(self.path, view, **options)

    def flamegraph(self, **options: Any) -> Picture:
        """As :func:`flamegraph`."""
        return flamegraph(self.path, **options)

    def __repr__(self) -> str:
        return f"stepscope.open({str(self.path)!r})"


def open(path: PathLike) -> Capture:
    """Opens a capture."""
    return Capture(path)


def show(path: PathLike, view: str = "hotspots", **options: Any) -> Dict[str, Table]:
    """The tables of `stepscope show --view VIEW`, by name. `path` is a capture or a file that can be imported."""
    return tables("show", path, view=view, **options)


def diagnose(*paths: PathLike, **options: Any) -> Table:
    """What to change first: `stepscope diagnose`."""
    return _first(tables("diagnose", *paths, **options))


def rank(*paths: PathLike, **options: Any) -> Table:
    """What your code costs: `stepscope rank`."""
    return _first(tables("rank", *paths, **options))


def explain(function: str, *paths: PathLike, **options: Any) -> Dict[str, Table]:
    """Callers, callees, threads, lines and waits of a function: `stepscope explain`."""
    return tables("explain", function, *paths, **options)


def compare(before: PathLike, after: PathLike, **options: Any) -> Dict[str, Table]:
    """What changed between two sets of captures: `stepscope compare`."""
    return tables("compare", before, after, **options)


def gate(*paths: PathLike, **options: Any) -> Table:
    """The limits of the lab file, judged: `stepscope gate`. A broken limit is a row, not an exception."""
    return _first(tables("gate", *paths, accepted=(0, 1, 2), **options))


def flamegraph(*paths: PathLike, **options: Any) -> Picture:
    """A flame graph: `stepscope flamegraph`, e.g. with `off_cpu=True`, `per_step=True`."""
    return Picture(_output("flamegraph", paths, dict(options, output="-")))


def tables(subcommand: str, *arguments: PathLike, accepted: "tuple[int, ...]" = (0,), **options: Any) -> Dict[str, Table]:
    """The tables that a subcommand prints with `--format json`, by name."""
    printed = json.loads(_output(subcommand, arguments, dict(options, format="json-compact"), accepted))
    return {one["table"]: _table(one) for one in printed.get("tables", [printed])}


def program() -> str:
    """Path of the program: $STEPSCOPE, else that of this installation, else that in PATH."""
    here = Path(sysconfig.get_path("scripts")) / "stepscope"
    user = Path(sysconfig.get_path("scripts", f"{os.name}_user")) / "stepscope"
    known = [os.environ.get("STEPSCOPE"), *(str(path) for path in (here, user) if path.is_file()), shutil.which("stepscope")]
    for path in known:
        if path:
            return path
    raise Error("the program `stepscope` is not installed; set STEPSCOPE to its path")


def _output(subcommand: str, arguments: "tuple[PathLike, ...]", options: Dict[str, Any], accepted: "tuple[int, ...]" = (0,)) -> str:
    command = [program(), subcommand, *(os.fspath(one) for one in arguments), *_options(options)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
    if done.returncode not in accepted:
        raise Error(done.stderr.strip() or f"stepscope ended with {done.returncode}")
    return done.stdout


def _options(options: Dict[str, Any]) -> List[str]:
    flags: List[str] = []
    for name, value in options.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
            continue
        for one in value if isinstance(value, (list, tuple)) else [value]:
            flags.append(f"{flag}={os.fspath(one) if isinstance(one, os.PathLike) else one}")
    return flags


def _table(printed: Dict[str, Any]) -> Table:
    columns = [Column(one["name"], one.get("unit", ""), one.get("doc", "")) for one in printed["columns"]]
    return Table(printed["table"], printed.get("title", ""), columns, printed["rows"], [str(note) for note in printed.get("notes", [])])


def _first(found: Dict[str, Table]) -> Table:
    return next(iter(found.values()))


def _shown(value: Any) -> str:
    return "" if value is None else str(value)
