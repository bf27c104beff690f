"""The page: self-contained, escaped, accessible, and its colours contrast in light and dark."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser

import pytest
from goldens import TEMPLATES
from pygments.styles import get_style_by_name
from pygments.token import Whitespace
from samples import SAMPLES, copied, invalid

from grader.render.code import DARK, HIGHLIGHT_AT_MOST, LIGHT, LINES_AT_MOST, code_lines
from grader.render.html import prose, render_html
from grader.render.pictures import check_scene
from grader.render.svg import drawing_svg, links_svg
from grader.report import Place

CSS = (TEMPLATES / "partials" / "report.css.j2").read_text(encoding="utf-8")


class Page(HTMLParser):
    """The elements of a page with their attributes, and text outside of style."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def named(self, *tags: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag in tags]


PAGES = {name: render_html(make(), templates=TEMPLATES) for name, make in SAMPLES.items()}


@pytest.mark.parametrize("name", PAGES)
def test_self_contained_without_script(name: str) -> None:
    page = Page(PAGES[name])
    assert not page.named("script", "link", "img", "iframe", "object", "base", "form", "i", "b")
    for _, attributes in page.elements:
        assert not any(key.startswith("on") or key in ("src", "href") for key in attributes)
    assert "url(" not in PAGES[name]
    assert "@import" not in PAGES[name]


@pytest.mark.parametrize("name", PAGES)
def test_accessible(name: str) -> None:
    page = Page(PAGES[name])
    assert page.named("html") == [{"lang": "en"}]
    assert len(page.named("title")) >= 1
    headings = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert set(headings[1:]) <= {2}
    assert all(cell.get("scope") in ("col", "row") for cell in page.named("th"))
    assert len(page.named("main")) == 1


@pytest.mark.parametrize("name", PAGES)
def test_ids_are_unique_and_drawings_are_named(name: str) -> None:
    page = Page(PAGES[name])
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    for svg in page.named("svg"):
        assert svg["role"] == "img"
        assert set(str(svg["aria-labelledby"]).split()) <= set(ids)


def test_hostile_text_is_shown_not_obeyed() -> None:
    page = PAGES["hostile"]
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f]", page)


def test_contents() -> None:
    page = PAGES["copied"]
    for words in (
        "Not passed: 4 of 7 checks, 3 of 3 visible cases, 1 of 3 hidden cases.",
        "<code>split_heads.py:6:9</code> · copied 512 KiB",
        "<h2>Known mistake: made contiguous</h2>",
        "Drop <code>contiguous()</code>; batched matmul takes any strides.",
        "copied 320 bytes inside the operation",
        "<summary>Reproduce it without the grader</summary>",
        "<dt>Problem revision</dt><dd><code>3f1c9a70b2de</code></dd>",
        "The picture is the one under <code>no_copy</code>.",
        "≠ differs",
    ):
        assert words in page
    assert page.count("Strides, in elements</caption>") == 1


def test_an_error_says_cause_fault_and_next() -> None:
    page = PAGES["invalid"]
    assert "<dt>Likely cause</dt><dd>a bracket opened on this line has no partner</dd>" in page
    assert "<dt>Fault</dt><dd>the submitted file</dd>" in page
    assert '<p class="next"><strong>Next:</strong> close the bracket and save</p>' in page


def test_a_given_next_step_wins() -> None:
    page = render_html(invalid(), templates=TEMPLATES, next_step="run `mhaquiz`")
    assert "<strong>Next:</strong> run <code>mhaquiz</code></p>" in page


def test_the_installed_templates_are_found() -> None:
    assert render_html(copied()) == PAGES["copied"]


def test_prose_escapes_before_it_sets_code() -> None:
    assert prose("a `<b>` & c") == "a <code>&lt;b&gt;</code> &amp; c"
    assert prose("one ` alone") == "one ` alone"


# --- code ---


def test_the_marked_span_is_exact() -> None:
    (line,) = code_lines("q = q.contiguous()\n", (Place(1, 5, 1, 19),))
    assert line.marked
    assert re.sub("<(?!/?mark)[^>]*>", "", line.html) == "q = <mark>q.contiguous()</mark>"


def test_a_span_of_several_lines_is_marked_on_each() -> None:
    lines = code_lines("a = f(\n    1,\n    2)\nb\n", (Place(1, 5, 3, 7),))
    assert [line.marked for line in lines] == [True, True, True, False]
    assert re.sub("<(?!/?mark)[^>]*>", "", lines[2].html) == "<mark>    2)</mark>"


def test_around_keeps_only_near_lines() -> None:
    lines = code_lines("\n".join("abcdefghij"), (Place(5, 1, 5, 2),), around=1)
    assert [line.number for line in lines] == [4, 5, 6]


def test_huge_sources_are_cut_and_not_highlighted() -> None:
    assert len(code_lines("x\n" * 1000, ())) == LINES_AT_MOST
    (line,) = code_lines("x = '" + "a" * HIGHLIGHT_AT_MOST, ())
    assert "<span" not in line.html


def test_line_numbers_agree_with_python() -> None:
    source = 'a = """one\ntwo\x0c"""\nb = 3\n'
    assert [re.sub("<[^>]*>", "", line.html) for line in code_lines(source, ())] == [
        "a = &quot;&quot;&quot;one",
        "two\ufffd&quot;&quot;&quot;",
        "b = 3",
    ]


# --- drawings ---


def drawings() -> list[str]:
    made = []
    for make in SAMPLES.values():
        for check in make().checks:
            scene = check_scene(check)
            made += [drawing_svg(drawing, "d") for drawing in scene.drawings]
            made += [links_svg(links, "l") for links in scene.links]
    return made


@pytest.mark.parametrize("svg", drawings())
def test_drawings_are_well_formed_named_and_stay_inside(svg: str) -> None:
    root = ET.fromstring(svg)
    space = "{http://www.w3.org/2000/svg}"
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert root.findtext(f"{space}title")
    assert root.findtext(f"{space}desc")
    for rect in root.iter(f"{space}rect"):
        assert min(float(rect.attrib["width"]), float(rect.attrib["height"])) >= 8
        assert 0 <= float(rect.attrib["x"]) <= width - float(rect.attrib["width"])
        assert 0 <= float(rect.attrib["y"]) <= height - float(rect.attrib["height"])


# --- colours ---


def luminance(colour: str) -> float:
    parts = [int(colour[n : n + 2], 16) / 255 for n in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def scheme(number: int) -> dict[str, str]:
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", CSS.split(":root {")[number].split("}")[0]))


@pytest.mark.parametrize("number", [1, 2], ids=["light", "dark"])
def test_words_contrast_with_their_ground(number: int) -> None:
    colours = scheme(number)
    for ground in ("bg", "panel", "row"):
        for ink in ("fg", "soft", "bad"):
            assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for ink in ("good", "warn"):
        assert contrast(colours[ink], colours["bg"]) >= 4.5, ink
    assert contrast(colours["fg"], colours["mark"]) >= 4.5
    for form in ("mq-focus", "mq-line", "mq-bad"):
        assert contrast(colours[form], colours["bg"]) >= 3, form


@pytest.mark.parametrize(("style", "number"), [(LIGHT, 1), (DARK, 2)], ids=["light", "dark"])
def test_code_contrasts_with_its_ground(style: str, number: int) -> None:
    colours = scheme(number)
    for token, look in get_style_by_name(style):
        if look["color"] and token is not Whitespace:
            for ground in ("panel", "row", "mark"):
                assert contrast(f"#{look['color']}", colours[ground]) >= 4.5, (token, ground, look["color"])
