"""The dashboard in Chromium, on jobs that really run.

With PENSTOCK_SCREENSHOTS=docs/images it leaves the pictures that the docs show.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if CHROMIUM is None:
    pytest.skip("needs Chromium (Debian: apt-get install chromium; `make servers` does)", allow_module_level=True)
playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")

PATIENCE_MS = 60_000
DESKTOP, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
# Under its short name: pictures show no folder of the machine they were made on.
RUN_SHOP = "exec(compile(open('shop.py').read(), 'shop.py', 'exec'))"
TABS = ("overview", "epochs", "timeline", "checkpoints", "exceptions", "output", "log", "configuration")


@dataclass
class Shop:
    """A process with a job that runs, and perhaps one that has failed."""

    address: str
    folder: Path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def start_shop(tmp_path) -> Iterator[Any]:
    started = []

    def start(*flags: str) -> Shop:
        process = subprocess.Popen(
            [sys.executable, "-c", RUN_SHOP, str(tmp_path / "checkpoints"), *flags],
            cwd=Path(__file__).parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PENSTOCK_NO_WEB": ""},
        )
        started.append(process)
        assert process.stderr is not None
        found = (re.match(r"Dashboard: (\S+)", line) for line in process.stderr)
        return Shop(next(each.group(1) for each in found if each), tmp_path)

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def open_page(chromium) -> Iterator[Any]:
    """`open_page(address, size, scheme)`; at the end nothing may have gone wrong in any page, or been refused."""
    wrong: list[str] = []
    contexts = []

    def open_one(address: str, size: dict[str, int] = DESKTOP, scheme: str = "light") -> Any:
        context = chromium.new_context(viewport=size, color_scheme=scheme, has_touch=size is PHONE)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert wrong == []


def picture(page: Any, name: str) -> None:
    """For the docs; with fewer colours where there is a program for that."""
    folder = os.environ.get("PENSTOCK_SCREENSHOTS")
    if not folder:
        return
    file = Path(folder) / f"{name}.png"
    file.parent.mkdir(parents=True, exist_ok=True)
    page.wait_for_timeout(6000)  # So that there is something to see in charts
    page.screenshot(path=str(file))
    if shutil.which("pngquant"):
        subprocess.run(["pngquant", "--force", "--ext", ".png", "96", str(file)], check=True)


def number_of(page: Any, selector: str) -> float:
    text = page.locator(selector).first.inner_text()
    found = re.search(r"([\d.]+)\s*([kMG]?)", text)
    return float(found.group(1)) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[found.group(2)] if found else 0.0


def wait_until(page: Any, question: Any) -> None:
    for _ in range(PATIENCE_MS // 200):
        if question():
            return
        page.wait_for_timeout(200)
    raise AssertionError(f"it never came to be; the page shows:\n{page.locator('main').inner_text()}")


def overflows(page: Any) -> bool:
    return page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth + 1")


def test_job_is_watched_and_steered(start_shop, open_page):
    shop = start_shop()
    page = open_page(shop.address)
    page.wait_for_selector(".jobhead")  # The only job is shown at once.
    assert "token" not in page.url and "#/jobs/" in page.url

    # Numbers move.
    total = ".vertex .flow span:last-child b"
    wait_until(page, lambda: number_of(page, total) > 0)
    before = number_of(page, total)
    wait_until(page, lambda: number_of(page, total) > before)
    wait_until(page, lambda: number_of(page, "[data-kpi=rate] strong") > 100)
    assert page.locator(".vertex").count() == 3 and page.locator(".ship").all_inner_texts() == ["HASH", "HASH"]
    picture(page, "dashboard-overview")

    # A vertex opens, shows its subtasks and a metric over time, and closes by the keyboard.
    page.locator(".vertex", has_text="sum by customer").click()
    panel = page.locator(".panel")
    wait_until(page, lambda: panel.locator(".subtasks tbody tr").count() == 2)
    picture(page, "dashboard-vertex")
    panel.locator("[data-tab=metrics]").click()
    panel.get_by_label("numRecordsInPerSecond", exact=True).check()
    panel.locator("[data-chart=numRecordsInPerSecond] canvas").wait_for()
    page.keyboard.press("Escape")
    panel.wait_for(state="detached")

    # A savepoint: asked for, confirmed, written.
    page.locator("[data-action=savepoint]").click()
    page.get_by_label("Folder").fill(str(shop.folder / "savepoints"))
    page.locator("[data-confirm]").click()
    path = page.locator(".message code").inner_text().strip()
    assert (Path(path.removeprefix("file://")) / "_metadata").is_file()
    page.locator("[data-tab=checkpoints]").first.click()
    page.locator("[data-checkpoint]", has_text="Savepoint").first.click()
    page.locator("tr.detail .subtasks, tr.detail table").first.wait_for()

    # Cancelled, after one more question; the page says so by itself.
    page.locator("[data-action=cancel]").click()
    page.locator("dialog button", has_text="No").click()
    assert page.locator(".jobhead [data-state=RUNNING]").count() == 1
    page.locator("[data-action=cancel]").click()
    page.locator("[data-confirm]").click()
    page.locator(".jobhead [data-state=CANCELED]").wait_for()
    assert page.locator(".actions").count() == 0


def test_failing_job_shows_the_users_frames(start_shop, open_page):
    page = open_page(start_shop("--with-failure").address)
    page.locator("table.jobs [data-state=FAILED]").wait_for()  # Two jobs: the list is shown.
    picture(page, "dashboard-jobs")
    page.locator("table.jobs a", has_text="credit check").click()
    page.locator("[data-tab=exceptions] .count").wait_for()
    page.locator("[data-tab=exceptions]").click()
    stack = page.locator("pre.stack").first
    stack.wait_for()
    told = stack.inner_text()
    assert "in check_credit" in told and "no credit left for customer-96" in told and "penstock" not in told
    assert page.locator(".failure").first.inner_text().startswith("ValueError in operator credit")
    assert page.locator("[data-times]").inner_text() == "2 times"
    assert page.locator(".earlier").count() == 0, "the same failure is in one place"
    picture(page, "dashboard-exceptions")
    page.keyboard.press("8")
    page.locator("table.settings", has_text="my.api-token").wait_for()
    assert "hidden" not in page.locator("main").inner_text().replace("are hidden", "")


def test_log_is_followed_searched_and_saved(start_shop, open_page):
    page = open_page(start_shop().address)
    page.wait_for_selector(".vertex")
    page.keyboard.press("7")
    box, lines = page.locator("pre.lines"), page.locator("pre.lines > span")
    wait_until(page, lambda: lines.count() > 20)
    assert re.search(r"INFO +\[Source: Orders.*\(1/2\)#0\] shop - customer-\d+ orders for 99\.", box.inner_text())

    # It is followed until one scrolls away from its end.
    def is_at_end() -> bool:
        return box.evaluate("box => box.scrollHeight - box.clientHeight - box.scrollTop < 30")

    follow = page.get_by_label("Follow")
    wait_until(page, lambda: box.evaluate("box => box.scrollHeight > box.clientHeight") and is_at_end())
    box.evaluate("box => box.scrollTo(0, 0)")
    wait_until(page, lambda: not follow.is_checked())
    count = lines.count()
    wait_until(page, lambda: lines.count() > count)
    assert box.evaluate("box => box.scrollTop") == 0
    follow.check()
    wait_until(page, is_at_end)
    picture(page, "dashboard-log")

    # Lines are found one by one, or nothing else is shown.
    page.get_by_label("Find").fill("warning")
    wait_until(page, lambda: re.fullmatch(r"1 of \d+", page.locator(".found").inner_text()))
    assert page.locator("pre.lines mark").first.inner_text() == "WARNING"
    first = page.locator("pre.lines .at").inner_text()
    page.keyboard.press("Enter")
    wait_until(page, lambda: page.locator("pre.lines .at").inner_text() != first)
    page.keyboard.press("Shift+Enter")
    wait_until(page, lambda: page.locator("pre.lines .at").inner_text() == first)
    page.get_by_label("Only these").check()
    assert all("WARNING" in line for line in lines.all_inner_texts())
    page.get_by_label("Find").fill("no such line")
    wait_until(page, lambda: page.locator(".found").inner_text() == "none")

    with page.expect_download() as begun:
        page.get_by_label("Save as a file").click()
    assert "orders for" in Path(begun.value.path()).read_text()

    # The same for what was printed.
    page.keyboard.press("6")
    page.locator("pre.lines", has_text="customer-").wait_for()


def test_executor_shows_what_functions_log_and_do(start_shop, open_page):
    page = open_page(start_shop().address)
    page.wait_for_selector(".vertex")
    page.keyboard.press("e")
    page.locator("main table a").first.click()
    page.locator("pre.lines", has_text="orders for").wait_for()
    page.locator("[data-tab=output]").click()
    page.locator("pre.lines", has_text="customer-").wait_for()
    page.locator("[data-tab=threads]").click()
    page.locator("summary", has_text="MainThread").click()
    page.locator("pre.stack", has_text="sys.stdin.read").first.wait_for()


def test_accumulators_of_a_vertex_are_shown_by_subtask(start_shop, open_page):
    page = open_page(start_shop().address)
    page.wait_for_selector(".vertex")
    page.locator(".vertex", has_text="paid").click()
    page.locator(".panel [data-tab=accumulators]").click()
    own = page.locator("[data-accumulator='large orders']")
    wait_until(page, lambda: number_of(page, "[data-accumulator='large orders'] td.n") > 10)
    own.get_by_role("button").click()
    of_subtasks = page.locator(".of-subtask td.n")
    wait_until(page, lambda: of_subtasks.count() == 2)
    assert all(int(text) > 0 for text in of_subtasks.all_inner_texts())


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_all_pages_fit_the_screen(start_shop, open_page, size, scheme):
    page = open_page(start_shop().address, size, scheme)
    page.wait_for_selector(".vertex")
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, re.findall(r"\d+", background)[:3])) < 200) == (scheme == "dark")
    for tab in TABS:
        page.locator(f".tabs [data-tab={tab}]").first.click()
        page.locator(f".tabs [data-tab={tab}][aria-current]").wait_for()
        wait_until(page, lambda: page.locator("main .loading").count() == 0)
        assert not overflows(page), f"{tab} is wider than the screen"
        if tab == "epochs":
            page.locator("[data-chart='Records per second'] canvas").wait_for()
            if scheme == "dark" and size is DESKTOP:
                picture(page, "dashboard-epochs-dark")
    page.keyboard.press("1")
    page.locator(".vertex").first.click()
    page.locator(".panel .subtasks").wait_for()
    assert not overflows(page)
    if size is PHONE:
        picture(page, f"dashboard-phone-{scheme}")
    page.keyboard.press("Escape")
    for link in ("executors", "process"):
        page.locator(f"header nav a[href='#/{link}']").click()
        page.locator("main h1").wait_for()
        assert not overflows(page)


def test_keyboard_leads_everywhere(start_shop, open_page):
    page = open_page(start_shop().address)
    page.wait_for_selector(".vertex")
    page.keyboard.press("2")
    page.locator("[data-tab=epochs][aria-current]").wait_for()
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("?")
    page.locator("dialog").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")
    page.keyboard.press("j")
    page.locator("table.jobs").wait_for()


def test_page_without_the_token_asks_for_it(start_shop, chromium):
    address, _, token = start_shop().address.partition("#token=")
    page = chromium.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.goto(address)
    page.get_by_label("Token").fill(token)
    page.get_by_role("button", name="Open").click()
    page.wait_for_selector(".jobhead")
    page.close()
