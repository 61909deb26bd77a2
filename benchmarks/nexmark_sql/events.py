"""Makes the auction house's events: of 50 one is a new person, three are new auctions and 46 are bids.

The same numbers give the same file anywhere. As in Nexmark, some people and auctions are hot.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

A_ROUND, AUCTIONS = 50, 3
START = datetime.datetime(2026, 1, 31, 23, 59, 20)
STATES = ("OR", "ID", "CA", "WA", "NY", "NV")
CITIES = ("Portland", "Boise", "Oakland", "Seattle", "Albany", "Reno")
FIRST_NAMES = ("Ada", "Alan", "Barbara", "Donald", "Edsger", "Frances", "Grace", "Leslie")
LAST_NAMES = ("Abel", "Baker", "Carter", "Dunn", "Ellis", "Ford", "Gray", "Hill")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple", "channel-17", "channel-4711", "channel-8")
ITEMS = ("vase", "lamp", "desk", "sofa", "bed", "clock")
SIDE_INPUT_ROWS = 10_000


def _text(chance: random.Random, length: int) -> str:
    return "".join(chance.choices("abcdefghij ", k=length))


def _person(chance: random.Random, number: int) -> dict[str, Any]:
    place = chance.randrange(len(STATES))
    name = f"{chance.choice(FIRST_NAMES)} {chance.choice(LAST_NAMES)}"
    return {
        "id": number,
        "name": name,
        "emailAddress": name.replace(" ", ".").lower() + "@example.org",
        "creditCard": " ".join(f"{chance.randrange(10_000):04}" for _ in range(4)),
        "city": CITIES[place],
        "state": STATES[place],
        "extra": _text(chance, 12),
    }


def _price(chance: random.Random) -> int:
    """Between 1 and 10 million, as often in each power of ten."""
    return int(10 ** (chance.random() * 7))


def _auction(chance: random.Random, number: int, people: int, at: datetime.datetime) -> dict[str, Any]:
    first = _price(chance)
    is_hot = chance.random() < 0.75
    return {
        "id": number,
        "itemName": chance.choice(ITEMS),
        "description": _text(chance, 20),
        "initialBid": first,
        "reserve": first + _price(chance),
        "expires": _time(at + datetime.timedelta(milliseconds=chance.randrange(2_000, 20_000))),
        "seller": people // 4 * 4 if is_hot else chance.randrange(max(people - 100, 0), people + 1),
        "category": 10 + chance.randrange(5),
        "extra": _text(chance, 12),
    }


def _bid(chance: random.Random, people: int, auctions: int) -> dict[str, Any]:
    channel = chance.choice(CHANNELS)
    parts = "/".join(_text(chance, 4).replace(" ", "-") for _ in range(3))
    channel_id = f"?query=1&channel_id={chance.randrange(10_000)}" if chance.random() < 0.5 else "?query=1"
    is_hot = chance.random() < 0.5, chance.random() < 0.75
    return {
        "auction": auctions // 8 * 8 if is_hot[0] else chance.randrange(max(auctions - 100, 0), auctions + 1),
        "bidder": people // 4 * 4 if is_hot[1] else chance.randrange(max(people - 100, 0), people + 1),
        "price": _price(chance),
        "channel": channel,
        "url": f"https://auction.example.org/{parts}/item.htm{channel_id}",
        "extra": _text(chance, 8),
    }


def _time(at: datetime.datetime) -> str:
    return at.isoformat(sep=" ", timespec="milliseconds")


def events(count: int, step_ms: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    """The events in the order in which they come. Some are up to three steps older than those before."""
    chance = random.Random(seed)
    for number in range(count):
        round_, place = divmod(number, A_ROUND)
        at = START + datetime.timedelta(milliseconds=(number - chance.randrange(4)) * step_ms)
        event: dict[str, Any] = {"event_type": 0, "person": None, "auction": None, "bid": None}
        if place == 0:
            event["person"] = {**_person(chance, round_), "date_time": _time(at)}
        elif place <= AUCTIONS:
            found = _auction(chance, round_ * AUCTIONS + place - 1, round_, at)
            event |= {"event_type": 1, "auction": {**found, "date_time": _time(at)}}
        else:
            made = _bid(chance, round_, round_ * AUCTIONS + AUCTIONS - 1)
            event |= {"event_type": 2, "bid": {**made, "date_time": _time(at)}}
        yield event


def write_events(folder: Path, count: int, step_ms: int) -> None:
    """The files `events.json` and `side_input.csv`."""
    with (folder / "events.json").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(event) + "\n" for event in events(count, step_ms))
    with (folder / "side_input.csv").open("w", encoding="utf-8") as file:
        file.writelines(f"{key},value {key}\n" for key in range(SIDE_INPUT_ROWS))
