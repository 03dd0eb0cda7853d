"""Make the pictures of the README and the website by running the program.

    python tools/make_pictures.py [--only NAME]

`parse.svg` is a sentence parsed by the English model, drawn by `treewright.draw`. The others are screenshots
of the page of `treewright serve`, in light and dark mode, taken by headless Chromium and reduced to 256
colours. This needs `chromium` and `chromedriver` on the path, and Selenium from the extra `test`.
"""

import argparse
import io
import shutil
import sys
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from PIL import Image
from selenium.webdriver import Chrome, ChromeOptions, ChromeService

import treewright as tw
from treewright.web.app import make_app
from treewright.web.server import address_of, listen

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from browsing import Page

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
SENTENCE = "I saw the heron with a telescope."
ATTACHED = 7
"""The word whose head is uncertain: "telescope"."""
COLOURS = 256
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
)


def main():
    """Make all pictures, or those whose names contain a text."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="make only pictures whose names contain this text")
    only = parser.parse_args().only
    nlp = tw.load("en")
    if only in "parse.svg":
        draw_sentence(nlp)
    with serving(nlp) as address:
        for scheme in ("light", "dark"):
            for name, width, height, show in SHOTS:
                file = f"{name}-{scheme}.png"
                if only in file:
                    with browser(scheme, width, height) as chrome:
                        page = Page(chrome, address)
                        show(page)
                        save_png(chrome.get_screenshot_as_png(), file)


def draw_sentence(nlp):
    """Draw the sentence with the probabilities of arcs below 99.5%; the least certain arc is marked."""
    tree = nlp(SENTENCE)[0]
    marginals = nlp.marginals([tree])[0]  # of each word, the probability of each head
    confidence = [float(marginals[word, head]) for word, head in enumerate(tree.heads)]
    shown = [
        f"{deprel} {sure:.0%}" if sure < 0.995 else deprel
        for deprel, sure in zip(tree.deprels, confidence, strict=True)
    ]
    labelled = tw.DepTree(tree.words, tree.heads, shown, upos=tree.upos)
    tw.draw(labelled, IMAGES / "parse.svg", confidence=confidence, marked=[ATTACHED])


def show_sentence(page):
    """Parse the sentence and open the panel of the uncertain arc."""
    page.parse(SENTENCE)
    page.choose(ATTACHED, model="en")
    page.run("document.activeElement.blur(); window.scrollTo(0, 0)")


def show_narrow(page):
    """Parse the sentence on a narrow screen and scroll to its tree."""
    page.parse(SENTENCE)
    page.run("document.activeElement.blur(); document.querySelector('#trees').scrollIntoView()")


SHOTS = [("page", 1400, 1130, show_sentence), ("page-narrow", 400, 800, show_narrow)]


def save_png(data, file):
    """Write a screenshot with few colours."""
    picture = (
        Image.open(io.BytesIO(data))
        .convert("RGB")
        .quantize(COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    )
    picture.save(IMAGES / file, optimize=True)
    print(f"{file}: {picture.size[0]} x {picture.size[1]}, {(IMAGES / file).stat().st_size:,} bytes")


@contextmanager
def serving(nlp):
    """Serve a pipeline on a free port."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(make_app({"en": nlp}), log_config=None, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield address_of(listener)
    finally:
        server.should_exit = True
        thread.join()
        listener.close()


@contextmanager
def browser(scheme, width, height):
    """Start a browser with a colour scheme and a size of its own."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome")
    options.set_capability("goog:loggingPrefs", {"performance": "ALL"})
    with tempfile.TemporaryDirectory() as profile:
        for flag in (*FLAGS, f"--window-size={width},{height}", f"--user-data-dir={profile}"):
            options.add_argument(flag)
        chrome = Chrome(options=options, service=ChromeService(shutil.which("chromedriver")))
        try:
            size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
            chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            features = [{"name": "prefers-color-scheme", "value": scheme}]
            chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
            yield chrome
        finally:
            chrome.quit()


if __name__ == "__main__":
    main()
