"""Records what Flink makes of SQL queries: `python record_plans.py results.json`, where apache-flink is.

Each query runs over files of JSON, one row after the other, with a watermark after each row. Recorded are the compiled plan
(over tables of `datagen`, into which the planner pushes nothing down) and the changelog.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

TABLES: dict[str, dict[str, Any]] = {
    "bids": {
        "columns": "auction INT, bidder STRING, price DECIMAL(10, 2), weight DOUBLE, ts TIMESTAMP(3), pt AS PROCTIME(), WATERMARK FOR ts AS ts - INTERVAL '4' SECOND",
        "names": ["auction", "bidder", "price", "weight", "ts"],
        "rows": [
            [1, "ann", "10.00", 0.5, "2024-01-01 00:00:01"],
            [2, "bob", "7.50", 1.5, "2024-01-01 00:00:02"],
            [1, "bob", "12.00", 0.25, "2024-01-01 00:00:04"],
            [1, "ann", "11.00", None, "2024-01-01 00:00:03"],
            [3, "cid", None, 2.0, "2024-01-01 00:00:09"],
            [2, "ann", "7.50", 1.5, "2024-01-01 00:00:06.500"],
            [None, "dee", "1.25", 4.0, "2024-01-01 00:00:11"],
            [2, None, "20.00", -1.0, "2024-01-01 00:00:10"],
            [1, "cid", "9.75", 8.0, "2024-01-01 00:00:14"],
            [1, "ann", "99.99", 16.0, "2024-01-01 00:00:05"],
            [3, "bob", "3.10", 0.125, "2024-01-01 00:00:15"],
            [2, "bob", "21.00", 3.5, "2024-01-01 00:00:20"],
            [3, "ann", "3.20", None, "2024-01-01 00:00:17"],
            [1, "bob", "50.00", 2.5, "2024-01-01 00:00:31"],
            [2, "dee", "0.50", 1.0, "2024-01-01 00:00:27"],
            [1, "bob", "12.00", 0.25, "2024-01-01 00:00:32"],
        ],
    },
    "auctions": {
        "columns": "id INT, item STRING, seller STRING, tags ARRAY<STRING>, opened TIMESTAMP(3), WATERMARK FOR opened AS opened",
        "names": ["id", "item", "seller", "tags", "opened"],
        "rows": [
            [1, "vase", "ann", ["old", "blue"], "2024-01-01 00:00:00"],
            [2, "lamp", "bob", ["new"], "2024-01-01 00:00:01"],
            [3, "desk", "ann", [], "2024-01-01 00:00:05"],
            [4, "sofa", None, None, "2024-01-01 00:00:06"],
            [2, "lamp 2", "bob", ["new", None], "2024-01-01 00:00:12"],
            [5, "bed", "eve", ["old"], "2024-01-01 00:00:30"],
        ],
    },
}  # fmt: skip
DEDUP = "SELECT {columns} FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY {order}) AS n FROM bids) WHERE n {limit}"
TUMBLE = "TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND))"
HOP = "TABLE(HOP(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '10' SECOND))"
CUMULATE = "TABLE(CUMULATE(TABLE bids, DESCRIPTOR(ts), INTERVAL '5' SECOND, INTERVAL '15' SECOND))"
SESSION = "TABLE(SESSION(TABLE bids PARTITION BY auction, DESCRIPTOR(ts), INTERVAL '4' SECOND))"
MEASURES = "COUNT(*) AS c, COUNT(bidder) AS cb, SUM(price) AS s, AVG(price) AS a, MIN(weight) AS mi, MAX(bidder) AS ma"
LAST = f"({DEDUP.format(columns='auction, bidder, price', key='auction', order='ts DESC', limit='= 1')})"
FIRST_ROWS = DEDUP.format(columns="auction, bidder, price, ts", key="auction", order="ts", limit="= 1")
COUNTS = "(SELECT bidder, COUNT(*) AS c FROM bids GROUP BY bidder)"
QUERIES: dict[str, str] = {
    "calc": "SELECT auction * 2 AS x, UPPER(bidder) AS b, price FROM bids WHERE price > 5 OR weight IS NULL",
    "calc of constants": "SELECT 1 AS x FROM bids",
    "values": "SELECT * FROM (VALUES (1, 'a'), (2, CAST(NULL AS STRING))) AS t(x, y)",
    "values expression": "SELECT x + 1 AS x FROM (VALUES (1), (2), (3)) AS t(x) WHERE x > 1",
    "union all": "SELECT auction, bidder FROM bids UNION ALL SELECT id, seller FROM auctions",
    "union": "SELECT bidder FROM bids UNION SELECT seller FROM auctions",
    "intersect": "SELECT bidder FROM bids INTERSECT SELECT seller FROM auctions",
    "intersect all": "SELECT bidder FROM bids INTERSECT ALL SELECT seller FROM auctions",
    "except": "SELECT bidder FROM bids EXCEPT SELECT seller FROM auctions",
    "except all": "SELECT bidder FROM bids EXCEPT ALL SELECT seller FROM auctions",
    "distinct": "SELECT DISTINCT bidder FROM bids",
    "group": f"SELECT auction, {MEASURES} FROM bids GROUP BY auction",
    "group without keys": f"SELECT {MEASURES} FROM bids",
    "group without keys, no row": f"SELECT {MEASURES} FROM bids WHERE price > 1000",
    "group distinct": "SELECT auction, COUNT(DISTINCT bidder) AS c, SUM(DISTINCT price) AS s FROM bids GROUP BY auction",
    "group filter": "SELECT auction, COUNT(*) FILTER (WHERE price > 10) AS c, SUM(weight) FILTER (WHERE bidder = 'ann') AS s FROM bids GROUP BY auction",
    "group having": "SELECT auction, COUNT(*) AS c FROM bids GROUP BY auction HAVING COUNT(*) > 2",
    "group of group": "SELECT c, COUNT(*) AS n, MIN(bidder) AS b, MAX(bidder) AS d, SUM(c) AS s FROM " + COUNTS + " GROUP BY c",
    "group of group distinct": "SELECT COUNT(DISTINCT c) AS n, AVG(c) AS a FROM " + COUNTS,
    "group first last": "SELECT auction, FIRST_VALUE(bidder) AS f, LAST_VALUE(bidder) AS l, LISTAGG(bidder) AS li FROM bids GROUP BY auction",
    "group listagg": "SELECT auction, LISTAGG(bidder, '-') AS li, LISTAGG(DISTINCT bidder) AS ld FROM bids GROUP BY auction",
    "group collect": "SELECT auction, COLLECT(bidder) AS co, ARRAY_AGG(bidder) AS ar FROM bids GROUP BY auction",
    "group variance": "SELECT auction, STDDEV_POP(weight) AS sp, STDDEV_SAMP(weight) AS ss, VAR_POP(weight) AS vp, VAR_SAMP(weight) AS vs FROM bids GROUP BY auction",
    "grouping sets": "SELECT auction, bidder, COUNT(*) AS c, GROUPING(auction) AS g FROM bids GROUP BY GROUPING SETS ((auction), (bidder), ())",
    "rollup": "SELECT auction, bidder, SUM(price) AS s FROM bids GROUP BY ROLLUP (auction, bidder)",
    "tumble": f"SELECT window_start, window_end, {MEASURES} FROM {TUMBLE} GROUP BY window_start, window_end",
    "tumble keyed": f"SELECT auction, window_start, window_end, window_time, {MEASURES} FROM {TUMBLE} GROUP BY auction, window_start, window_end, window_time",
    "tumble distinct": f"SELECT window_end, COUNT(DISTINCT bidder) AS c FROM {TUMBLE} GROUP BY window_start, window_end",
    "tumble offset": f"SELECT auction, window_start, COUNT(*) AS c FROM {TUMBLE.replace(chr(41)*2, ', INTERVAL ' + chr(39) + '2' + chr(39) + ' SECOND))')} GROUP BY auction, window_start, window_end",
    "hop": f"SELECT auction, window_start, window_end, {MEASURES} FROM {HOP} GROUP BY auction, window_start, window_end",
    "cumulate": f"SELECT auction, window_start, window_end, {MEASURES} FROM {CUMULATE} GROUP BY auction, window_start, window_end",
    "session": f"SELECT auction, window_start, window_end, {MEASURES} FROM {SESSION} GROUP BY auction, window_start, window_end",
    "window of window": f"SELECT window_start, window_end, COUNT(*) AS n, SUM(c) AS s FROM (SELECT auction, window_start, window_end, COUNT(*) AS c FROM {TUMBLE} GROUP BY auction, window_start, window_end) GROUP BY window_start, window_end",
    "window rows": f"SELECT auction, window_start, window_end, window_time FROM {HOP} WHERE auction = 1",
    "window grouping sets": f"SELECT window_start, auction, bidder, COUNT(*) AS c FROM {TUMBLE} GROUP BY window_start, window_end, GROUPING SETS ((auction), (bidder))",
    "old tumble": f"SELECT auction, TUMBLE_START(ts, INTERVAL '5' SECOND) AS b, TUMBLE_END(ts, INTERVAL '5' SECOND) AS e, TUMBLE_ROWTIME(ts, INTERVAL '5' SECOND) AS r, {MEASURES} FROM bids GROUP BY auction, TUMBLE(ts, INTERVAL '5' SECOND)",
    "old hop": "SELECT auction, HOP_START(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND) AS b, COUNT(*) AS c FROM bids GROUP BY auction, HOP(ts, INTERVAL '5' SECOND, INTERVAL '10' SECOND)",
    "old session": "SELECT auction, SESSION_START(ts, INTERVAL '4' SECOND) AS b, SESSION_END(ts, INTERVAL '4' SECOND) AS e, COUNT(*) AS c FROM bids GROUP BY auction, SESSION(ts, INTERVAL '4' SECOND)",
    "join": "SELECT b.auction, b.bidder, a.item FROM bids b JOIN auctions a ON b.auction = a.id",
    "join condition": "SELECT b.auction, b.bidder, a.item FROM bids b JOIN auctions a ON b.auction = a.id AND b.bidder <> a.seller",
    "left join": "SELECT b.auction, b.bidder, a.item FROM bids b LEFT JOIN auctions a ON b.auction = a.id AND a.item <> 'vase'",
    "right join": "SELECT b.auction, b.bidder, a.item, a.id FROM bids b RIGHT JOIN auctions a ON b.auction = a.id",
    "full join": "SELECT b.auction, b.bidder, a.item, a.id FROM bids b FULL JOIN auctions a ON b.auction = a.id",
    "cross join": "SELECT b.bidder, a.item FROM bids b, auctions a WHERE b.price > a.id AND a.id < 3",
    "semi join": "SELECT auction, bidder FROM bids WHERE auction IN (SELECT id FROM auctions WHERE seller = 'bob')",
    "anti join": "SELECT item, id FROM auctions a WHERE NOT EXISTS (SELECT 1 FROM bids b WHERE b.auction = a.id AND b.price > 15)",
    "join of groups": "SELECT x.bidder, x.c, y.n FROM " + COUNTS + " x JOIN (SELECT seller, COUNT(*) AS n FROM auctions GROUP BY seller) y ON x.bidder = y.seller",
    "left join of groups": "SELECT x.bidder, x.c, y.n FROM " + COUNTS + " x LEFT JOIN (SELECT seller, COUNT(*) AS n FROM auctions GROUP BY seller) y ON x.bidder = y.seller",
    "full join of groups": "SELECT x.bidder, x.c, y.n, y.seller FROM " + COUNTS + " x FULL JOIN (SELECT seller, COUNT(*) AS n FROM auctions GROUP BY seller) y ON x.bidder = y.seller AND x.c > 3",
    "self join": "SELECT x.bidder, y.price FROM " + COUNTS + " x JOIN bids y ON x.bidder = y.bidder",
    "interval join": "SELECT b.auction, b.bidder, a.item FROM bids b JOIN auctions a ON b.auction = a.id AND b.ts BETWEEN a.opened AND a.opened + INTERVAL '10' SECOND",
    "interval left join": "SELECT b.auction, b.bidder, b.ts, a.item FROM bids b LEFT JOIN auctions a ON b.auction = a.id AND b.ts BETWEEN a.opened AND a.opened + INTERVAL '10' SECOND",
    "interval full join": "SELECT b.auction, b.bidder, a.id, a.item FROM (SELECT * FROM bids WHERE weight IS DISTINCT FROM 16.0) b FULL JOIN auctions a ON b.auction = a.id AND b.ts > a.opened AND b.ts < a.opened + INTERVAL '10' SECOND AND b.bidder <> 'cid'",
    "window join": f"SELECT x.auction, x.bidder, y.item, x.window_start, x.window_end FROM (SELECT * FROM {TUMBLE} WHERE weight IS DISTINCT FROM 16.0) x LEFT JOIN (SELECT * FROM TABLE(TUMBLE(TABLE auctions, DESCRIPTOR(opened), INTERVAL '5' SECOND))) y ON x.auction = y.id AND x.window_start = y.window_start AND x.window_end = y.window_end",
    "temporal join": "SELECT b.auction, b.bidder, b.price, v.item FROM bids b LEFT JOIN versions FOR SYSTEM_TIME AS OF b.ts AS v ON b.auction = v.id",
    "temporal inner join": "SELECT b.auction, b.bidder, b.price, v.item FROM bids b JOIN versions FOR SYSTEM_TIME AS OF b.ts AS v ON b.auction = v.id",
    "keep first by rowtime": DEDUP.format(columns="auction, bidder, ts", key="auction", order="ts", limit="= 1"),
    "keep last by rowtime": DEDUP.format(columns="auction, bidder, ts", key="auction", order="ts DESC", limit="= 1"),
    "keep first by proctime": DEDUP.format(columns="auction, bidder, ts", key="auction", order="pt", limit="= 1"),
    "keep last by proctime": DEDUP.format(columns="auction, bidder, ts", key="auction", order="pt DESC", limit="= 1"),
    "top n": DEDUP.format(columns="auction, bidder, price, n", key="auction", order="price DESC", limit="<= 2"),
    "top n without number": DEDUP.format(columns="auction, bidder, price", key="auction", order="price DESC, bidder", limit="<= 2"),
    "top 1": DEDUP.format(columns="auction, bidder, price", key="auction", order="price", limit="<= 1"),
    "top n range": DEDUP.format(columns="auction, bidder, price, n", key="auction", order="price DESC, bidder", limit="BETWEEN 2 AND 3"),
    "top n of groups": "SELECT bidder, c, n FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY c DESC, bidder) AS n FROM " + COUNTS + ") WHERE n <= 2",
    "top n of groups without number": "SELECT bidder, c FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY c DESC) AS n FROM " + COUNTS + ") WHERE n <= 2",
    "top n of sums": "SELECT bidder, s FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY s DESC) AS n FROM (SELECT bidder, SUM(weight) AS s FROM bids GROUP BY bidder)) WHERE n <= 2",
    "window top n": f"SELECT auction, price, window_start, window_end, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS n FROM {TUMBLE}) WHERE n <= 2",
    "window dedup": f"SELECT auction, bidder, ts, window_start, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction, window_start, window_end ORDER BY ts DESC) AS n FROM {TUMBLE}) WHERE n <= 1",
    "window aggregate top n": f"SELECT auction, c, window_end FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY c DESC, auction) AS n FROM (SELECT auction, window_start, window_end, COUNT(*) AS c FROM {TUMBLE} GROUP BY auction, window_start, window_end)) WHERE n <= 1",
    "limit": "SELECT auction, bidder FROM bids LIMIT 3",
    "limit offset": "SELECT auction, bidder FROM bids LIMIT 3 OFFSET 2",
    "order by time": "SELECT auction, ts FROM bids ORDER BY ts",
    "order by time and more": "SELECT auction, ts FROM bids ORDER BY ts, auction DESC",
    "order by limit": "SELECT auction, bidder, price FROM bids ORDER BY price DESC LIMIT 3",
    "order by limit offset": "SELECT auction, bidder, price FROM bids ORDER BY price DESC, bidder LIMIT 3 OFFSET 1",
    "over rows": "SELECT auction, bidder, SUM(price) OVER (PARTITION BY auction ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM bids",
    "over range": "SELECT auction, bidder, COUNT(*) OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '6' SECOND PRECEDING AND CURRENT ROW) AS c, MAX(price) OVER (PARTITION BY auction ORDER BY ts RANGE BETWEEN INTERVAL '6' SECOND PRECEDING AND CURRENT ROW) AS m FROM bids",
    "over unbounded": "SELECT auction, bidder, SUM(price) OVER (PARTITION BY auction ORDER BY ts) AS s FROM bids",
    "over unbounded rows": "SELECT auction, bidder, SUM(price) OVER (PARTITION BY auction ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS s FROM bids",
    "over proctime": "SELECT auction, bidder, SUM(price) OVER (PARTITION BY auction ORDER BY pt) AS s FROM bids",
    "over proctime rows": "SELECT auction, bidder, COUNT(*) OVER (PARTITION BY auction ORDER BY pt ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM bids",
    "lag": "SELECT auction, price, LAG(price) OVER (PARTITION BY auction ORDER BY ts) AS l FROM bids",
    "unnest": "SELECT id, tag FROM auctions CROSS JOIN UNNEST(tags) AS t(tag)",
    "left unnest": "SELECT id, tag FROM auctions LEFT JOIN UNNEST(tags) AS t(tag) ON TRUE",
    "scalar sub-query": "SELECT auction, price FROM bids WHERE price > (SELECT AVG(price) FROM bids WHERE auction = 3)",
    "count distinct split": "SELECT auction, COUNT(DISTINCT bidder) AS c, COUNT(DISTINCT bidder) FILTER (WHERE price > 10) AS d FROM bids GROUP BY auction",
}  # fmt: skip
VERSIONS = "CREATE VIEW versions AS SELECT id, item, opened FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY opened DESC) AS n FROM auctions) WHERE n = 1"
SETTINGS = {
    "parallelism.default": "1",
    "pipeline.auto-watermark-interval": "0 ms",
    "table.local-time-zone": "UTC",
    "table.plan.compile.catalog-objects": "ALL",
    "table.optimizer.agg-phase-strategy": "ONE_PHASE",
    "table.exec.sink.require-on-conflict": "false",
}


def plain(value: Any) -> Any:
    """What is kept in the file: numbers of days, milliseconds or nanoseconds for Java's dates and times."""
    if value is None or isinstance(value, (bool, int, str, float)):
        return value
    if type(value).__name__ == "Decimal":
        return str(value)
    name = value.getClass().getSimpleName()
    match name:
        case "LocalDate":
            return value.toEpochDay()
        case "LocalTime":
            return value.toNanoOfDay() // 1_000_000
        case "LocalDateTime":
            return value.toLocalDate().toEpochDay() * 86_400 * 10**9 + value.toLocalTime().toNanoOfDay()
        case "Instant":
            return value.getEpochSecond() * 10**9 + value.getNano()
        case "Row":
            return [plain(value.getField(i)) for i in range(value.getArity())]
    if name.endswith("[]"):
        return [plain(one) for one in value]
    if "Map" in name:
        return sorted(([plain(entry.getKey()), plain(entry.getValue())] for entry in value.entrySet()), key=repr)
    raise TypeError(name)


def environment(options: dict[str, str]) -> TableEnvironment:
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in SETTINGS.items():
        tables.get_config().set(key, value)
    for name, table in TABLES.items():
        tables.execute_sql(f"CREATE TABLE {name} ({table['columns']}) WITH ({options[name]})")
    tables.execute_sql(VERSIONS)
    return tables


def files() -> dict[str, str]:
    folder = Path(tempfile.mkdtemp())
    for name, table in TABLES.items():
        lines = [json.dumps(dict(zip(table["names"], row, strict=True))) + "\n" for row in table["rows"]]
        (folder / name).write_text("".join(lines), encoding="utf-8")
    return {name: f"'connector'='filesystem', 'format'='json', 'path'='{folder / name}'" for name in TABLES}


def changelog(tables: TableEnvironment, query: str) -> list[list[Any]]:
    rows, found = tables._j_tenv.executeSql(query).collect(), []
    while rows.hasNext():
        row = rows.next()
        found.append([row.getKind().shortString(), *plain(row)])
    return found


def plan_of(tables: TableEnvironment, query: str) -> Any:
    sink = tables.sql_query(query).insert_into(TableDescriptor.for_connector("print").build())
    return json.loads(sink.compile_plan().as_json_string())


def slim(plan: Any) -> Any:
    """The plan without what says nothing about the query."""
    for node in plan["nodes"]:
        node.pop("inputProperties", None)
        node.pop("configuration", None)
    plan["edges"] = [{"source": edge["source"], "target": edge["target"]} for edge in plan["edges"]]
    return plan


if __name__ == "__main__":
    running, planning = (
        environment(files()),
        environment(dict.fromkeys(TABLES, "'connector'='datagen', 'number-of-rows'='1'")),
    )
    known: dict[str, Any] = {}
    target = Path(sys.argv[1])
    if target.exists():
        known = {case["name"]: case for case in json.loads(target.read_text(encoding="utf-8"))["cases"]}
    cases = []
    for name, query in QUERIES.items():
        case = known.get(name)
        if case is None or case["sql"] != query:
            try:
                case = {
                    "name": name,
                    "sql": query,
                    "plan": plan_of(planning, query),
                    "changelog": changelog(running, query),
                }
            except Exception as failure:
                print("FAILED", name, str(failure)[:300].replace("\n", " "))
                continue
        cases.append({**case, "plan": slim(case["plan"])})
    head = {"tables": TABLES, "settings": SETTINGS}
    lines = ",\n".join(json.dumps(case) for case in cases)
    target.write_text(json.dumps(head)[:-1] + ',\n"cases": [\n' + lines + "\n]}\n", encoding="utf-8")
