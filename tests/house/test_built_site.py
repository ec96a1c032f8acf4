"""The site that `make docs` builds: nothing of its sources is lost, nothing of Markdown is left over, links and
pictures lead somewhere; and, in a browser without a network, pages fit, and the search finds first what users seek."""

from __future__ import annotations

import html
import inspect
import json
import re
import shutil
import subprocess
from collections import Counter
from functools import cache
from html.parser import HTMLParser

import pytest
from places import DOCS, ROOT

import graphreg as gr

SITE = ROOT / "out" / "site"
SOURCES = (".md", ".css", ".png", ".py", ".js")  # what the site is built of: pages, their look, docstrings, hooks
BROWSER = next((found for found in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if found), None)
WITHOUT_END = ("area", "base", "br", "col", "hr", "img", "input", "link", "meta", "path", "source", "wbr")  # tags


def fresh():
    """Whether the site was built after its sources were written."""
    folders = (DOCS, ROOT / "website", ROOT / "examples", ROOT / "graphreg")
    written = [each for folder in folders for each in folder.rglob("*") if each.suffix in SOURCES]
    sources = (ROOT / "mkdocs.yml", *written)
    built = SITE / "sitemap.xml"
    return built.exists() and built.stat().st_mtime > max(path.stat().st_mtime for path in sources)


pytestmark = [pytest.mark.whole, pytest.mark.skipif(not fresh(), reason="make docs builds the site")]
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no browser is installed")


class Page(HTMLParser):
    """The text of a page outside of code, its code in sentences and tables, its links, pictures and anchors."""

    def __init__(self, path):
        super().__init__()
        self.path, self.open = path, []
        self.text, self.code, self.listings, self.links, self.pictures, self.anchors = [], [], [], [], [], {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        known = dict(attrs)
        self.anchors |= {known[name] for name in ("id", "name") if known.get(name)}
        self.links += [known["href"]] if tag == "a" and known.get("href") else []
        self.pictures += [known["src"]] if tag == "img" else []
        if tag not in WITHOUT_END:
            self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.open):
            kind = self.listings if "pre" in self.open else self.code if "code" in self.open else self.text
            kind.append(data)


@cache
def pages():
    return {path.resolve(): Page(path) for path in sorted(SITE.rglob("*.html")) if path.name != "404.html"}


def where(page):
    return page.path.relative_to(SITE)


# ---- Markdown that is left over --------------------------------------------------------------------------------------
LEFT = {
    "a fence, or code that was not closed": r"`",
    "bold": r"\*\*",
    "a heading": r"(?:^|\s)#{2,} \w",
    "a link": r"\]\(|\]\[\w",
    "an escaped character": r"\\[|_*<>\[\]]",
    "a formula": r"\$\$|\\\(|\\\[|\\[A-Za-z]{2,}",
    "attributes": r"\{:|\{ ?[.#][\w-]+ ?\}",
    "a row of a table": r"^\s*\|.*\|\s*$",
    "a list in a paragraph": r"\n[-*] \w",
    "reStructuredText": r":(?:class|func|meth|ref|py):|\.\. \w+::",
    "an HTML tag": r"</?(?:b|i|em|code|sub|sup|details|summary|br)\b(?!, )[^>]*>",  # <b, t> is a product
    "a comment": r"<!--",
}


@pytest.mark.parametrize("what", LEFT)
def test_no_markdown_is_left_over(what):
    found = [
        f"{where(page)}: {text.strip()[:100]}"
        for page in pages().values()
        for text in page.text
        if re.search(LEFT[what], text, re.M) and not (what == "a row of a table" and "reference" in str(where(page)))
    ]
    assert not found, "\n".join(found)


def test_stars_of_formulas_are_no_italics():
    """f*(b) and g*(b) in one paragraph are conjugates; emphasis begins where a word does."""
    found = [
        f"{where(page)}: {taken}"
        for page in pages().values()
        for taken in re.findall(r"\w<(?:em|strong)>.{,40}", page.path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_bars_in_code_have_no_backslash():
    found = [f"{where(page)}: {code}" for page in pages().values() for code in page.code if r"\|" in code]
    assert not found, "\n".join(found)


# ---- what is lost ----------------------------------------------------------------------------------------------------
DROPPED = (
    re.compile(  # of a source: comments, formulas, where links lead, tags, fences, rules of tables, numbers of lists
        r"<!--.*?-->|\$\$.*?\$\$|(?<![\w$])\$(?:[^$\n]|\n(?!\n))+\$(?!\w)|(?<=\])\([^)\s]*(?:\([^)]*\))?\)|<[^>\n]+>"
        r"|^```.*$|^\|[-| ]+\|$|^ *\d+\. ",
        re.M | re.S,
    )
)
PICTURE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
CODE = re.compile(r"^```[^\n]*\n.*?^```$|`[^`\n]+`", re.M | re.S)


def source_words(text):
    """The words of a page of Markdown, and how often each occurs; code is taken as it stands."""
    code = " ".join(re.sub(r"^```[^\n]*$", "", found, flags=re.M) for found in CODE.findall(text))
    prose = DROPPED.sub(" ", html.unescape(CODE.sub(" ", PICTURE.sub(" ", text))))
    return Counter(re.findall(r"\w+", f"{code} {prose}".replace("_", " ")))


def shown_words(page):
    return Counter(re.findall(r"\w+", " ".join([*page.text, *page.code, *page.listings]).replace("_", " ")))


@pytest.mark.parametrize("source", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_every_word_of_a_page_is_shown(source):
    page = pages()[(SITE / source.relative_to(DOCS)).with_suffix(".html").resolve()]
    lost = source_words(source.read_text(encoding="utf-8")) - shown_words(page)
    assert not lost, f"{where(page)} does not show {dict(lost)}"


def about(each):
    """The paragraphs of a docstring before its sections."""
    return re.split(r"\n\w[\w ]+\n-{3,}\n", inspect.getdoc(each))[0]


@pytest.mark.parametrize("kind", ["losses", "penalties", "methods"])
def test_what_stands_in_braces_and_code_is_shown_in_the_reference(kind):
    page = pages()[(SITE / "reference" / f"{kind}.html").resolve()]
    text = re.sub(r"\s+", " ", "".join([*page.text, *page.code, *page.listings]))
    base = gr.catalogue.BASES[{"losses": "loss", "penalties": "penalty", "methods": "method"}[kind]]
    classes = [each for name in gr.catalogue.__all__ if issubclass(each := getattr(gr, name), base)]
    pieces = {piece for each in classes for piece in re.findall(r"``(.+?)``|(\{[^{}]+\})", about(each))}
    said = {re.sub(r"\s+", " ", code or braces) for code, braces in pieces}
    assert len(said) > 5
    assert not {each for each in said if each not in text}


# ---- links and pictures ----------------------------------------------------------------------------------------------
def test_links_lead_to_pages_and_anchors():
    broken = []
    for place, page in pages().items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            path, _, anchor = link.partition("#")
            target = (place.parent / path.split("?")[0]).resolve() if path else place
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (target in pages() and html.unescape(anchor) not in pages()[target].anchors):
                broken.append(f"{where(page)}: {link}")
    assert not broken, "\n".join(broken)


def test_no_two_pages_have_one_title():
    """Tabs and results of a search tell pages apart by it."""
    titles = Counter(re.search(r"<title>(.*?)</title>", path.read_text(encoding="utf-8"))[1] for path in pages())
    assert not [title for title, often in titles.items() if often > 1]


def test_pictures_are_there():
    for place, page in pages().items():
        missing = [
            each for each in page.pictures if not each.startswith("data:") and not (place.parent / each).exists()
        ]
        assert not missing, f"{where(page)} shows {missing}"


# ---- in a browser ----------------------------------------------------------------------------------------------------
def opened(address, *flags):
    """The page as a browser has it once its scripts have run, without a network."""
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND", *flags]
    done = subprocess.run(
        [BROWSER, *options, "--dump-dom", address], capture_output=True, text=True, timeout=300, check=True
    )
    return done.stdout


# What users look for, and the page that is to be the first.
SOUGHT = {
    "missing values": "fit",
    "nan": "fit",
    "standard errors": "clusters-and-tests",
    "confidence intervals": "clusters-and-tests",
    "p-value": "clusters-and-tests",
    "trend filter": "model",
    "logistic regression": "model",
    "weights": "model",
    "poisson": "model",
    "standardise": "model",
    "cross-validation": "strengths",
    "held-out": "strengths",
    "convergence": "statuses",
    "install": "install",
}


@needs_browser
@pytest.mark.parametrize("words", SOUGHT)
def test_the_search_finds_first_what_users_look_for(words):
    """Opened from the disk; the address says what is sought."""
    page = opened(f"{(SITE / 'index.html').as_uri()}?q={words.replace(' ', '+')}", "--virtual-time-budget=20000")
    found = re.findall(r'<a href="([^"]+)" class="md-search-result__link"', page)
    assert found, "nothing was found, or the search did not begin"
    assert found[0].split("#")[0].endswith(f"/{SOUGHT[words]}.html"), found[:5]


MEASURE = """
const out = [];
const look = async (page, width) => {
  const frame = document.createElement("iframe");
  frame.style = `width: ${width}px; height: 900px; border: 0`;
  frame.src = page;
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; });
  const root = frame.contentDocument.documentElement;
  if (root.scrollWidth > root.clientWidth) out.push(`${page} at ${width} is ${root.scrollWidth} wide`);
  if (width > 1000)
    for (const code of root.querySelectorAll(".md-content pre > code"))
      if (code.scrollWidth > code.clientWidth) out.push(`${page} cuts ${code.textContent.slice(0, 60)}`);
  for (const picture of root.querySelectorAll(".md-content img")) {
    if (!picture.naturalWidth) out.push(`${page} does not show ${picture.src}`);
    if (picture.height < Math.min(picture.naturalHeight, 140)) out.push(`${page} at ${width}: tiny ${picture.src}`);
  }
  for (const heading of root.querySelectorAll(".md-content :is(h1, h2, h3)")) {
    const words = frame.contentDocument.createRange(), link = heading.querySelector(".headerlink");
    words.setStart(heading, 0);
    if (link) words.setEndBefore(link); else words.setEndAfter(heading.lastChild);
    const below = heading.getBoundingClientRect().bottom - words.getBoundingClientRect().bottom;
    if (below > 20) out.push(`${page} at ${width} has an empty line below ${heading.textContent}`);
  }
  frame.remove();
};
(async () => {
  for (const page of PAGES) for (const width of [390, 1280]) await look(page, width);
  document.getElementById("out").textContent = JSON.stringify(out);
})();
"""


def for_users():
    """The pages of the first level of the navigation."""
    return re.findall(r"^  - [\w ]+: ([\w-]+)\.md$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)


@needs_browser
def test_pages_fit_a_phone_and_a_screen(tmp_path):
    everything = [path.as_uri() for path in pages()]
    names = f"const PAGES = {json.dumps(everything)};"
    frame = tmp_path / "frame.html"
    frame.write_text(f'<body><pre id="out">not done</pre><script>{names}{MEASURE}</script></body>', encoding="utf-8")
    flags = ("--allow-file-access-from-files", "--disable-web-security", "--virtual-time-budget=600000")
    measured = re.search(r'<pre id="out">(.*?)</pre>', opened(frame.as_uri(), *flags), re.S)
    assert json.loads(html.unescape(measured[1])) == []


# ---- how long users read ---------------------------------------------------------------------------------------------
def test_pages_for_users_are_read_in_ten_minutes():
    names = for_users()
    assert len(names) == 12  # home, ten pages, and when not to use it
    for name in names:
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```.*?^```", text, re.M | re.S)
        words, lines = len(text.split()) - sum(len(b.split()) for b in blocks), sum(b.count("\n") - 1 for b in blocks)
        minutes = words / 200 + lines / 30  # code and what it prints is read by lines
        assert minutes <= 10, f"{name} takes {minutes:.1f} minutes: {words} words and {lines} lines of code"
        if name not in ("index", "when-not"):
            assert "## Where to go on\n" in text, f"{name} ends without a way to go on"
            assert re.search(r"^```(python|console)\n", text, re.M), f"{name} has no snippet"
