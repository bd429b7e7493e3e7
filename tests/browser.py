"""A real browser for tests of pages, or the reason why there is none."""

import os
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def open_browser(profile):
    """A headless Chromium that fetches nothing by itself; skips the test where it cannot be had."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        pytest.skip(
            "no chromium and chromedriver on the PATH "
            "(Debian: apt install chromium chromium-driver)"
        )
    os.environ["SE_OFFLINE"] = "true"
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for word in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(word)
    options.add_argument("--window-size=1300,1000")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))


def open_page(driver, path):
    """Show a page, and wait until it has drawn something."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get("about:blank")  # else the page before, which may be the same, is looked at
    driver.get(path.as_uri())
    drawn = (
        "return document.querySelectorAll('svg .device, svg .bubble, .js-plotly-plot').length > 0"
    )
    WebDriverWait(driver, 60).until(lambda _: driver.execute_script(drawn), f"{path} draws nothing")


def complaints(driver):
    """What the page wrote to the console, warnings included."""
    return [
        entry["message"]
        for entry in driver.get_log("browser")
        if entry["level"] in ("WARNING", "SEVERE")
    ]
