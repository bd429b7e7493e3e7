"""The pages in a real browser: no complaints, controls that work, numbers that are the records'."""

import json
import threading
import time
import urllib.request

import pytest

from browser import complaints, open_browser, open_page
from ssdfl.cli import live as module
from ssdfl.cli.live import LiveRun, serving
from ssdfl.clusters import Candidate, FormationSettings, Plan, form_clusters, unknown_devices
from ssdfl.experiments import iterate_experiment, run_experiment
from ssdfl.experiments.bounds import compare_bounds
from ssdfl.graph import Conductance, load_network, make_network
from ssdfl.records import RunFolder, load_experiment
from ssdfl.report import write_comparison, write_plan_page, write_report

pytestmark = pytest.mark.xdist_group("browser")

SETTINGS = (
    "name=seen",
    "cycles=4",
    "data.name=helpers:tiny_data",
    "data.labels_per_device=2",
    "network.spec=sites:sites=2,size=3,seed=0",
    "methods=['ssdfl', 'sdfl', 'pdfl']",
    "training.local_steps=1",
    "evaluate.every=1",
    "evaluate.gaps=true",
)

PLACES = ("Dublin", "Tokyo", "Sydney")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = open_browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = run_experiment(
        load_experiment(None, SETTINGS), tmp_path_factory.mktemp("runs") / "seen"
    )
    folder.write_bounds(compare_bounds(folder))
    write_report(folder)
    return folder


@pytest.fixture
def report(browser, run):
    open_page(browser, run.path / "report.html")
    return browser


def mean(run, method, cycle, quantity):
    values = [r[quantity] for r in run.all_rows() if (r["method"], r["cycle"]) == (method, cycle)]
    return sum(values) / len(values)


def traces(browser, chart):
    """The lines of a chart by name, as Plotly drew them."""
    return browser.execute_script(
        "const lines = byId(arguments[0]).data.filter((t) => !t.name.endsWith(' band'));"
        "const points = (t) => [t.name, {x: Array.from(t.x), y: Array.from(t.y)}];"
        "return Object.fromEntries(lines.map(points))",
        chart,
    )


def slide(browser, name, value):
    browser.execute_script(
        "byId(arguments[0]).value = arguments[1];"
        "byId(arguments[0]).dispatchEvent(new Event('input'))",
        name,
        value,
    )


def text_of(browser, selector):
    return browser.find_element("css selector", selector).text


def test_nothing_is_complained_of_and_nothing_is_asked_for(report):
    assert complaints(report) == []
    asked = report.execute_script(
        "return performance.getEntriesByType('resource').map((e) => e.name)"
    )
    assert [name for name in asked if not name.startswith("data:")] == []
    titles = report.execute_script(
        "return [...document.querySelectorAll('.modebar-btn')].map((b) => b.dataset.title ?? '')"
    )
    assert titles
    assert not any("Share" in title or "loud" in title for title in titles)


def test_curves_are_the_records_against_every_cost(report, run):
    for place, (cost, scale) in enumerate(
        [("cycle", 1), ("transmissions", 1), ("sent_bytes", 1e6), ("time_s", 1)]
    ):
        report.find_elements("css selector", "#curve-controls input[type=radio]")[place].click()
        for chart, quantity in enumerate(("score", "loss", "consensus_distance")):
            drawn = traces(report, f"curve-{chart}")
            assert set(drawn) == {"ssdfl", "sdfl", "pdfl"}
            for method, line in drawn.items():
                cycles = range(1, 5)
                assert line["y"] == pytest.approx(
                    [mean(run, method, c, quantity) for c in cycles], rel=1e-6
                )
                assert line["x"] == pytest.approx(
                    [mean(run, method, c, cost) / scale for c in cycles], rel=1e-6
                )
    assert complaints(report) == []


def test_a_chart_shows_the_metric_that_is_chosen(report, run):
    from selenium.webdriver.support.ui import Select

    select = Select(report.find_element("id", "quantity-0"))
    assert select.first_selected_option.text == "mean test accuracy"
    offered = [option.get_attribute("value") for option in select.options]
    assert {"score_worst", "effective_gradient", "training_gap"} <= set(offered)
    assert "real seconds" not in text_of(report, "#curve-controls")
    for quantity in offered:
        select.select_by_value(quantity)
        line = traces(report, "curve-0")["ssdfl"]
        assert line["y"] == pytest.approx(
            [mean(run, "ssdfl", c, quantity) for c in range(1, 5)], rel=1e-6
        )
    assert complaints(report) == []


def test_real_seconds_are_offered_once_there_are_some(report):
    report.execute_script(
        "data.costs.push('real_s');"
        "data.metrics.real_s = {...data.metrics.time_s, name: 'real_s', label: 'real seconds'};"
        "for (const s of data.series) for (const c of Object.values(s.curves)) c.real_s = c.time_s;"
        "redraw()"
    )
    report.find_element("css selector", "input[value=real_s]").click()
    assert "against real seconds" in report.find_element("id", "curve-0").get_attribute(
        "aria-label"
    )
    assert report.execute_script("return byId('curve-0').layout.xaxis.title.text") == "real seconds"


def test_methods_are_switched_off_and_on(report):
    box = report.find_element("css selector", "input[data-kind=method][value=sdfl]")
    box.click()
    assert set(traces(report, "curve-0")) == {"ssdfl", "pdfl"}
    assert set(traces(report, "curve-1")) == {"ssdfl", "pdfl"}
    label = report.find_element("id", "curve-0").get_attribute("aria-label")
    assert "sdfl" not in label.replace("ssdfl", "")
    box.click()
    assert set(traces(report, "curve-0")) == {"ssdfl", "sdfl", "pdfl"}


def test_the_cycle_slider_shows_every_devices_accuracy(report, run):
    rows = run.read_rows(0, "ssdfl")
    seen = set()
    for place in (0, 3):
        slide(report, "cycle", place)
        assert text_of(report, "#cycle-shown") == str(rows[place]["cycle"])
        report.execute_script("pickDevice(2)")
        assert (
            f"{100 * rows[place]['device_score'][2]:.1f} % (ssdfl, cycle {place + 1})"
            in text_of(report, "#device")
        )
        seen.add(report.find_elements("css selector", "#network .device")[2].get_attribute("fill"))
    assert len(seen) == 2
    devices = json.loads((run.seed_folder(0) / "devices.json").read_text())
    bars = report.find_element("css selector", "#device .bars").get_attribute("aria-label")
    assert bars == ", ".join(f"label {k}: {count}" for k, count in enumerate(devices[2]["labels"]))
    assert devices[2]["optimizer"].replace(":", " ") in text_of(report, "#device")


def test_the_network_works_by_pointer_and_by_keyboard(report):
    from selenium.webdriver import ActionChains, Keys

    circle = report.find_elements("css selector", "#network .device")[4]
    report.execute_script("arguments[0].scrollIntoView({block: 'center'})", circle)
    ActionChains(report).move_to_element(circle).perform()
    assert text_of(report, "#device h3") == "Device 4"
    report.find_element("id", "network").send_keys(Keys.ARROW_RIGHT)
    assert text_of(report, "#device h3") == "Device 5"
    report.find_element("id", "cycle").send_keys(Keys.HOME)
    assert text_of(report, "#cycle-shown") == "1"


def test_labels_are_those_of_the_devices(report, run):
    drawn = report.execute_script(
        "const t = byId('chart-labels').data[0]; return {z: t.z, of: t.customdata[0]}"
    )
    devices = json.loads((run.seed_folder(0) / "devices.json").read_text())
    assert {name for name, _ in drawn["of"]} == {str(k) for k in range(6)}
    for place, (name, _) in enumerate(drawn["of"]):
        assert [row[place] for row in drawn["z"]] == devices[int(name)]["labels"]


def test_the_plan_slider_shows_every_candidate(report, run):
    plan = run.plan(0)
    for place, candidate in enumerate(plan.candidates):
        slide(report, "plan-slider", place)
        facts = text_of(report, "#plan-facts")
        assert facts.startswith(f"S = {candidate.num_clusters}")
        assert ("not feasible" in facts) == (not candidate.feasible)
        fills = {
            c.get_attribute("fill")
            for c in report.find_elements("css selector", "#plan-network .device")
        }
        assert len(fills) == candidate.num_clusters
    report.find_element("id", "plan-back").click()
    assert text_of(report, "#plan-size") == str(plan.num_clusters)


def test_bounds_are_those_that_were_compared(report, run):
    rows = [r for r in run.read_bounds() if (r.method, r.statement) == ("ssdfl", "Lemma 2")]
    drawn = traces(report, "chart-Lemma-2")
    assert len(rows) == 4 * 2
    for kind in ("measured", "rigorous"):
        of_cycles = [[getattr(r, kind) for r in rows if r.cycle == cycle] for cycle in range(1, 5)]
        assert drawn[kind]["y"] == pytest.approx([sum(v) / len(v) for v in of_cycles], rel=1e-6)


def test_the_choice_of_bounds_keeps_the_focus(report):
    from selenium.webdriver import Keys

    report.find_element("id", "bound-method").send_keys(Keys.ARROW_DOWN)
    assert report.switch_to.active_element.get_attribute("value") == "sdfl"
    assert "sdfl" in report.find_element("id", "chart-Lemma-1").get_attribute("aria-label")


@pytest.mark.parametrize(
    ("values", "caption"),
    [
        ("[1, 2]", ""),
        ("[null, null]", "Not drawn: measured says nothing of some cluster or seed."),
        ("[null, 2]", "Not drawn: measured says nothing of some cluster or seed in 1 of 2 cycles."),
        ("[0, 0]", "Not drawn: measured is 0, which a logarithmic axis cannot show."),
        (
            "[0, 2]",
            "Not drawn: measured is 0 in 1 of 2 cycles, which a logarithmic axis cannot show.",
        ),
    ],
)
def test_what_bounds_cannot_show_is_said(report, values, caption):
    report.execute_script(
        "data.bounds = data.bounds.slice(0, 1);"
        "Object.assign(data.bounds[0], {cycles: [1, 2], published: [1, 1], rigorous: [1, 1]});"
        f"data.bounds[0].measured = {values}; drawBounds()"
    )
    captions = report.find_elements("css selector", "#bound-statements figcaption")
    assert [one.text for one in captions] == ([caption] if caption else [])


def test_many_links_are_counted_and_some_are_shown(report):
    report.execute_script(
        "seedData().links.length = 2; redraw(); pickDevice(seedData().links[0][0])"
    )
    assert "Showing 2 of " in text_of(report, "#network-legend")
    assert "… and " in text_of(report, "#device")
    assert "Showing 2 of " in report.find_element("id", "plan-links").get_attribute("textContent")


def test_seeds_left_out_are_counted(report):
    assert "in the run's folder" not in text_of(report, "#network-legend")
    for count, text in ((1, "1 more seed is"), (2, "2 more seeds are")):
        report.execute_script("data.left_out = arguments[0]; redraw()", count)
        assert f"{text} in the run's folder" in text_of(report, "#network-legend")


def test_what_is_read_aloud_is_written_only_when_it_changes(report):
    report.execute_script(
        "window.written = 0; const watch = new MutationObserver(() => { window.written += 1; });"
        "for (const id of ['device', 'plan-facts', 'plan-size', 'cycle-shown'])"
        " watch.observe(byId(id), { childList: true, subtree: true, characterData: true });"
        " redraw()"
    )
    assert report.execute_script("return window.written") == 0
    slide(report, "cycle", 0)
    wait_for(lambda: report.execute_script("return window.written") > 0)


def test_a_seed_that_has_tested_nothing_has_no_cycle(report):
    report.execute_script("seedData().scores = {}; showCycle()")
    assert report.find_element("id", "cycle").get_attribute("aria-valuetext") == "no cycle yet"
    assert text_of(report, "#cycle-shown") == "–"


def test_the_player_says_what_it_does(report):
    button = report.find_element("id", "play")
    labels = []
    for _ in range(2):
        report.execute_script("byId('play').click()")
        labels.append(button.get_attribute("aria-label"))
    assert labels == ["Pause", "Play the cycles"]


def test_another_seed_has_its_own_devices(report, run):
    from selenium.webdriver.support.ui import Select

    Select(report.find_element("id", "seed")).select_by_visible_text("1")
    report.execute_script("pickDevice(0)")
    last = run.read_rows(1, "ssdfl")[-1]
    assert f"{100 * last['device_score'][0]:.1f} %" in text_of(report, "#device")
    shown = report.find_elements("css selector", "[data-seed]:not([hidden])")
    assert [part.get_attribute("data-seed") for part in shown] == ["1"]


def test_dark_and_light_and_paper(report):
    def background():
        return report.execute_script("return getComputedStyle(document.body).backgroundColor")

    def lettering():
        return report.execute_script("return byId('curve-1').layout.font.color")

    before = background(), lettering()
    report.find_element("id", "theme").click()
    assert background() != before[0]
    assert lettering() != before[1]
    report.find_element("id", "theme").click()
    assert (background(), lettering()) == before
    wide = "return byId('curve-0').querySelector('svg').getBoundingClientRect().width"
    width = report.execute_script(wide)
    folded = "return document.querySelectorAll('details:not([open])').length"
    assert report.execute_script(folded) > 0
    report.find_element("id", "theme").click()
    in_colour = background()
    report.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert (background(), report.execute_script(folded)) == ("rgb(255, 255, 255)", 0)
    report.execute_script("dispatchEvent(new Event('afterprint'))")
    assert background() == in_colour
    assert report.execute_script(folded) > 0
    report.find_element("id", "theme").click()
    assert len(report.print_page()) > 20_000
    assert (report.execute_script(wide), background()) == (
        width,
        before[0],
    )  # as it was before printing
    assert complaints(report) == []


def test_every_picture_has_words(report):
    silent = report.execute_script(
        "return [...document.querySelectorAll('[role=img], [role=application], input, select')]"
        ".filter((e) => !(e.ariaLabel || e.labels?.length)).map((e) => e.outerHTML.slice(0, 80))"
    )
    assert silent == []


def test_a_plan_page_works(browser, tmp_path):
    network = load_network("sites:sites=3,size=4,seed=1")
    plan = form_clusters(network, unknown_devices(network), FormationSettings())
    write_plan_page(network, plan, tmp_path / "plan.html")
    open_page(browser, tmp_path / "plan.html")
    assert text_of(browser, "#plan-size") == "3"
    slide(browser, "plan-slider", 4)
    assert text_of(browser, "#plan-facts").startswith("S = 5")
    assert len(browser.find_elements("css selector", "#plan-candidates tbody tr")) == 12
    assert complaints(browser) == []


def test_a_plan_page_names_devices_that_have_no_coordinates(browser, tmp_path):
    names = ["db", "berlin-rack-1", "a-long-name-of-device-7"]
    network = make_network(3, [(0, 1), (1, 2)], names=names)
    plan = form_clusters(network, unknown_devices(network), FormationSettings())
    write_plan_page(network, plan, tmp_path / "plan.html")
    open_page(browser, tmp_path / "plan.html")
    shown = browser.find_elements("css selector", "#plan-network text.place")
    assert [one.text for one in shown] == ["db", "berlin-rack-1", "a-long-…evice-7"]
    assert complaints(browser) == []


def test_a_plan_page_of_many_devices_shows_bubbles_that_open(browser, tmp_path):
    network = load_network("cliques:cliques=40,size=6")
    clusters = tuple(tuple(range(6 * k, 6 * k + 6)) for k in range(40))
    wholes = {1: (tuple(range(240)),), 40: clusters}
    candidates = tuple(
        Candidate(found, 1.0, 0.4, Conductance(0.5, 0.5, ()), (), "bisection")
        for found in wholes.values()
    )
    plan = Plan(clusters, "cost", candidates, "time", "feasible", names=network.names)
    write_plan_page(network, plan, tmp_path / "plan.html")
    open_page(browser, tmp_path / "plan.html")
    assert len(browser.find_elements("css selector", "#plan-network .bubble")) == 40
    assert browser.find_elements("css selector", "#plan-network .device") == []
    browser.execute_script(
        "document.querySelectorAll('.bubble')[3].dispatchEvent(new Event('click', {bubbles: true}))"
    )
    assert text_of(browser, "#plan-opened h3") == "Cluster 3: 6 devices"
    assert text_of(browser, "#plan-opened .names") == "18, 19, 20, 21, 22, 23"
    assert len(browser.find_elements("css selector", "#plan-network .device")) == 6
    browser.find_element("id", "plan-search").send_keys("125\n")
    assert text_of(browser, "#plan-opened h3") == "Cluster 20: 6 devices"
    picked = browser.find_elements("css selector", "#plan-network .device.picked")
    assert [one.get_attribute("data-device") for one in picked] == ["125"]
    width = "return Number(byId('plan-network').getAttribute('viewBox').split(' ')[2])"
    near = browser.execute_script(width)
    browser.find_element("id", "plan-out").click()
    assert near < browser.execute_script(width) < 640
    browser.find_element("id", "plan-whole").click()
    assert browser.execute_script(width) == 640
    slide(browser, "plan-slider", 0)
    assert len(browser.find_elements("css selector", "#plan-network .bubble")) == 1
    assert complaints(browser) == []


def test_coordinates_make_a_map(browser, tmp_path):
    from selenium.webdriver import Keys

    network = load_network("gaia")
    write_plan_page(network, form_clusters(network), tmp_path / "plan.html")
    open_page(browser, tmp_path / "plan.html")
    assert len(browser.find_elements("css selector", "#plan-network .land")) > 10
    assert "Tokyo" in text_of(browser, "#plan-network")
    x = (
        "return Number(document.querySelectorAll('#plan-network .device')[arguments[0]]"
        ".getAttribute('cx'))"
    )
    dublin, tokyo, sydney = (browser.execute_script(x, network.names.index(c)) for c in PLACES)
    assert dublin < tokyo < sydney
    drawing = browser.find_element("id", "plan-network")
    drawing.send_keys("+", Keys.ARROW_RIGHT)
    left, _, width, _ = map(float, drawing.get_dom_attribute("viewBox").split())
    assert width < 640
    assert left > 0
    drawing.send_keys("0")
    assert drawing.get_dom_attribute("viewBox") == "0 0 640 560"
    assert "Upgrade" in text_of(browser, "#why")
    headline = text_of(browser, ".headline")  # seconds and links; Φ comes below
    assert headline.startswith("A cycle takes")
    assert "Upgrade" in headline
    assert "Φ" not in headline
    assert text_of(browser, "#reason").startswith("S = ")
    assert complaints(browser) == []


def test_a_comparison_has_every_runs_curves(browser, run, tmp_path):
    settings = [*SETTINGS, "methods=['ssdfl']", "seeds=[5]", "training.learning_rate=0.01"]
    other = run_experiment(load_experiment(None, settings), tmp_path / "slow")
    write_comparison([run, other], tmp_path / "both.html")
    open_page(browser, tmp_path / "both.html")
    drawn = traces(browser, "curve-0")
    assert set(drawn) == {"ssdfl in seen", "sdfl in seen", "pdfl in seen", "ssdfl in slow"}
    assert drawn["ssdfl in slow"]["y"] == pytest.approx(
        [r["score"] for r in other.all_rows()], rel=1e-6
    )
    browser.find_element("css selector", "input[data-kind=run][value=seen]").click()
    assert set(traces(browser, "curve-0")) == {"ssdfl in slow"}
    assert complaints(browser) == []


def test_a_live_page_follows_its_run(browser, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "PATIENCE_S", 60.0)
    experiment = load_experiment(None, [*SETTINGS, "seeds=[0]"])
    folder = RunFolder(tmp_path / "live")
    live = LiveRun(folder, experiment)
    with serving(live) as address:
        with monkeypatch.context() as patch:
            patch.setattr(live, "news", lambda _: {}["lost"])
            browser.get(address)
            wait_for(lambda: "KeyError: 'lost'" in text_of(browser, "#live-text"))
            assert all("500" in complaint for complaint in complaints(browser))
        advances = iterate_experiment(experiment, folder.path)
        for _ in range(6):
            live.cycle(next(advances))
        wait_for(lambda: text_of(browser, "#live-text").startswith("seed 0, sdfl, cycle 2 of 4"))
        assert len(traces(browser, "curve-0")["ssdfl"]["x"]) == 4
        assert len(traces(browser, "curve-0")["sdfl"]["x"]) == 2
        browser.find_element("css selector", "input[data-kind=method][value=pdfl]").click()
        slide(browser, "plan-slider", 4)
        for advance in advances:
            live.cycle(advance)
        ending = threading.Thread(target=live.end, args=("The run has ended.",))
        ending.start()
        wait_for(lambda: text_of(browser, "#live-text") == "The run has ended.")
        ending.join()
    assert set(traces(browser, "curve-0")) == {"ssdfl", "sdfl"}  # what was switched off stays off
    assert text_of(browser, "#plan-size") == "5"
    assert "Nothing has been tested" not in text_of(browser, "[data-part=headline]")
    assert complaints(browser) == []
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(address)


def wait_for(true, timeout_s=60):
    until = time.monotonic() + timeout_s
    while not true():
        assert time.monotonic() < until
        time.sleep(0.1)
