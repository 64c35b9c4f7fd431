#!/usr/bin/env python3
"""Real engines over a real store: DuckDB, Polars, Spark, and a local S3 server. `./dev store` runs this.

usage: store.py STEPSCOPE GROUND FOLDER [RUNS]

Records the bundled simulator, adds the run, and asks each engine the same questions by the definitions that `stepscope store
tables` prints. Then lays out RUNS synthetic runs (default 1000) of realistic size, and measures the monthly trend of a function
in DuckDB beside reading the folders. What is missing is skipped by name.
"""

import json
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

QUESTION = "SELECT scenario, variant, count(*) AS n, round(sum(self)) AS self FROM hotspots GROUP BY ALL ORDER BY ALL"
FUNCTIONS = 3000  # of a capture of 100 MB: more than the bundled simulator has


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))[:300]}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


def module(name):
    try:
        return __import__(name)
    except ImportError:
        print(f"skipped: {name}: not installed")
        return None


class Store:
    def __init__(self, stepscope, ground, folder):
        self.stepscope, self.ground, self.folder = stepscope, ground, folder
        self.store = folder / "data"

    def record(self):
        lab = self.folder / "stepscope.toml"
        lab.write_text(
            '[project]\nname = "store test"\nowned = ["ground::*"]\n[record]\nphases = ["steady"]\n'
            "steady = { warmup_s = 1, duration_s = 4 }\n[scenario.shapes]\n"
            f'command = ["{self.ground}", "run", "--n", "500"]\nready = {{ log = "ground: world ready" }}\n'
            "[variant.before]\n[variant.after]\nenv = { CHANGED = \"1\" }\n"
        )
        run(self.stepscope, "run", lab, "-o", self.folder / "runs", cwd=self.folder)
        print(run(self.stepscope, "store", "add", self.folder / "runs/latest", "--to", self.store, "--samples").strip())

    def rows(self, sql, store=None, engine=None, env=None):
        command = [self.stepscope, "query", sql, "--store", store or self.store, "--format", "json"]
        if engine:
            command += ["--engine", engine]
        return [tuple(row.values()) for row in json.loads(run(*command, env=env))["rows"]]

    def definitions(self, engine, store=None, env=None):
        return run(self.stepscope, "store", "tables", store or self.store, "--for", engine, env=env)

    # Each engine answers with (scenario, variant, rows, sum of self).

    def polars(self, store=None, env=None, options=None):
        import polars as pl

        text = self.definitions("polars", store, env)
        if options:
            text = text.replace("pl.scan_parquet(", f"pl.scan_parquet(storage_options={options!r}, source=")
        names = {}
        exec(text, names)
        frame = names["hotspots"].group_by("scenario", "variant").agg(pl.len().alias("n"), pl.col("self").sum())
        assert names["hotspots"].collect_schema()["date"] == pl.Date
        return sorted((s, v, n, round(total)) for s, v, n, total in frame.collect().iter_rows())

    def spark(self, store=None):
        from pyspark.sql import SparkSession

        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
        spark = builder.config("spark.sql.shuffle.partitions", "2").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        exec(self.definitions("spark", store), {})
        rows = spark.sql(QUESTION).collect()
        answer = sorted((row.scenario, row.variant, row.n, round(row.self)) for row in rows)
        assert spark.sql("SELECT count(*) AS n FROM raw_samples").collect()[0].n > 0
        spark.stop()
        return answer


def engines(test):
    expected = None
    for name, answer in [
        ("python", lambda: test.rows(QUESTION, engine="python")),
        ("duckdb", lambda: test.rows(QUESTION, engine="duckdb")),
        ("polars", test.polars),
        ("pyspark", test.spark),
    ]:
        if name == "duckdb" and not shutil.which("duckdb"):
            print("skipped: duckdb: the command line is not installed")
            continue
        if not module({"python": "duckdb"}.get(name, name)) and name != "duckdb":
            continue
        found = [(s, v, n, round(total)) for s, v, n, total in answer()]
        expected = expected or found
        assert len(found) == 2 and found == expected, (name, found, expected)
        print(f"ok: {name}: {found}")
    # The folders say the same.
    show = lambda variant: json.loads(
        run(test.stepscope, "show", test.folder / f"runs/latest/shapes/{variant}/steady", "--format", "json"))
    for _, variant, n, total in expected:
        rows = show(variant)["rows"]
        assert (len(rows), round(sum(row["self"] for row in rows))) == (n, total), variant
    print("ok: `stepscope show` of the folders gives the same rows and sums")


def older_schema(test):
    """A run of an older program, which had fewer columns and tables, beside a new one."""
    import pyarrow.parquet as parquet

    store = test.folder / "mixed"
    shutil.copytree(test.store, store)
    old = next((store / "runs").iterdir())
    new = old.with_name(old.name + "2")
    shutil.copytree(old, new)
    manifest = json.loads((new / "_manifest.json").read_text())
    manifest["run"] += "2"
    (new / "_manifest.json").write_text(json.dumps(manifest))
    manifest = json.loads((old / "_manifest.json").read_text())
    for path in old.glob("table=hotspots/**/part.parquet"):
        table = parquet.ParquetFile(path).read()
        parquet.write_table(table.drop_columns(["attributed"]), path)
    manifest["tables"]["hotspots"] = [c for c in manifest["tables"]["hotspots"] if c["name"] != "attributed"]
    shutil.rmtree(old / "table=wall")
    del manifest["tables"]["wall"]
    for key in ["started_at", "files"]:  # absent from the first manifests
        manifest.pop(key)
    (old / "_manifest.json").write_text(json.dumps(manifest))
    rows = test.rows("SELECT run, count(*), count(attributed) FROM hotspots GROUP BY run ORDER BY run", store)
    assert rows[0][1] == rows[1][1] and rows[0][2] == 0 < rows[1][2], rows
    assert len(test.rows("SELECT DISTINCT run FROM wall", store)) == 1
    answers = {"duckdb": test.rows(QUESTION, store), "polars": test.polars(store)}
    if module("pyspark"):
        answers["spark"] = test.spark(store)
    for name, rows in answers.items():
        assert [round(row[3]) for row in rows] == [round(row[3]) for row in answers["duckdb"]], (name, rows)
    shutil.rmtree(store)
    print(f"ok: a run without a column and a table, beside a new one: {', '.join(answers)}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def bucket(test, client):
    """The same store in a bucket of a local S3 server."""
    if not shutil.which(client):
        print(f"skipped: S3 by {client}: not installed")
        return
    if not module("moto"):
        return
    import boto3

    port = free_port()
    log = open(test.folder / "moto.log", "w")
    server = subprocess.Popen([sys.executable, "-m", "moto.server", "-p", str(port)], stdout=log, stderr=log)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.2)
        tools = test.folder / f"only-{client}"
        tools.mkdir(exist_ok=True)
        for name in [client, "python3"]:
            link = tools / name
            link.unlink(missing_ok=True)
            link.symlink_to(shutil.which(name) if name == client else sys.executable)
        env = {**os.environ, "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
               "AWS_DEFAULT_REGION": "us-east-1", "AWS_REGION": "us-east-1", "PATH": f"{tools}:/usr/bin:/bin",
               "XDG_CACHE_HOME": str(test.folder / f"cache-{client}")}
        env.pop("AWS_CA_BUNDLE", None)  # The local server speaks plain HTTP; rclone 1.60 refuses a bundle.
        s3 = boto3.client("s3", endpoint_url=url, region_name="us-east-1", aws_access_key_id="test",
                          aws_secret_access_key="test")
        s3.create_bucket(Bucket="lab")
        store = "s3://lab/sim/store"
        add = [test.stepscope, "store", "add", test.folder / "runs/latest", "--to", store, "--samples"]
        assert run(*add, env=env).startswith("added"), client
        assert run(*add, env=env).startswith("unchanged"), client
        assert "all complete" in run(test.stepscope, "store", "check", store, env=env)
        shown = json.loads(run(test.stepscope, "show", f"store:{store}/variant=after", "--format", "json", env=env))
        folder = json.loads(run(test.stepscope, "show", test.folder / "runs/latest/shapes/after/steady", "--format", "json"))
        assert shown["rows"] == folder["rows"], client
        history = json.loads(run(test.stepscope, "history", "--store", store, "--view", "runs", "--format", "json", env=env))
        assert history["rows"], client
        options = {"aws_endpoint_url": url, "aws_access_key_id": "test", "aws_secret_access_key": "test",
                   "aws_region": "us-east-1", "aws_allow_http": "true"}
        if module("polars"):
            assert test.polars(store, env, options) == test.polars(), "polars reads the bucket in place"
            # A writer that is stopped after most of its files: its run must not be visible.
            keys = [o["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket="lab") for o in page["Contents"]]
            half = [key for key in keys if "/table=hotspots/" in key]
            for key in half:
                s3.copy_object(Bucket="lab", Key=re.sub("run=[^/]*", "run=half", key), CopySource={"Bucket": "lab", "Key": key})
            assert test.polars(store, env, options) == test.polars(), "half a run is not visible"
            check = subprocess.run([test.stepscope, "store", "check", store], env=env, capture_output=True, text=True)
            assert check.returncode == 1 and "incomplete" in check.stdout, check
        lost = subprocess.run([test.stepscope, "store", "list", store], env={**env, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
                              capture_output=True, text=True)
        assert lost.returncode == 1 and client in lost.stderr, lost
        print(f"ok: S3 by {client}: added, listed, checked, shown, history, read in place by Polars, half a run invisible")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()


def clone(test, store, runs):
    """Synthetic runs: copies of the recorded one on other days and machines. `hotspots` has as many functions as a large
    program, and one function that gets slower in the middle of the time."""
    import numpy
    import pyarrow
    import pyarrow.parquet as parquet

    source = next((test.store / "runs").iterdir())
    (store / "runs").mkdir(parents=True)
    shutil.copy(test.store / "stepscope-store.json", store)
    manifest = json.loads((source / "_manifest.json").read_text())
    files = [file for file in manifest["files"] if file["path"].startswith("table=") and "table=capture/" not in file["path"]]
    wide = {}
    for file in files:
        if file["path"].startswith("table=hotspots/"):
            table = parquet.ParquetFile(source / file["path"]).read()
            rows = numpy.arange(FUNCTIONS) % table.num_rows
            table = table.take(rows)
            names = [f"{name}<{index // len(set(rows))}>" for index, name in enumerate(table["function"].to_pylist())]
            wide[file["path"]] = table.set_column(table.schema.get_field_index("function"), "function", [names])
    random = numpy.random.default_rng(1)
    first = numpy.datetime64("2025-12-01")
    for index in range(runs):
        day, machine = str(first + index * 360 // runs), f"lab{index % 5}"
        name = f"{day}T10-00-00Z-{machine}-{index:08x}"
        target = store / "runs" / f"run={name}"
        written = []
        for file in files:
            path = re.sub(r"date=[^/]*/machine=[^/]*", f"date={day}/machine={machine}", file["path"])
            (target / path).parent.mkdir(parents=True, exist_ok=True)
            if file["path"] in wide:
                table = wide[file["path"]]
                values = numpy.array(table["self"].to_pylist(), dtype=float) * random.normal(1, 0.05, FUNCTIONS)
                values[0] = 1e9 * (1.5 if index > runs // 2 else 1.0) * random.normal(1, 0.05)
                place = table.schema.get_field_index("self")
                parquet.write_table(table.set_column(place, "self", pyarrow.array(values)), target / path, compression="zstd")
            else:
                os.link(source / file["path"], target / path)
            written.append({**file, "path": path})
        captures = [{**capture, "date": day, "machine": machine, "samples": False} for capture in manifest["captures"]]
        (target / "_manifest.json").write_text(
            json.dumps({**manifest, "run": name, "captures": captures, "files": written, "started_at": f"{day}T10:00:00Z"}))
    return wide


def trend(test, runs):
    if not module("duckdb") or not module("pyarrow"):
        return
    import duckdb

    store = test.folder / "thousand"
    wide = clone(test, store, runs)
    function = next(iter(wide.values()))["function"][0].as_py()
    files = [path for path in store.glob("runs/**/*.parquet")]
    hotspots = [path for path in files if "table=hotspots" in str(path)]
    size = sum(path.stat().st_size for path in hotspots)
    print(f"{runs} runs: {len(files)} files, of which {len(hotspots)} of hotspots with {FUNCTIONS} functions each, {size / 1e6:.0f} MB")
    question = (f"SELECT date_trunc('month', date) AS month, variant, avg(self) AS self FROM hotspots "
                f"WHERE function = '{function}' GROUP BY ALL ORDER BY ALL")
    script = test.definitions("duckdb", store)
    definition = next(line for line in script.splitlines() if " VIEW hotspots " in line)
    times, cpu = [], []
    for _ in range(5):
        began, used = time.perf_counter(), time.process_time()
        connection = duckdb.connect()
        connection.execute(definition)
        rows = connection.execute(question).fetchall()
        times.append(time.perf_counter() - began)
        cpu.append(time.process_time() - used)
    assert len(rows) >= 24 and rows[-1][2] > 1.3 * rows[0][2], rows
    print(f"monthly trend in DuckDB: {statistics.median(times):.2f} s (median of 5, {min(times):.2f} to {max(times):.2f}), "
          f"CPU {statistics.median(cpu):.2f} s; {len(rows)} rows")
    began = time.perf_counter()
    test.rows(question, store)
    print(f"the same by `stepscope query`: {time.perf_counter() - began:.2f} s")
    capture = test.folder / "runs/latest/shapes/after/steady"
    bytes_of = sum(path.stat().st_size for path in capture.iterdir())
    one = []
    for _ in range(5):
        began = os.times()
        run(test.stepscope, "show", capture, "--format", "json")
        ended = os.times()
        one.append((ended.elapsed - began.elapsed, sum(ended[2:4]) - sum(began[2:4])))
    wall, used = (statistics.median(values) for values in zip(*one))
    print(f"reading one capture of {bytes_of / 1e6:.2f} MB in its folder: {wall:.2f} s, CPU {used:.2f} s; "
          f"the {2 * runs} captures one after the other: {2 * runs * wall:.0f} s")
    began = time.perf_counter()
    run(test.stepscope, "store", "list", store, "--format", "json")
    print(f"`stepscope store list` of {runs} runs: {time.perf_counter() - began:.2f} s")
    shutil.rmtree(store)


def main():
    stepscope, ground, folder = (Path(part).resolve() for part in sys.argv[1:4])
    runs = int(sys.argv[4]) if len(sys.argv) > 4 else 1000
    os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if not module("duckdb"):
        return
    test = Store(stepscope, ground, folder)
    test.record()
    engines(test)
    if module("pyarrow"):
        older_schema(test)
    for client in ["aws", "rclone"]:
        bucket(test, client)
    trend(test, runs)
    shutil.rmtree(folder, ignore_errors=True)


main()
