"""The page in a browser, as a visitor has it before their eyes; needs selenium."""

import json
import urllib.request

from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

PATIENCE = 600
"""Seconds after which something has not come."""


class Page:
    """The page as a visitor has it before their eyes."""

    def __init__(self, browser, address):
        self.browser = browser
        self.address = address
        self.go("")

    def go(self, fragment):
        """Open the page by its address."""
        self.browser.get("about:blank")
        self.browser.get_log("performance")
        self.browser.get(f"{self.address}/{fragment}")
        self.wait(lambda: self.all("#dependency option") and not self.one("#cancel").is_displayed())

    def all(self, selector):
        """Return the elements that a selector finds."""
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        """Return the element that a selector finds."""
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def run(self, script, *values):
        """Run a script in the page."""
        return self.browser.execute_script(script, *values)

    def keys(self, *keys):
        """Press keys, wherever the focus is."""
        ActionChains(self.browser).send_keys(*keys).perform()

    def wait(self, condition):
        """Wait until a condition holds; return what it gives."""
        redrawn = (NoSuchElementException, StaleElementReferenceException)
        waiting = WebDriverWait(self.browser, PATIENCE, poll_frequency=0.05, ignored_exceptions=redrawn)
        return waiting.until(lambda _: condition())

    def point(self, find, condition):
        """Point at an element until a condition holds; what is drawn meanwhile may move it away."""

        def is_met():
            # A pointer that stays where it is makes no events.
            chain = ActionChains(self.browser).move_to_element(find())
            chain.move_by_offset(1, 0).move_by_offset(-1, 0).perform()
            return condition()

        return self.wait(is_met)

    @property
    def status(self):
        """What the page says."""
        return self.one("#status").text

    def submit(self, text):
        """Type a sentence and parse it, by the keyboard alone."""
        self.run("arguments[0].focus(); arguments[0].select()", self.one("#text"))
        self.keys(text)
        ActionChains(self.browser).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()

    def parse(self, text):
        """Parse a sentence and wait for its trees."""
        self.submit(text)
        self.settle()

    def settle(self):
        """Wait until what was asked for is drawn."""
        self.wait(lambda: self.one("#cancel").get_attribute("hidden") is not None and self.all("figure.tree"))

    def heads(self, model="parser", rank=1):
        """Return the heads that a picture shows, by word."""
        arcs = f'figure[data-model="{model}"][data-rank="{rank}"] g.arc'
        shown = self.run(
            "return [...document.querySelectorAll(arguments[0])].map((arc) => ({ ...arc.dataset }))", arcs
        )
        return {int(arc["word"]): int(arc["head"]) for arc in shown}

    def arc(self, word, model="parser", rank=1):
        """Return the arc of a word."""
        return self.one(f'figure[data-model="{model}"][data-rank="{rank}"] g.arc[data-word="{word}"]')

    def choose(self, word, model="parser", rank=1):
        """Press an arc, and wait for what is known of it."""
        self.run(
            "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))",
            self.arc(word, model, rank),
        )
        self.wait(lambda: not self.all("#panel [aria-busy]") and self.all("#panel .details *"))

    def retag(self, word, tag):
        """Type another tag of a word, and wait for the trees."""
        self.one(f'.tags input[data-column="upos"][data-word="{word}"]').click()
        ActionChains(self.browser).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
        self.keys(tag, Keys.TAB)
        self.wait(lambda: f"tag=1.{word}.upos.{tag}" in self.browser.current_url)
        self.settle()

    def sent(self):
        """Return what was asked since the page was opened: addresses and bodies."""
        entries = [json.loads(entry["message"])["message"] for entry in self.browser.get_log("performance")]
        requests = [
            one["params"]["request"] for one in entries if one["method"] == "Network.requestWillBeSent"
        ]
        return [(one["url"], json.loads(one.get("postData") or "null")) for one in requests]

    def has_focus(self, selector):
        """Whether the focus is on what a selector finds."""
        return self.run("return document.activeElement.matches(arguments[0])", selector)


def answer(address, route, body):
    """Ask the service without the page."""
    question = urllib.request.Request(
        f"{address}/{route}", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(question) as reply:
        return json.load(reply)["sentences"]
