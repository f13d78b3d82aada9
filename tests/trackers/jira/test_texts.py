"""Texts of both editions as Markdown and back."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from md_adf import validate_adf

from sortie.http.comments import fitted
from sortie.trackers.jira import adf, adf_writer, wiki, wiki_writer
from sortie.trackers.jira.adf_nodes import INLINE
from sortie.trackers.jira.editions import Cloud, DataCenter
from tests.properties import examples

Node = dict[str, Any]


def text(words: str, *marks: str | Node) -> Node:
    """Return a text with marks."""
    told = [mark if isinstance(mark, dict) else {"type": mark} for mark in marks]
    return {"type": "text", "text": words, **({"marks": told} if told else {})}


def link(target: object) -> Node:
    """Return the mark of a link."""
    return {"type": "link", "attrs": {"href": target}}


def node(kind: str, *content: Node, **attrs: object) -> Node:
    """Return a node."""
    return {
        "type": kind,
        **({"attrs": attrs} if attrs else {}),
        **({"content": list(content)} if content else {}),
    }


def paragraph(*content: Node | str) -> Node:
    """Return a paragraph."""
    return node("paragraph", *(text(c) if isinstance(c, str) else c for c in content))


def doc(*content: Node) -> Node:
    """Return a document."""
    return {"version": 1, **node("doc", *content)}


def item(*content: Node) -> Node:
    """Return an item of a list."""
    return node("listItem", *content)


def row(kind: str, *cells: str) -> Node:
    """Return a row of a table."""
    return node("tableRow", *(node(kind, paragraph(cell)) for cell in cells))


DOCUMENTS = {
    "names need no backslashes": (
        doc(paragraph("snake_case in foo_bar.py, {{ 7*7 }}, 100 %, a|b, [x], C:\\temp")),
        "snake_case in foo_bar.py, {{ 7*7 }}, 100 %, a|b, [x], C:\\temp",
    ),
    "what would be markup is escaped": (
        doc(paragraph("__init__ *x* `y` [a](b) <b> ~~z~~ &amp; \\*")),
        "\\_\\_init\\_\\_ \\*x\\* \\`y\\` \\[a](b) \\<b> \\~\\~z\\~\\~ \\&amp; \\\\\\*",
    ),
    "what would begin a block is escaped": (
        doc(*(paragraph(words) for words in ("# a", "- b", "1. c", "> d", "---", "[ ] e", "```"))),
        "\\# a\n\n\\- b\n\n1\\. c\n\n\\> d\n\n\\---\n\n\\[ ] e\n\n\\`\\`\\`",
    ),
    "marks, also several": (
        doc(
            paragraph(
                text("a "),
                text(" b ", "strong"),
                text("c", "strong", "em"),
                text(" d", "code"),
                text(" "),
                text("e", "strike", "underline"),
            )
        ),
        "a  **b** **_c_**` d` ~~e~~",
    ),
    "marks that would not be taken for some are dropped": (
        doc(paragraph(text("a"), text("(b)", "strong"), text("c"), text("d", "em"))),
        "a(b)cd",
    ),
    "mention, emoji, date, status, card": (
        doc(
            paragraph(
                node("mention", id="5b1", text="@Ann B"),
                text(" "),
                node("mention", id="5b1"),
                text(" "),
                node("emoji", shortName=":smile:", text="😄"),
                node("date", timestamp="1700000000000"),
                text(" "),
                node("status", text="IN WORK", color="blue"),
                text(" "),
                node("inlineCard", url="https://example.org/a_b"),
            )
        ),
        "@Ann B @5b1 😄2023-11-14 IN WORK <https://example.org/a_b>",
    ),
    "lists in lists": (
        doc(
            node(
                "orderedList",
                item(paragraph("one"), node("bulletList", item(paragraph("in")))),
                item(paragraph("two"), node("codeBlock", text("x = 1\n\ny"), language="python")),
                order=9,
            )
        ),
        "9. one\n   - in\n10. two\n\n    ```python\n    x = 1\n\n    y\n    ```",
    ),
    "tasks and decisions": (
        doc(
            node(
                "taskList",
                node("taskItem", text("a"), state="DONE"),
                node("taskItem", text("b"), state="TODO"),
                node("taskList", node("taskItem", text("c"), state="TODO")),
            ),
            node("decisionList", node("decisionItem", text("we do"), state="DECIDED")),
        ),
        "- [x] a\n- [ ] b\n  - [ ] c\n\n- we do",
    ),
    "panel, expand, quote": (
        doc(
            node("panel", paragraph("careful"), panelType="warning"),
            node("expand", paragraph("more"), title="Log"),
            node("blockquote", paragraph("said"), paragraph("again")),
        ),
        "> careful\n\n**Log**\n\nmore\n\n> said\n>\n> again",
    ),
    "media": (
        doc(
            node("mediaSingle", node("media", type="file", id="7f", alt="shot.png")),
            node("mediaGroup", node("media", type="file", id="7f"), node("media", id="8a")),
            node("media", type="external", url="https://example.org/p.png"),
        ),
        "(picture shot.png)\n\n(picture 7f)\n\n(picture 8a)\n\n"
        "[picture media](https://example.org/p.png)",
    ),
    "a table": (
        doc(node("table", row("tableHeader", "a", "b|c"), row("tableCell", "1", "2"))),
        "| a | b\\|c |\n| --- | --- |\n| 1 | 2 |",
    ),
    "a table without a head, with spans and blocks": (
        doc(
            node(
                "table",
                node(
                    "tableRow",
                    node("tableCell", paragraph("a"), rowspan=2),
                    node("tableCell", paragraph("b"), paragraph("c"), colspan=2),
                ),
                node("tableRow", node("tableCell", node("codeBlock", text("x\ny")))),
            )
        ),
        "|  |  |  |\n| --- | --- | --- |\n| a | b<br>c |  |\n|  | x<br>y |  |",
    ),
    "a table in a table": (
        doc(
            node(
                "table",
                row("tableHeader", "h"),
                node("tableRow", node("tableCell", node("table", row("tableCell", "in", "ner")))),
            )
        ),
        "| h |\n| --- |\n| in<br>ner |",
    ),
    "links": (
        doc(
            paragraph(
                text("docs", link("https://example.org/(a) b")),
                text(" "),
                text("run", link("java\nscript:alert(1)")),
                text(" "),
                text("me", link("mailto:a@example.org")),
                text(" "),
                text("data", link("data:text/html,x")),
                text(" "),
                text("none", link(None)),
            )
        ),
        "[docs](https://example.org/%28a%29%20b) run [me](mailto:a@example.org) data none",
    ),
    "nodes and marks of tomorrow": (
        doc(
            node("holoDeck", paragraph("inside")),
            node("holoDeck", title="Seven"),
            paragraph(text("x ", "holographic"), node("holoInline", text="here")),
            node("extension", extensionKey="toc"),
            node("bodiedExtension", paragraph("body"), extensionKey="excerpt"),
            node("layoutSection", node("layoutColumn", paragraph("left"))),
        ),
        "inside\n\n(holoDeck: Seven)\n\nx here\n\n(extension: toc)\n\nbody\n\nleft",
    ),
    "hard breaks, and lines in texts": (
        doc(paragraph(text("a"), node("hardBreak"), text("  - b\n# c"))),
        "a\n\\- b\n\\# c",
    ),
    "control characters": (doc(paragraph("a\x00b\x1b[31mc\ufdd0")), "ab[31mc"),
    "a text": ("plain *text*\r\n", "plain *text*"),
    "nothing": (None, ""),
}


@pytest.mark.parametrize(("document", "markdown"), DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_document_as_markdown(document: object, markdown: str) -> None:
    """Nothing that a reader sees as words is lost, and nothing hostile becomes more than text."""
    assert adf.to_markdown(document) == markdown


WORD = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=9)
WORDS = st.lists(WORD, min_size=1, max_size=5).map(" ".join)
PLAIN = WORDS.map(text)
BOLD = st.text("abc", min_size=1).map(lambda t: text(t, "strong"))
LINE = st.lists(PLAIN | BOLD, min_size=1, max_size=3).map(
    lambda parts: node("paragraph", *[p for each in parts for p in (each, text(" "))][:-1])
)
CODE = st.tuples(WORDS, st.sampled_from(["python", "sh"])).map(
    lambda it: node("codeBlock", text(it[0]), language=it[1])
)
BLOCK = (
    LINE
    | CODE
    | LINE.map(lambda line: {**line, "type": "heading", "attrs": {"level": 2}})
    | st.lists(LINE, min_size=1, max_size=3).map(
        lambda lines: node("bulletList", *(item(line) for line in lines))
    )
    | st.lists(LINE, min_size=1, max_size=2).map(lambda lines: node("blockquote", *lines))
)


def _separated(blocks: list[Node]) -> Node:
    """Return a document in which no two lists or quotes follow each other: they would be one."""
    kept: list[Node] = []
    for block in blocks:
        if kept and kept[-1]["type"] == block["type"] and block["type"] != "paragraph":
            kept.append(paragraph("between"))
        kept.append(block)
    return doc(*kept)


def _joined(found: Node) -> Node:
    """Return a node with neighbouring texts of the same marks as one."""
    content: list[Node] = []
    for child in map(_joined, found.get("content", [])):
        last = content[-1] if content else {}
        if child.get("type") == last.get("type") == "text" and child.get("marks") == last.get(
            "marks"
        ):
            content[-1] = {**last, "text": last["text"] + child["text"]}
        else:
            content.append(child)
    return {**found, "content": content} if "content" in found else found


@settings(deadline=None, max_examples=examples(150, 300))
@example(doc(paragraph("*0 ", text("a", "strong"), " 0*")))
@example(doc(paragraph("*0", node("hardBreak"), "0*")))
@given(st.lists(BLOCK, min_size=1, max_size=4).map(_separated))
def test_a_document_comes_back_as_it_was(document: Node) -> None:
    """ADF to Markdown to ADF: the same document, whatever its words look like in Markdown."""
    there_and_back = adf_writer.from_markdown(adf.to_markdown(document))

    assert _joined(there_and_back) == _joined(document)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["type", "content", "attrs", "marks", "text", "level", "order", "colspan"]
            ),
            inner
            | st.sampled_from(sorted(INLINE))
            | st.sampled_from(["table", "tableRow", "tableCell", "taskList", "listItem", "panel"])
            | st.sampled_from(
                ["orderedList", "bulletList", "heading", "media", "codeBlock", "expand"]
            ),
            max_size=5,
        )
    ),
    max_leaves=30,
)


@settings(deadline=None, max_examples=150)
@given(JSON)
def test_no_document_is_too_strange(document: object) -> None:
    """Whatever is sent in its place, a description is a text without control characters."""
    told = adf.to_markdown(document)

    assert "\x00" not in told
    assert "'type'" not in told


def test_a_deep_document_keeps_its_words() -> None:
    """Thousands of levels end in their words, and not in an error."""
    document = paragraph("deep")
    for _ in range(5000):
        document = node("blockquote", document)

    assert adf.to_markdown(doc(document)).endswith("deep")


MARKDOWN = (
    "one\n\n  two\n",
    "first\n\n- {{ 7*7 }}: 'x'",
    "a\nb\n```\nx  \ny\n```\nz",
    "> q\n> r\n\n1. a\n   - b\n   - c\n2. d",
    "[x](javascript:alert(1)) **b** _c_",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "- [ ] a\n- [x] b",
    "<div>\nraw\n</div>",
    "# h\ntext `c`",
    "**a *b* c**",
    "[~ann] !x.png! {color:red}x{color} {code}y{code} \\\\ a-b -c-",
    "h1. x\n# y\n\nbq. z\n\n---",
    "",
    "```\n{noformat}\n```",
    "* * *\n\n+ a\n\n\n\n+ b",
    "| not a table",
    "a | b\nc",
    "![alt](https://example.org/p.png) <https://example.org>",
)


@pytest.mark.parametrize("markdown", MARKDOWN)
def test_what_is_written_is_sound_and_means_the_same_again(markdown: str) -> None:
    """Both editions take it, and what is read from what was written stays as it is."""
    document = adf_writer.from_markdown(markdown)

    assert validate_adf(document).valid
    for edition in (Cloud(), DataCenter()):
        once = edition.read_text(edition.write_text(markdown))
        assert edition.read_text(edition.write_text(once)) == once


@settings(deadline=None, max_examples=examples(100, 200))
@example("- #")
@given(st.text(st.sampled_from("ab *_-+^~{}[]|!#>`\\\n.1h?"), max_size=40))
def test_any_markdown_can_be_written(markdown: str) -> None:
    """No text of an agent's makes a comment fail, and its words stay."""
    document = adf.to_markdown(adf_writer.from_markdown(markdown))
    markup = wiki.to_markdown(wiki_writer.from_markdown(markdown))

    if "```" not in markdown and "~~~" not in markdown:  # whose first line is no text
        assert letters(document) == letters(markup) == letters(markdown)


def letters(markdown: str) -> str:
    """Return the letters of a text."""
    return "".join(character for character in markdown if character.isalpha())


def test_agents_call_nobody_and_run_nothing_in_wiki_markup() -> None:
    """People, pictures, macros and links of an agent's text are text."""
    markup = wiki_writer.from_markdown("[~ann] {html}x{html} !http://e.org/x.png! [a|javascript:x]")

    assert markup == (
        "\\[\\~ann] \\{html\\}x\\{html\\} \\!http://e.org/x.png! \\[a\\|javascript:x]"
    )


HEADED_ITEMS = {
    "- # a": "* *a*",
    "- ## a **b** _c_": "* *a b _c_*",
    "1. #\n   - # b\n   - c": "#\n#* *b*\n#* c",
    "- a\n\n  # b": "* a\n*b*",
    "- > # a": "* {quote}\nh1. a\n{quote}",
}


@pytest.mark.parametrize(("markdown", "markup"), HEADED_ITEMS.items())
def test_a_heading_in_an_item_is_bold_in_wiki_markup(markdown: str, markup: str) -> None:
    """Behind the marker of an item Jira shows ``h1.`` as it is written."""
    assert wiki_writer.from_markdown(markdown) == markup


WIKI = {
    "blocks": (
        "h2. Title\nbq. said\n----\n# one\n## in\n* two\n\ntext\nmore",
        "## Title\n\n> said\n\n---\n\n1. one\n   1. in\n- two\n\ntext\nmore",
    ),
    "marks": (
        "*b* _e_ -s- +u+ ??c?? {{m_x}} a_b_c 7*7 {color:red}r{color}",
        "**b** _e_ ~~s~~ u _c_ `m_x` a_b_c 7*7 r",
    ),
    "links": (
        "[docs|https://e.org/a_b] [https://e.org] [~ann] [^f.log] [x|javascript:y] !p.png|thumb!",
        "[docs](https://e.org/a_b) <https://e.org> @ann (attachment f.log) [x|javascript:y] "
        "(picture p.png)",
    ),
    "code": (
        "{code:python|title=x}\na = *b*\n{code}\n{noformat}\n_c_\n{noformat}\n{code}\nd\n{code}",
        "```python\na = *b*\n```\n\n```\n_c_\n```\n\n```\nd\n```",
    ),
    "a table": (
        "||a||b||\n|1|[x|https://e.org]|",
        "| a | b |\n| --- | --- |\n| 1 | [x](https://e.org) |",
    ),
    "quotes and panels": (
        "{quote}\na\n\nb\n{quote}\n{panel:title=T}\nc\n{panel}",
        "> a\n>\n> b\n\n> **T**\n>\n> c",
    ),
    "escapes": ("\\*a\\* \\{code\\} x\\\\y \\[z]", "\\*a\\* {code} x\ny [z]"),
    "unknown and unclosed macros": ("{toc} {code} x", "{toc} {code} x"),
    "not a text": (7, ""),
}


@pytest.mark.parametrize(("markup", "markdown"), WIKI.values(), ids=WIKI)
def test_wiki_markup_as_markdown(markup: object, markdown: str) -> None:
    """What Jira shows as lists, tables, code and marks is so in Markdown."""
    assert wiki.to_markdown(markup) == markdown


LONG = ("*a ", "[", "{", "{{a ", "|a", "{code}", "{quote}", "_a_ ", "\\", "!a", "[a|b] ", "<a ")


@pytest.mark.parametrize("piece", LONG)
def test_long_hostile_texts_take_no_time(piece: str) -> None:
    """Twice the text takes about twice the time: no pattern looks at it again and again."""
    for convert in (wiki.to_markdown, lambda t: adf.to_markdown(doc(paragraph(t)))):
        began = time.process_time()
        convert(piece * (30_000 // len(piece)))
        assert time.process_time() - began < 5  # a quadratic one takes minutes


@pytest.mark.parametrize("edition", [Cloud(), DataCenter()], ids=lambda edition: edition.name)
def test_a_long_comment_is_cut_and_says_so(edition: Cloud | DataCenter) -> None:
    """What is sent is no longer than Jira takes; code that was cut is closed."""
    import json

    def size(told: object) -> int:
        return len(told if isinstance(told, str) else json.dumps(told))

    short = fitted("fine", 32_767, edition.write_text, size)
    cut = fitted("```\n" + "line of ö\n" * 9000, 32_767, edition.write_text, size)

    assert edition.read_text(short) == "fine"
    assert size(cut) <= 32_767
    assert "shortened" in edition.read_text(cut).split("```")[-1]


def test_names_in_code_stay_as_they_are() -> None:
    """A decorator in a comment has no further sign in either edition: code calls nobody."""
    markdown = "```py\n@property\n```"

    document, wiki = adf_writer.from_markdown(markdown), wiki_writer.from_markdown(markdown)

    assert document["content"][0]["content"] == [{"type": "text", "text": "@property"}]
    assert wiki == "{code:py}\n@property\n{code}"
