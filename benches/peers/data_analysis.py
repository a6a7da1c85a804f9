"""`data_analysis` beside duckdb and polars: the same queries over the same CSV files, each in a process of its own.

usage: data_analysis.py PROGRAM FOLDER [MEGABYTES…]

PROGRAM is an optimized `toolcrib`; the files are made in FOLDER, which is removed at the end. A query passes if its rows
are those of both peers, and if all processes of the call together stay within `data_analysis.memory`.
"""

import json
import math
import os
import shutil
import subprocess
import sys
import time

# The default of `data_analysis.memory`.
MEMORY_MIB = 512
# Longest time of one query, in seconds. The default of `data_analysis.timeout` is 60.
TIME = 600

AMOUNT = "quantity * price"
QUERIES = {
    "count": "SELECT count(*), sum(quantity) FROM sales WHERE region = 'north' AND quantity > 5",
    "group by": f"SELECT region, count(*), sum(quantity), sum({AMOUNT}) FROM sales GROUP BY region ORDER BY region",
    "join": "SELECT c.country, count(*), sum(s.quantity) FROM sales s JOIN customers c ON c.customer = s.customer "
    "WHERE c.tier = 'gold' GROUP BY c.country ORDER BY c.country",
    "top 10": f"SELECT id, product, {AMOUNT} AS amount FROM sales ORDER BY amount DESC, id LIMIT 10",
}
FILES = {"join": ["sales.csv", "customers.csv"]}


def make_files(folder, megabytes):
    """Rows are computed from their numbers, so that each run has the same."""
    import duckdb

    noise = "(i * 2654435761) % 4294967296"
    sales = f"""SELECT i AS id, DATE '2020-01-01' + CAST((i * 31) % 2000 AS INTEGER) AS day,
        ['north', 'south', 'east', 'west', 'centre', 'coast', 'hills', 'islands'][1 + ((h >> 9) % 8)] AS region,
        'article-' || ((h >> 3) % 5000) AS product, 1 + (h >> 5) % 50000 AS customer, 1 + (h >> 11) % 20 AS quantity,
        CAST((h >> 7) % 100000 AS DECIMAL(9, 2)) / 100 AS price
        FROM (SELECT i, {noise} AS h FROM range(1, ROWS + 1) t(i))"""
    customers = f"""SELECT i AS customer, 'Customer ' || i AS name,
        'country ' || ((h >> 4) % 40) AS country, ['gold', 'silver', 'none'][1 + ((h >> 8) % 3)] AS tier
        FROM (SELECT i, {noise} AS h FROM range(1, 50001) t(i))"""

    def write(name, query):
        path = os.path.join(folder, name)
        duckdb.sql(f"COPY ({query}) TO '{path}' (HEADER, DELIMITER ',')")
        return os.path.getsize(path)

    sample = 200_000
    bytes_per_row = write("sales.csv", sales.replace("ROWS", str(sample))) / sample
    # Later numbers are up to two digits longer.
    rows = int(megabytes * 1e6 / (bytes_per_row + 1.5))
    size = write("sales.csv", sales.replace("ROWS", str(rows)))
    write("customers.csv", customers)
    return rows, size


def peak_of(pid, peaks):
    """Notes the peak of memory of a process and its descendants, in KiB."""
    children = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat") as stat:
                    parent = stat.read().rsplit(")", 1)[1].split()[1]
                children.setdefault(int(parent), []).append(int(entry))
            except (OSError, IndexError):
                pass
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        waiting.extend(children.get(one, []))
        try:
            with open(f"/proc/{one}/status") as status:
                for line in status:
                    if line.startswith("VmHWM:"):
                        peaks[one] = max(peaks.get(one, 0), int(line.split()[1]))
        except OSError:
            pass


def measured(command, folder):
    """Runs a program: its output, its seconds, and the sum of the peaks of its processes in MiB."""
    start = time.monotonic()
    peaks = {}
    with open(os.path.join(folder, "out"), "w+") as out, open(os.path.join(folder, "err"), "w+") as err:
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, stdin=subprocess.DEVNULL)
        while process.poll() is None:
            peak_of(process.pid, peaks)
            if time.monotonic() - start > TIME + 30:
                process.kill()
            time.sleep(0.02)
        seconds = time.monotonic() - start
        out.seek(0)
        err.seek(0)
        text, problem = out.read(), err.read()
    if process.returncode != 0:
        raise RuntimeError(f"{command[:3]} ended with {process.returncode}: {(text + problem)[-600:]}")
    return text, seconds, sum(peaks.values()) / 1024


def ours(program, folder, query):
    paths = json.dumps(FILES.get(query, ["sales.csv"]))
    command = [program, "call", "--config", "config.yml", "data_analysis", f"paths={paths}", f"sql={QUERIES[query]}", "--json"]
    text, seconds, memory = measured(command, folder)
    return json.loads(text)["data"]["rows"], seconds, memory


def theirs(peer, folder, query):
    text, seconds, memory = measured([sys.executable, os.path.abspath(__file__), "--peer", peer, query], folder)
    return json.loads(text), seconds, memory


def run_peer(peer, query):
    """One query of a peer over the files in the working folder; prints the rows as JSON."""
    if peer == "duckdb":
        import duckdb

        connection = duckdb.connect()
        for table in ["sales", "customers"]:
            connection.execute(f"CREATE VIEW {table} AS SELECT * FROM read_csv('{table}.csv')")
        rows = connection.execute(QUERIES[query].replace("price", "CAST(price AS DOUBLE)")).fetchall()
    else:
        import polars as pl

        sales, customers = pl.scan_csv("sales.csv"), pl.scan_csv("customers.csv")
        count, quantity = pl.len().alias("count"), pl.col("quantity").sum()
        amount = (pl.col("quantity") * pl.col("price")).alias("amount")
        plan = {
            "count": lambda: sales.filter((pl.col("region") == "north") & (pl.col("quantity") > 5)).select(count, quantity),
            "group by": lambda: sales.group_by("region").agg(count, quantity, amount.sum()).sort("region"),
            "join": lambda: sales.join(customers.filter(pl.col("tier") == "gold"), on="customer")
            .group_by("country").agg(count, quantity).sort("country"),
            "top 10": lambda: sales.select("id", "product", amount).sort(["amount", "id"], descending=[True, False]).head(10),
        }[query]()
        rows = plan.collect(engine="streaming").rows()
    print(json.dumps([list(row) for row in rows], default=float))


def same(one, other):
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9)
    return one == other


def main():
    program, folder = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    sizes = [int(size) for size in sys.argv[3:]] or [100, 1000]
    passed = failed = 0
    shutil.rmtree(folder, ignore_errors=True)
    try:
        for megabytes in sizes:
            workspace = os.path.join(folder, str(megabytes))
            os.makedirs(workspace)
            if shutil.disk_usage(folder).free < 8e9 + megabytes * 4e6:
                print(f"{megabytes} MB: not enough disk space")
                failed += len(QUERIES)
                continue
            rows, size = make_files(workspace, megabytes)
            with open(os.path.join(workspace, "config.yml"), "w") as config:
                config.write(f"workspace: {{root: .}}\ndata_analysis: {{timeout: {TIME}s, memory: {MEMORY_MIB}MiB}}\n")
            print(f"sales.csv: {size / 1e6:.0f} MB, {rows:,} rows; customers.csv: 50,000 rows; {os.cpu_count()} processors")
            print(f"{'':10}{'toolcrib':>18}{'duckdb':>18}{'polars':>18}   times as long as duckdb, polars")
            for query in QUERIES:
                try:
                    own = ours(program, workspace, query)
                    peers = [theirs(peer, workspace, query) for peer in ["duckdb", "polars"]]
                except (RuntimeError, ValueError, KeyError) as problem:
                    print(f"{query:10}{problem}")
                    failed += 1
                    continue
                cells = "".join(f"{seconds:8.2f} s {memory:4.0f} MiB" for _, seconds, memory in [own, *peers])
                print(f"{query:10}{cells}   {own[1] / peers[0][1]:.1f}, {own[1] / peers[1][1]:.1f}")
                faults = [f"rows differ: {own[0][:3]} {rows[:3]}" for rows, _, _ in peers if not same(own[0], rows)]
                if own[2] > MEMORY_MIB:
                    faults.append(f"more than {MEMORY_MIB} MiB")
                for fault in faults:
                    print(f"  FAILED: {fault}")
                passed, failed = (passed, failed + 1) if faults else (passed + 1, failed)
            shutil.rmtree(workspace)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--peer"]:
        run_peer(sys.argv[2], sys.argv[3])
    else:
        sys.exit(main())
