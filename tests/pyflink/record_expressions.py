"""Records what Flink makes of SQL expressions: `python record_expressions.py results.json`, where apache-flink is.

Each expression is evaluated for each row of a table with NULLs and extremes. Recorded are the rows, the expression as
Flink's planner wrote it into a compiled plan, and the results, or that evaluating it failed.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from pyflink.table import EnvironmentSettings, TableDescriptor, TableEnvironment

COLUMNS = {
    "id": "INT NOT NULL", "b": "BOOLEAN", "ti": "TINYINT", "i": "INT", "j": "INT", "l": "BIGINT", "f": "FLOAT",
    "d": "DOUBLE", "dc": "DECIMAL(10, 2)", "de": "DECIMAL(38, 18)", "s": "STRING", "p": "STRING", "dt": "DATE",
    "tm": "TIME(0)", "ts": "TIMESTAMP(3)", "tu": "TIMESTAMP(9)", "tz": "TIMESTAMP_LTZ(3)",
}  # fmt: skip
ROWS: list[list[Any]] = [
    [True, 1, 2, 3, 4, 0.5, 1.5, "12.34", "1.000000000000000001", "abc", "a%", "2020-02-29", "10:11:12",
     "2020-02-29 10:11:12.123", "2020-02-29 10:11:12.123456789", "2020-02-29 10:11:12.123Z"],
    [False, 127, 2147483647, 2, 9223372036854775807, 3.4e38, 1e300, "99999999.99", "99999999999999999999.5", " Hello ",
     "%ll%", "1969-12-31", "23:59:59", "1969-12-31 23:59:59.999", "1969-12-31 23:59:59.999999999",
     "1969-12-31 23:59:59.999Z"],
    [True, -128, -2147483648, -1, -9223372036854775808, -1.1, -0.0, "-0.01", "-0.000000000000000001", "", "_b%",
     "1900-01-01", "00:00:00", "1985-07-01 00:00:00", "1900-01-01 00:00:00", "1985-07-01 00:00:00Z"],
    [None] * 16,
    [False, 0, 7, 7, 10000000, 1e10, 1e7, "0.05", "0.5", "123", "123", "2021-03-28", "02:30:00", "2021-03-28 02:30:00",
     "2021-12-31 23:59:59.5", "2021-03-28 01:30:00Z"],
    [True, 5, -7, 2, -5, 1e-5, 1e-4, "-12.50", "2.5", "TRUE", "%", "2024-12-31", "12:00:01", "2024-12-31 12:34:56.789",
     "2024-10-01 00:00:00.000000001", "2024-12-31 12:34:56.789Z"],
]  # fmt: skip
NUMBERS = ["ti", "i", "j", "l", "f", "d", "dc", "de"]
EXPRESSIONS = [
    *[f"{a} {operator} {b}" for operator in "+-*" for a in NUMBERS for b in NUMBERS],
    *[f"{a} {operator} j" for operator in "/%" for a in ("ti", "i", "l", "dc")],
    *["i / 0.5", "d / j", "d / 0", "f / d", "dc / 3", "dc / dc", "l / 7", "i / (j - 2)", "1 / i", "-i", "-dc", "-d"],
    *[f"{a} {operator} {b}" for operator in ("=", "<>", "<", ">=") for a in NUMBERS for b in ("i", "d", "dc")],
    *[f"CAST({a} AS {to})" for a in NUMBERS for to in ("TINYINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "STRING",
                                                       "DECIMAL(5, 1)", "BOOLEAN", "VARCHAR(3)", "CHAR(6)")],
    *[f"TRY_CAST({a} AS {to})" for a in ("s", "p") for to in ("INT", "BIGINT", "DOUBLE", "DECIMAL(5, 1)", "BOOLEAN",
                                                             "DATE", "TIME", "TIMESTAMP(3)", "TINYINT")],
    *[f"CAST({a} AS STRING)" for a in ("b", "dt", "tm", "ts", "tu", "tz")],
    *[f"TRY_CAST('{text}' AS {to})" for to in ("INT", "DOUBLE", "DECIMAL(5, 2)", "DATE", "TIME", "TIMESTAMP(3)")
      for text in ("1", " 7 ", "1.5", "-3.9", "+4", "1e3", "99999999999", "NaN", "2020-1-2", "2020-02-30", "2020", "2020-05",
          "2020-01-01 10:00:00", "2020-01-01T10:00:00", "2020-01-01 1:2:3.4567", "10:11", "10:11:12.5", "25:00:00", "x")],
    "CAST(ts AS DATE)", "CAST(ts AS TIME)", "CAST(dt AS TIMESTAMP(3))", "CAST(tz AS TIMESTAMP(3))",
    "CAST(ts AS TIMESTAMP_LTZ(3))", "CAST(tu AS TIMESTAMP(3))", "CAST(tz AS DATE)", "CAST(s AS CHAR(4))",
    "b AND i > 0", "b OR i > 0", "NOT b", "b AND NULL", "b OR NULL", "b IS TRUE", "b IS NOT FALSE", "b IS NULL",
    "(i > 0 AND d < 1) OR s = 'abc'", "i IS DISTINCT FROM j", "i IS NOT DISTINCT FROM j", "NOT (i > 0 AND b)",
    "i BETWEEN -7 AND 7", "i NOT BETWEEN 0 AND 5", "i IN (1, 2, 7)", "s IN ('abc', '123')", "s NOT IN ('abc', 'x')",
    "i IN (1, 2) OR i IS NULL", "ts > TIMESTAMP '2020-01-01 00:00:00'", "dt <= DATE '2020-02-29'", "dc IN (12.34, 0.05)",
    "CASE WHEN i > 5 THEN 'big' WHEN i > 0 THEN 'small' END", "CASE i WHEN 2 THEN dc ELSE 0 END", "COALESCE(s, 'none')",
    "COALESCE(i, j, 0)", "IF(b, i, j)", "NULLIF(i, j)", "s LIKE p", "s LIKE 'a%'", "s LIKE '%b_'", "s LIKE '_b%'",
    "s LIKE '1!%%' ESCAPE '!'", "s || p", "UPPER(s)", "LOWER(s)", "CHAR_LENGTH(s)", "REVERSE(s)", "TRIM(s)",
    "TRIM(LEADING 'a' FROM s)", "TRIM(TRAILING ' ' FROM s)", "POSITION('b' IN s)", "REPLACE(s, 'b', 'xx')", "MD5(s)",
    "SHA256(s)", *[f"SUBSTRING(s, {a})" for a in (-2, 0, 1, 2, 9)], "SUBSTRING(s, 2, 1)", "SUBSTRING(s, -2, 5)",
    *[f"EXTRACT({unit} FROM {a})" for unit in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "DOW", "DOY")
      for a in ("ts", "tz")], "EXTRACT(YEAR FROM dt)", "EXTRACT(DAY FROM dt)", "EXTRACT(HOUR FROM tm)",
    *[f"{f}({a} TO {unit})" for f in ("FLOOR", "CEIL") for a in ("ts", "tz")
      for unit in ("YEAR", "QUARTER", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND")],
    "ts + INTERVAL '1' DAY", "ts - INTERVAL '1' MONTH", "dt + INTERVAL '1' MONTH", "dt - INTERVAL '40' DAY",
    "tz + INTERVAL '1' YEAR", "tm + INTERVAL '2' HOUR", "INTERVAL '3' HOUR + ts", "TIMESTAMPADD(WEEK, 2, ts)",
    *[f"TIMESTAMPDIFF({unit}, ts, TIMESTAMP '2020-03-01 00:00:00')" for unit in ("SECOND", "HOUR", "DAY", "MONTH", "YEAR")],
    "ARRAY[i, j][2]", "MAP['a', i]['a']", "ARRAY[i, j][3]", "CARDINALITY(ARRAY[i, j])",
    *[f"{f}({a})" for f in ("FLOOR", "CEIL", "SIGN", "SQRT", "EXP", "LN") for a in ("i", "d", "dc", "f")],
    *[f"ROUND({a}, {n})" for a in ("i", "d", "dc", "de", "l") for n in (0, 1, -1)], "ROUND(d)", "ROUND(dc)",
    *[f"TRUNCATE({a}, {n})" for a in ("i", "d", "dc") for n in (0, 1, -1)], "POWER(i, 2)", "POWER(d, 0.5)", "POWER(dc, j)",
    "LOG10(d)", "LOG2(d)", "LOG(d)", "LOG(2, d)", "SIN(d)", "COS(d)", "TAN(d)", "ASIN(d)", "ATAN(d)", "ATAN2(d, j)", "PI()",
    "DEGREES(d)", "RADIANS(d)", "GREATEST(i, j)", "LEAST(i, j)", "GREATEST(s, p)", "LEAST(d, i)", "BIN(l)", "HEX(i)", "HEX(s)",
    "CONCAT(s, p)", "CONCAT(s, '-', CAST(i AS STRING))", "CONCAT_WS('-', s, p)", "CONCAT_WS(s, 'a', CAST(NULL AS STRING), p)",
    "SPLIT_INDEX('a,b,c', ',', j)", "SPLIT_INDEX(s, 'l', 1)", "SPLIT_INDEX(s, ' ', 0)", "REPEAT(s, j)", "LPAD(s, 5, 'xy')",
    "RPAD(s, 5, 'xy')", "LPAD(s, 2, '?')", "LTRIM(s)", "RTRIM(s)", "BTRIM(s, 'a ')", "INITCAP(s)", "LEFT(s, 2)", "RIGHT(s, 2)",
    "INSTR(s, 'l')", "LOCATE('l', s)", "LOCATE('l', s, 4)", "ASCII(s)", "CHR(i)", "OVERLAY(s PLACING 'xx' FROM 2)",
    "OVERLAY(s PLACING 'xx' FROM 2 FOR 1)", "REGEXP(s, '^[a-z]+$')", "REGEXP_REPLACE(s, '[a-c]', 'x')",
    "REGEXP_EXTRACT(s, '([a-z])([a-z])', 2)", "REGEXP_EXTRACT(s, '[0-9]+')", "s SIMILAR TO '[a-z]+'", "s NOT LIKE 'a%'",
    "TO_BASE64(s)", "FROM_BASE64('aGVsbG8=')", "URL_ENCODE(p)", "URL_DECODE('a%20b')", "TRANSLATE(s, 'abc', 'xy')",
    "STARTSWITH(s, 'a')", "ENDSWITH(s, 'c')", "ELT(2, s, p)", "SUBSTR(s, 2)", "SHA1(s)", "SHA2(s, 256)", "IS_DIGIT(s)",
    "IS_ALPHA(s)", "IS_DECIMAL(s)", "STR_TO_MAP('a=1,b=2')['b']", "STR_TO_MAP('a:1;b:2', ';', ':')['a']",
    "PARSE_URL('http://h.com/p?q=1#r', 'HOST')", "PARSE_URL('http://h.com/p?q=1#r', 'QUERY', 'q')",
    *[f"DATE_FORMAT({a}, '{pattern}')" for a in ("ts", "tz") for pattern in ("yyyy-MM-dd HH:mm:ss", "yyyyMMdd", "HH", "dd/MM/yy",
      "yyyy-MM-dd''T''HH:mm:ss.SSS", "EEE MMM d", "yyyy-MM-dd HH:mm", "a h")], "DATE_FORMAT('2020-02-29 10:11:12', 'yyyy/MM')",
    "TO_TIMESTAMP('2020-02-29 10:11:12')", "TO_TIMESTAMP('2020-02-29 10:11:12.345')", "TO_TIMESTAMP('29/02/2020', 'dd/MM/yyyy')",
    "TO_TIMESTAMP('x')", "TO_TIMESTAMP(s)", "TO_TIMESTAMP_LTZ(l, 3)", "TO_TIMESTAMP_LTZ(1582971072, 0)", "TO_TIMESTAMP_LTZ(i, 0)",
    "TO_TIMESTAMP('2020-02-29T10:11:12Z', 'yyyy-MM-dd''T''HH:mm:ss''Z''')", "TO_DATE('2020-02-29')", "TO_DATE('29.02.2020', 'dd.MM.yyyy')",
    "FROM_UNIXTIME(1582971072)", "FROM_UNIXTIME(i)", "FROM_UNIXTIME(1582971072, 'yyyy/MM/dd')", "UNIX_TIMESTAMP('2020-02-29 10:11:12')",
    "UNIX_TIMESTAMP('2020/02/29', 'yyyy/MM/dd')", "CONVERT_TZ('2020-02-29 10:11:12', 'UTC', 'America/Los_Angeles')",
    "YEAR(dt)", "MONTH(dt)", "DAYOFMONTH(dt)", "DAYOFWEEK(dt)", "DAYOFYEAR(dt)", "HOUR(ts)", "MINUTE(ts)", "SECOND(ts)", "QUARTER(dt)",
    "WEEK(dt)", "EXTRACT(WEEK FROM ts)", "EXTRACT(EPOCH FROM ts)", "EXTRACT(MILLISECOND FROM ts)", "CEIL(ts TO MINUTE)",
    """JSON_VALUE('{"a": 1, "b": {"c": "x"}}', '$.b.c')""", """JSON_VALUE('{"a": 1}', '$.a' RETURNING INTEGER)""",
    """JSON_VALUE('{"a": [1, 2]}', '$.a[1]')""", "JSON_VALUE(s, '$.x')", "JSON_VALUE('{}', '$.x' DEFAULT 'none' ON EMPTY)",
    """JSON_VALUE('{"a": true}', '$.a')""", """JSON_VALUE('{"a": 1.50}', '$.a')""", """JSON_QUERY('{"a": {"b": 1}}', '$.a')""",
    """JSON_QUERY('{"a": [1, 2]}', '$.a')""", """JSON_QUERY('{"a": 1}', '$.a')""", """JSON_EXISTS('{"a": 1}', '$.a')""",
    """JSON_EXISTS('{"a": 1}', '$.b')""", """'{"a": 1}' IS JSON""", "s IS JSON", "JSON_STRING(i)", "JSON_STRING(s)",
    "JSON_OBJECT('a' VALUE i, 'b' VALUE s)", "JSON_ARRAY(i, s)", "JSON_OBJECT('a' VALUE i ABSENT ON NULL)",
    "ARRAY_CONTAINS(ARRAY[i, j], 2)", "ELEMENT(ARRAY[i])", "ARRAY_JOIN(ARRAY[s, p], '|')", "CARDINALITY(MAP['a', i])",
    "ARRAY_DISTINCT(ARRAY[i, j, i])[2]", "ARRAY_POSITION(ARRAY[i, j], j)", "MAP_KEYS(MAP['a', i])[1]", "MAP_VALUES(MAP['a', i])[1]",
    "ARRAY_MAX(ARRAY[i, j])", "ARRAY_MIN(ARRAY[i, j])", "ARRAY_SORT(ARRAY[i, j])[1]", "ARRAY_SLICE(ARRAY[i, j, 3], 2)[1]",
    "ARRAY_APPEND(ARRAY[i], j)[2]", "ARRAY_CONCAT(ARRAY[i], ARRAY[j])[2]", "ARRAY_REVERSE(ARRAY[i, j])[1]", "IFNULL(i, 5)",
    # The planner computes what is constant itself; with IF it does not know.
    *[f"{call}(IF(id >= 0, '{text}', s){more})" for call, text, more in [
        ("TO_TIMESTAMP", "2020-02-29 10:11:12", ""), ("TO_TIMESTAMP", "2020-02-29 10:11:12.3456", ""), ("TO_TIMESTAMP", "x", ""),
        ("TO_TIMESTAMP", "29/02/2020", ", 'dd/MM/yyyy'"), ("TO_TIMESTAMP", "2020-02-29T10:11:12Z", ", 'yyyy-MM-dd''T''HH:mm:ss''Z'''"),
        ("TO_TIMESTAMP", "20200229 101112", ", 'yyyyMMdd HHmmss'"), ("TO_TIMESTAMP", "2020-02-29", ""), ("TO_DATE", "2020-02-29", ""),
        ("TO_DATE", "29.02.2020", ", 'dd.MM.yyyy'"), ("UNIX_TIMESTAMP", "2020-02-29 10:11:12", ""), ("UNIX_TIMESTAMP", "2020/02/29", ", 'yyyy/MM/dd'"),
        ("CONVERT_TZ", "2020-02-29 10:11:12", ", 'UTC', 'America/Los_Angeles'"), ("DATE_FORMAT", "2020-02-29 10:11:12", ", 'yyyy/MM'"),
        ("URL_DECODE", "a%20b+c", ""), ("FROM_BASE64", "aGVsbG8=", ""), ("PARSE_URL", "http://u:p@h.com:80/p?q=1&r=2#f", ", 'HOST'"),
        ("PARSE_URL", "http://h.com/p?q=1&r=2#f", ", 'QUERY', 'r'"), ("PARSE_URL", "http://h.com/p?q=1#f", ", 'REF'"),
        ("SPLIT_INDEX", "a,b,c", ", ',', 1"), ("SPLIT_INDEX", "a,b,c", ", ',', 9"), ("REGEXP_EXTRACT", "foothebar", ", 'foo(.*?)(bar)', 2"),
        ("REGEXP_REPLACE", "foobar", ", 'oo|ar', ''"), ("REGEXP_REPLACE", "a1b22", ", '([0-9]+)', '<$1>'"), ("INITCAP", "hello wORLD-x 1a", ""),
        *[("JSON_VALUE", document, f", '{path}'") for document, path in [('{"a": 1, "b": {"c": "x"}}', "$.b.c"), ('{"a": [1, 2]}', "$.a[1]"),
          ('{"a": true}', "$.a"), ('{"a": 1.50}', "$.a"), ('{"a": {"b": 1}}', "$.a"), ('{"a": null}', "$.a"), ("nonsense", "$.a"), ('{"a b": "y"}', "$[''a b'']")]],
        ("JSON_VALUE", '{"a": 7}', ", '$.a' RETURNING INTEGER"), ("JSON_VALUE", '{"a": "x"}', ", '$.b' DEFAULT 'none' ON EMPTY"),
        ("JSON_VALUE", "nonsense", ", '$.b' DEFAULT 'bad' ON ERROR"), ("JSON_QUERY", '{"a": {"b": 1}}', ", '$.a'"), ("JSON_QUERY", '{"a": [1, 2]}', ", '$.a'"),
        ("JSON_QUERY", '{"a": 1}', ", '$.a'"), ("JSON_QUERY", '{"a": 1}', ", '$.a' WITH WRAPPER"), ("JSON_QUERY", '{"a": [{"b": 1}, {"b": 2}]}', ", '$.a[*].b' WITH WRAPPER"),
        ("JSON_EXISTS", '{"a": 1}', ", '$.a'"), ("JSON_EXISTS", '{"a": 1}', ", '$.b'"),
    ]],
    *[f"{call}(IF(id >= 0, {number}, i){more})" for call, number, more in [("FROM_UNIXTIME", 1582971072, ""),
      ("FROM_UNIXTIME", 1582971072, ", 'yyyy/MM/dd'"), ("TO_TIMESTAMP_LTZ", 1582971072, ", 0")]], "STR_TO_MAP(IF(id >= 0, 'a=1,b=2,c', s))['b']",
    "IF(id >= 0, '{\"a\": 1}', s) IS JSON", "IF(id >= 0, '[1]', s) IS JSON OBJECT", "IF(id >= 0, '[1]', s) IS NOT JSON ARRAY",
    "TYPEOF(i)",
    "ABS(i)", "ABS(d)", "ABS(dc)", "MOD(i, 3)", "TIMESTAMPDIFF(MONTH, dt, DATE '2021-02-28')",
]  # fmt: skip


def plain(value: Any) -> Any:
    """What is kept in the file: numbers of days, milliseconds or nanoseconds for Java's dates and times."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float) or type(value).__name__ == "Decimal":
        return str(value)
    name = value.getClass().getSimpleName()
    if name == "LocalDate":
        return value.toEpochDay()
    if name == "LocalTime":
        return value.toNanoOfDay() // 1_000_000
    if name == "LocalDateTime":
        return value.toLocalDate().toEpochDay() * 86_400 * 10**9 + value.toLocalTime().toNanoOfDay()
    if name == "Instant":
        return value.getEpochSecond() * 10**9 + value.getNano()
    raise TypeError(name)


class Recorder:
    def __init__(self) -> None:
        self.tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        self.tables.get_config().set("parallelism.default", "1")
        self.tables.get_config().set("table.local-time-zone", "Europe/Amsterdam")
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
            for number, row in enumerate(ROWS):
                file.write(json.dumps(dict(zip(COLUMNS, [number, *row], strict=True))) + "\n")
        columns = ", ".join(f"{name} {data_type}" for name, data_type in COLUMNS.items())
        options = (
            f"'connector'='filesystem', 'format'='json', 'json.timestamp-format.standard'='SQL', 'path'='{file.name}'"
        )
        self.tables.execute_sql(f"CREATE TABLE src ({columns}) WITH ({options})")

    def record(self, expressions: list[str]) -> list[dict[str, Any]]:
        names = ", ".join(COLUMNS)
        selected = ", ".join(f"{one} AS x{n}" for n, one in enumerate(expressions))
        query = f"SELECT id, {selected}, ROW({names}) AS input FROM src"
        try:
            table = self.tables.sql_query(query)
            plan = json.loads(
                table.insert_into(TableDescriptor.for_connector("blackhole").build()).compile_plan().as_json_string()
            )
            calc = next(node for node in plan["nodes"] if "exec-calc" in node["type"])
            rows = self.tables._j_tenv.executeSql(query).collect()
            found = {}
            while rows.hasNext():
                row = rows.next()
                found[row.getField(0)] = [plain(row.getField(n + 1)) for n in range(len(expressions))]
        except Exception as failure:
            if len(expressions) > 1:
                return [one for expression in expressions for one in self.record([expression])]
            text = str(failure)
            kind = "planning" if "ValidationException" in text or "SqlParser" in text else "running"
            return (
                [{"sql": expressions[0], "fails": kind}]
                if kind == "planning"
                else [{"sql": expressions[0], "fails": kind, "rex": calc["projection"][1]}]
            )
        source = next(node for node in plan["nodes"] if "source" in node["type"])
        return [
            {
                "sql": one,
                "rex": calc["projection"][n + 1],
                "input": source["outputType"],
                "results": [found[i][n] for i in sorted(found)],
            }
            for n, one in enumerate(expressions)
        ]


if __name__ == "__main__":
    target = Path(sys.argv[1])
    known = {}
    if target.exists():  # What was recorded before stays.
        known = {case["sql"]: case for case in json.loads(target.read_text(encoding="utf-8"))["cases"]}
    recorder, missing = Recorder(), [each for each in EXPRESSIONS if each not in known]
    for begin in range(0, len(missing), 25):
        known.update({case["sql"]: case for case in recorder.record(missing[begin : begin + 25])})
    cases = [known[each] for each in EXPRESSIONS]
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        head = {"columns": COLUMNS, "rows": ROWS, "time_zone": "Europe/Amsterdam"}
        lines = ",\n".join(json.dumps(case) for case in cases)
        out.write(json.dumps(head)[:-1] + ',\n"cases": [\n' + lines + "\n]}\n")
