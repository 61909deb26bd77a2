"""The tables and the queries q0 to q22 but q6, which neither Flink nor Penstock can plan.

Where Nexmark's own statement cannot run on a file twice with one result, it is adapted: q10 selects what is to be written;
q12 has windows of processing time, so its results depend on the machine; q13 joins the file of its side input as a table,
and q14 counts characters with built-in functions.
"""

# ruff: noqa: E501
from __future__ import annotations

from pathlib import Path

_TIME = "date_time TIMESTAMP(3)"
_PERSON = (
    f"id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING, {_TIME}, extra STRING"
)
_AUCTION = f"id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT, {_TIME}, expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra STRING"
_BID = f"auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, {_TIME}, extra STRING"


def _names(columns: str) -> list[str]:
    return [column.split()[0] for column in columns.split(", ")]


def _view(name: str, columns: str, event_type: int) -> str:
    """The events of one type as a table, with the event time of all."""
    fields = ", ".join("date_time" if each == "date_time" else f"{name}.{each}" for each in _names(columns))
    return f"CREATE TEMPORARY VIEW {name} AS SELECT {fields} FROM events WHERE event_type = {event_type}"


def statements(folder: Path) -> list[str]:
    """What creates the tables over the files of `write_events`."""
    return [
        f"""CREATE TABLE events (
            event_type INT,
            person ROW<{_PERSON}>,
            auction ROW<{_AUCTION}>,
            bid ROW<{_BID}>,
            date_time AS CASE event_type WHEN 0 THEN person.date_time WHEN 1 THEN auction.date_time ELSE bid.date_time END,
            WATERMARK FOR date_time AS date_time - INTERVAL '4' SECOND
        ) WITH ('connector' = 'filesystem', 'path' = '{folder}/events.json', 'format' = 'json')""",
        f"""CREATE TABLE side_input (key BIGINT, val STRING)
        WITH ('connector' = 'filesystem', 'path' = '{folder}/side_input.csv', 'format' = 'csv')""",
        _view("person", _PERSON, 0),
        _view("auction", _AUCTION, 1),
        _view("bid", _BID, 2),
    ]


_HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
_LEVELS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")


def _measures(argument: str, name: str) -> str:
    """An aggregate of all bids, and of those of each level of price."""
    each = [
        f"{argument} FILTER (WHERE {level}) AS rank{number}_{name}" for number, level in enumerate(_LEVELS, start=1)
    ]
    return ", ".join([f"{argument} AS total_{name}", *each])


_REPORT = ", ".join(
    _measures(f"COUNT({what})", name)
    for what, name in (("*", "bids"), ("DISTINCT bidder", "bidders"), ("DISTINCT auction", "auctions"))
)
_CHANNEL_ID = "REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)"

QUERIES: dict[str, str] = {
    "q0": "SELECT auction, bidder, price, date_time, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price AS price, date_time, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """
        SELECT p.name, p.city, p.state, a.id
        FROM auction AS a JOIN person AS p ON a.seller = p.id
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')""",
    "q4": """
        SELECT category, AVG(final) AS average
        FROM (
            SELECT MAX(b.price) AS final, a.category
            FROM auction AS a JOIN bid AS b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
            GROUP BY a.id, a.category
        )
        GROUP BY category""",
    "q5": f"""
        SELECT counted.auction, counted.num, counted.window_start, counted.window_end
        FROM (
            SELECT auction, COUNT(*) AS num, window_start, window_end
            FROM {_HOP} GROUP BY auction, window_start, window_end
        ) AS counted
        JOIN (
            SELECT MAX(num) AS most, window_start, window_end
            FROM (
                SELECT COUNT(*) AS num, window_start, window_end
                FROM {_HOP} GROUP BY auction, window_start, window_end
            )
            GROUP BY window_start, window_end
        ) AS hottest
        ON counted.window_start = hottest.window_start AND counted.window_end = hottest.window_end
            AND counted.num >= hottest.most""",
    "q7": """
        SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
        FROM bid AS b
        JOIN (
            SELECT MAX(price) AS most, window_end AS ended
            FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
            GROUP BY window_start, window_end
        ) AS highest
        ON b.price = highest.most
        WHERE b.date_time BETWEEN highest.ended - INTERVAL '10' SECOND AND highest.ended""",
    "q8": """
        SELECT p.id, p.name, p.window_start
        FROM (
            SELECT id, name, window_start, window_end
            FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
            GROUP BY id, name, window_start, window_end
        ) AS p
        JOIN (
            SELECT seller, window_start, window_end
            FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
            GROUP BY seller, window_start, window_end
        ) AS a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end""",
    "q9": """
        SELECT id, itemName, description, initialBid, reserve, opened, expires, seller, category, auction, bidder, price, bid_at
        FROM (
            SELECT a.id, a.itemName, a.description, a.initialBid, a.reserve, a.date_time AS opened, a.expires, a.seller,
                a.category, b.auction, b.bidder, b.price, b.date_time AS bid_at,
                ROW_NUMBER() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.date_time ASC) AS place
            FROM auction AS a JOIN bid AS b ON a.id = b.auction AND b.date_time BETWEEN a.date_time AND a.expires
        )
        WHERE place <= 1""",
    "q10": "SELECT auction, bidder, price, date_time, extra, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS d, DATE_FORMAT(date_time, 'HH:mm') AS m FROM bid",
    "q11": """
        SELECT bidder, COUNT(*) AS bids, window_start, window_end
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q12": """
        SELECT bidder, COUNT(*) AS bids, window_start, window_end
        FROM TABLE(TUMBLE(TABLE timed_bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q13": """
        SELECT b.auction, b.bidder, b.price, b.date_time, s.val
        FROM bid AS b JOIN side_input AS s ON MOD(b.auction, 10000) = s.key""",
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price,
            CASE
                WHEN HOUR(date_time) BETWEEN 8 AND 18 THEN 'dayTime'
                WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END AS bid_time_type,
            date_time, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"SELECT DATE_FORMAT(date_time, 'yyyy-MM-dd') AS d, {_REPORT} FROM bid GROUP BY DATE_FORMAT(date_time, 'yyyy-MM-dd')",
    "q16": f"""
        SELECT channel, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS d, MAX(DATE_FORMAT(date_time, 'HH:mm')) AS m, {_REPORT}
        FROM bid GROUP BY channel, DATE_FORMAT(date_time, 'yyyy-MM-dd')""",
    "q17": f"""
        SELECT auction, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS d, {_measures("COUNT(*)", "bids")},
            MIN(price) AS min_price, MAX(price) AS max_price, AVG(price) AS avg_price, SUM(price) AS sum_price
        FROM bid GROUP BY auction, DATE_FORMAT(date_time, 'yyyy-MM-dd')""",
    "q18": """
        SELECT auction, bidder, price, channel, url, date_time, extra
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid)
        WHERE place <= 1""",
    "q19": """
        SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid)
        WHERE place <= 10""",
    "q20": """
        SELECT auction, bidder, price, channel, url, b.date_time AS bid_at, b.extra, itemName, description, initialBid, reserve,
            a.date_time AS opened, expires, seller, category, a.extra AS auction_extra
        FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10""",
    "q21": f"""
        SELECT auction, bidder, price, channel,
            CASE LOWER(channel)
                WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE {_CHANNEL_ID}
            END AS channel_id
        FROM bid
        WHERE {_CHANNEL_ID} IS NOT NULL OR LOWER(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
        SELECT auction, bidder, price, channel,
            SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid""",
}
NEEDED: dict[str, list[str]] = {"q12": ["CREATE TEMPORARY VIEW timed_bid AS SELECT *, PROCTIME() AS p_time FROM bid"]}
"""Statements that a query needs besides those of all."""
DEPENDS_ON_THE_CLOCK = ("q12",)
UPSERTS: dict[str, list[int]] = {"q9": [0], "q18": [0, 1]}
"""Queries whose changes have a key and do not say what was before, with the columns of the key."""
