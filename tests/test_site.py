"""The documentation as a site: it builds without warnings, and a reader can search it."""

import functools
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from browser import complaints, open_browser

pytest.importorskip("zensical")
pytestmark = pytest.mark.xdist_group("site")  # which is built once, in one worker
ROOT = Path(__file__).parents[1]
FOUND = """
const found = []
const look = (root) => root.querySelectorAll("*").forEach((element) => {
  if (element.tagName === "MARK") found.push(element.textContent)
  if (element.shadowRoot) look(element.shadowRoot)
})
look(document)
return found
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """What `make docs` builds, from a copy."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(ROOT / "docs", folder / "docs")
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "src").symlink_to(ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"],
        cwd=folder,
        env={"PATH": "", "PYTHONPATH": "docs"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "build" / "site"


@pytest.fixture
def address(site):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_formulas_are_mathml_and_the_reference_is_there(site):
    theory = (site / "theory" / "index.html").read_text(encoding="utf-8")
    assert theory.count("<math") >= 20
    assert "arithmatex" not in theory
    assert 'id="ssdfl.graph.Network"' in (site / "api" / "index.html").read_text(encoding="utf-8")
    assert not list(site.rglob("*.py"))


def test_a_reader_can_search_and_nothing_is_fetched_from_elsewhere(address, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    driver = open_browser(tmp_path)
    try:
        driver.get(address)
        wait = WebDriverWait(driver, 60)
        wait.until(
            lambda _: driver.find_element("css selector", ".md-search__button").is_displayed()
        )
        driver.find_element("css selector", ".md-search__button").click()
        wait.until(lambda _: driver.switch_to.active_element.tag_name != "body")
        driver.switch_to.active_element.send_keys("conductance")
        marked = wait.until(lambda _: driver.execute_script(FOUND))
        assert "conductance" in {text.lower() for text in marked}
        names = "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        assert all(name.startswith(address) for name in driver.execute_script(names))
        assert complaints(driver) == []
    finally:
        driver.quit()
