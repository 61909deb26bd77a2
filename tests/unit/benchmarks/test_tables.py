"""What a run of the benchmarks leaves to be read: the table, the files, the chart and the section of the docs."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import asdict, replace

import pytest
from benchmarks import docs_section, latency_docs
from benchmarks.__main__ import parse, runs_of
from benchmarks.chart import LogScale, draw
from benchmarks.child import Outcome, with_common_fixed_cost
from benchmarks.docs_section import BEGIN, END, LATENCY_PAGE, PAGE, filled
from benchmarks.job import Measurement, Setting
from benchmarks.latency_run import latency_of
from benchmarks.programs import NAMES, chosen
from benchmarks.rates import rate_beyond_fixed, ratio, ratio_range, spread
from benchmarks.table import COLUMNS, SHORT_RUN, SUMMARY, Comparison, read_results, render, write_results

SETTING = Setting(1_000_000, 2, keys=1_000)


def outcome(system: str, records: int, seconds: float, fixed: float = 0.5, shuffled: int | None = None) -> Outcome:
    return Outcome(system, [Measurement(records, seconds, fixed, 3.0, 10, "d1", shuffled)], 300 * 2**20)


def repeated(system: str, *seconds: float) -> Outcome:
    return Outcome(system, [outcome(system, 1_000_000, each).runs[0] for each in seconds], 600 * 2**20)


PENSTOCK = outcome("penstock", 1_000_000, 1.5, shuffled=4_000_000)
PEER = outcome("a peer", 10_000, 10.5)
SHORT = outcome("a <short> one", 10_000, 0.6)


def test_a_ratio_leaves_the_fixed_cost_out():
    found = ratio(PENSTOCK.measurement, PEER.measurement)
    assert (found.times, str(found)) == (1_000, "1,000")


def test_a_ratio_to_a_run_that_was_too_short_says_so_and_has_the_fixed_cost_on_both_sides():
    found = ratio(PENSTOCK.measurement, SHORT.measurement)
    assert rate_beyond_fixed(SHORT.measurement) is None
    assert found.times == pytest.approx((1_000_000 / 1.5) / (10_000 / 0.6))
    assert str(found) == "40*"


def test_the_table_has_a_row_for_each_system():
    title, _, head, *rows = render("word_count", SETTING, [PENSTOCK, PEER], ["so it is"]).splitlines()
    assert title == "word_count: parallelism 2, 1,000 keys, 80/20"
    assert [each.strip() for each in re.split("  +", head)] == ["system", *COLUMNS]
    ours = ["penstock", "666,667", "1,000,000", "300", "4.0", "3.00", "1,000,000", "1.5", "0.5"]
    theirs = ["a peer", "952", "1,000", "penstock x 1,000", "300", "?", "300.00", "10,000", "10.5", "0.5"]
    assert [re.split("  +", row) for row in rows[:2]] == [ours, theirs]
    assert rows[2] == "note: so it is"


def test_the_table_explains_its_mark():
    assert SHORT_RUN in render("word_count", SETTING, [PENSTOCK, SHORT], [])
    assert SHORT_RUN not in render("word_count", SETTING, [PENSTOCK, PEER], [])


def test_only_settings_that_matter_to_a_program_are_reported():
    assert render("nexmark.q1", SETTING, [PENSTOCK], []).startswith("nexmark.q1: parallelism 2\n")


def test_results_are_read_as_they_were_written_and_summed_up(tmp_path):
    (tmp_path / "latency.json").write_text('{"median": 1}')
    older = write_results("word_count", SETTING, [PENSTOCK], [], tmp_path)
    older.rename(tmp_path / "word_count-p2.json")
    path = write_results("word_count", SETTING, [PENSTOCK, PEER], ["so it is"], tmp_path)
    assert path.name == "word_count-p2-1000-skewed.json"
    assert read_results(tmp_path) == [Comparison("word_count", SETTING, [PENSTOCK, PEER])]
    first, second = json.loads((tmp_path / SUMMARY).read_text())
    assert (first["system"], first["records_per_second_without_fixed_cost"]) == ("penstock", 1_000_000)
    assert (second["first_is_times_as_fast"], second["ratio_has_fixed_cost"]) == (1_000, False)


def test_the_scale_begins_and_ends_at_powers_of_ten_and_leaves_the_slowest_a_bar():
    scale = LogScale([1_000.0, 2_500_000.0])
    assert scale.ticks() == [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    assert scale.x(100) < scale.x(1_000) < scale.x(2_500_000) < scale.x(10_000_000)


def test_the_chart_has_a_bar_for_each_system_and_speaks_of_marks():
    picture = draw([Comparison("word_count", SETTING, [PENSTOCK, PEER, SHORT]), Comparison("q", SETTING, [PENSTOCK])])
    tree = ElementTree.fromstring(picture)
    kinds = [each.get("class") for each in tree.iter("{http://www.w3.org/2000/svg}rect")]
    assert kinds == ["paper", "first", "peer", "peer", "first"]
    texts = ["".join(each.itertext()) for each in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert "a <short> one" in texts and "16,667*" in texts
    assert "with its fixed cost" in texts[0]
    assert "prefers-color-scheme: dark" in picture


def test_a_chart_without_results_says_so():
    assert "No results yet" in draw([])


def test_the_section_of_the_docs_is_replaced_and_the_rest_stays():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    text = filled(page, [Comparison("word_count", SETTING, [PENSTOCK, PEER, SHORT])])
    assert text.startswith(f"before\n{BEGIN}\nMedians of 1 run;") and text.endswith(f"{END}\nafter\n")
    assert "old" not in text
    assert filled(text, []) == f"before\n{BEGIN}\nNo results yet.\n{END}\nafter\n"


def test_the_docs_have_speed_beside_java_and_the_loops_with_its_spread_and_memory():
    ours, java, loop = (
        repeated("penstock", 1.5, 1.4, 1.7),
        repeated("flink java", 2.5, 2.6, 2.5),
        outcome("python loop", 10**6, 1.0),
    )
    text = filled(f"{BEGIN}{END}", [Comparison("word_count", SETTING, [ours, java, loop])])
    label = "`word_count`: parallelism 2, 1,000 keys, 80/20"
    cells = ["1,000,000", "30%", "2.00 (1.67-2.33)", "0.50 (0.42-0.56)", "", "600", "600"]
    assert f"| {' | '.join([label, *cells])} |\n" in text


def test_the_docs_have_other_peers_in_a_table_of_their_own():
    text = filled(f"{BEGIN}{END}", [Comparison("word_count", SETTING, [PENSTOCK, outcome("pyspark", 10_000, 10.5)])])
    assert (
        "| benchmark | times pyspark |\n|---|---|\n| `word_count`: parallelism 2, 1,000 keys, 80/20 | 1,000 |\n" in text
    )


def test_the_docs_say_what_a_setting_costs():
    plain = Comparison("keyed_count", SETTING, [repeated("penstock", 1.5), repeated("flink java", 1.5)])
    slower = Comparison("keyed_count_on_disk", SETTING, [repeated("penstock", 2.5), repeated("flink java", 4.5)])
    text = filled(f"{BEGIN}{END}", [plain, slower])
    assert "| `keyed_count_on_disk` / `keyed_count` | 0.50 | 0.25 |\n" in text


def test_a_setting_is_not_compared_where_the_keys_differ():
    others = replace(SETTING, keys=7)
    pair = [Comparison("keyed_count", SETTING, [PENSTOCK]), Comparison("keyed_count_on_disk", others, [PENSTOCK])]
    assert "`keyed_count_on_disk` / " not in filled(f"{BEGIN}{END}", pair)


def test_latencies_fill_a_page_of_their_own():
    floor = {"parallelism": 8, "epochs": 50, "median_ms": 1.25, "p95_ms": 2.0, "cpu_ms": None}
    restart = {"system": "x", "failures": 9, "median_ms": 31.4, "most_ms": 1_234.0}
    latency = asdict(latency_of("x", 10_000, [0.002, 0.004], 1.0, 33.3))
    document = {"latencies": [latency], "epoch_floors": [floor], "restarts": [restart], "notes": ["a peer is left out"]}
    lines = latency_docs.section(document).splitlines()
    assert "| 10,000 | x | 3.0 | 4.0 | 4.0 | 4.0 | 33 |" in lines
    assert (
        "| 8 | 1.25 | 2.00 | ? |" in lines and "| x | 31 | 1,234 | 9 |" in lines and lines[-1] == "a peer is left out."
    )
    assert latency_docs.END in LATENCY_PAGE.read_text().partition(latency_docs.BEGIN)[2]


def test_a_run_that_was_too_short_is_marked_and_the_mark_explained():
    text = filled(f"{BEGIN}{END}", [Comparison("word_count", SETTING, [PENSTOCK, outcome("pyspark", 10_000, 0.6)])])
    assert "| 40\\* |" in text and "fixed cost is part" not in text and "that cost is part of both rates" in text


def test_the_measurement_of_an_outcome_is_its_median_run():
    found = repeated("penstock", 1.4, 3.0, 1.5)
    assert (found.measurement.seconds, spread(found.runs)) == (1.5, pytest.approx(1.6))
    assert spread(PENSTOCK.runs) == 0


def test_runs_share_the_median_of_their_fixed_costs():
    runs = [outcome("x", 1_000, 2.0, fixed).runs[0] for fixed in (0.5, 1.9, 0.7)]
    assert [run.fixed_seconds for run in with_common_fixed_cost(runs)] == [0.7, 0.7, 0.7]


def test_a_range_of_ratios_has_fixed_costs_in_all_of_them_or_in_none():
    clear, short = repeated("x", 1.5, 2.5).runs, repeated("y", 0.6, 1.5).runs
    assert ratio_range(clear, clear) == (0.5, 2.0)
    assert ratio_range(clear, short) == (pytest.approx(0.24), 1.0)


def test_results_of_older_versions_are_left_out(tmp_path):
    path = write_results("word_count", SETTING, [PENSTOCK], [], tmp_path)
    path.write_text(path.read_text().replace('"runs"', '"measurement"'))
    assert read_results(tmp_path) == []


def test_a_page_without_marks_is_refused():
    with pytest.raises(ValueError, match="one is missing; add it"):
        filled("a page", [], "page.md")


def test_the_docs_have_a_place_for_the_results():
    assert docs_section.END in PAGE.read_text().partition(BEGIN)[2]


def test_a_package_stands_for_all_its_programs_and_nothing_for_all():
    assert chosen(["nexmark", "word_count"])[-1] == "word_count" and "nexmark.q12" in chosen(["nexmark"])
    assert chosen([]) == NAMES


def test_programs_have_their_own_number_of_keys_unless_told_otherwise():
    [(_, own)], [(_, told)] = (runs_of(parse(["keyed_count", *given])) for given in ([], ["--keys", "7"]))
    assert (own.keys, told.keys) == (1_000_000, 7)


def test_fast_programs_get_more_records_and_slow_ones_fewer():
    records = {name: setting.records for name, setting in runs_of(parse(["--words", "1000"]))}
    assert (records["stateless_chain"], records["session_windows"], records["wide_records"]) == (8_000, 1_000, 200)


def test_a_run_of_everything_counts_words_with_even_keys_too():
    word_counts = [setting.has_skew for name, setting in runs_of(parse([])) if name == "word_count"]
    assert word_counts == [True, False]
    assert len(runs_of(parse([]))) == len(NAMES) + 1 and len(runs_of(parse(["--even"]))) == len(NAMES)
