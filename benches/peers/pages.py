"""Pages that break extractors, with the text that a reader wants of each: `PAGES` is a list of `Page`."""

import html
from collections import namedtuple

from words import ARABIC, CHINESE, CODE, ENGLISH, GERMAN, HEBREW, JAPANESE, RUSSIAN

# `wanted` is without the headline, which is metadata for one extractor and text for another.
Page = namedtuple("Page", "name body content_type title wanted")

NAV = (
    "<nav class=main-menu><ul><li><a href=/>Home</a></li><li><a href=/politics>Politics</a></li><li><a href=/sport>Sport"
    "</a></li><li><a href=/weather>Weather forecast</a></li><li><a href=/jobs>Vacancies</a></li><li><a href=/login>Sign in"
    "</a></li></ul><form action=/search><input name=q placeholder=Search><button>Go</button></form></nav>"
)
FOOTER = (
    "<footer><p>Copyright 2026 Example Media Group. All rights reserved.</p><ul><li><a href=/imprint>Imprint</a></li><li>"
    "<a href=/privacy>Privacy policy</a></li><li><a href=/terms>Terms of use</a></li><li><a href=/contact>Contact us</a>"
    "</li></ul><p>Subscribe to our newsletter and never miss an update.</p></footer>"
)
RELATED = (
    "<aside class=related><h3>Read also</h3><ul><li><a href=/a1>Seven lighthouses worth a detour</a></li><li><a href=/a2>"
    "Ferry tickets become more expensive</a></li><li><a href=/a3>Quiz: which knot is this?</a></li></ul></aside>"
)
SHARE = "<div class=share><a href=#>Share on Facebook</a> <a href=#>Tweet</a> <a href=#>Pin it</a> <a href=#>Print</a></div>"
COOKIES = (
    "<div id=consent class=cookie-banner role=dialog><h2>We value your privacy</h2><p>We and our 842 partners store and access "
    "information on a device, such as cookies, and process personal data for personalised advertising, audience research "
    "and development of services. You may click to consent, or access more detailed information and change your "
    "preferences before consenting.</p><button>Accept all</button><button>Reject</button><a href=/options>Manage options"
    "</a></div>"
)


def paragraphs(texts):
    return "".join(f"<p>{html.escape(text)}</p>\n" for text in texts)


def document(title, body, head="", attributes='lang="en"'):
    return f"<!DOCTYPE html><html {attributes}><head><title>{html.escape(title)}</title>{head}</head><body>{body}</body></html>"


def page(name, title, body, wanted, encoding="utf-8", content_type=None):
    wanted = " \n".join(wanted)
    body = body if isinstance(body, bytes) else body.encode(encoding)
    return Page(name, body, content_type or f"text/html; charset={encoding}", title, wanted)


def table(rows, head=None, start="<table>"):
    line = lambda cells, tag: "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"
    return start + (line(head, "th") if head else "") + "".join(line(row, "td") for row in rows) + "</table>"


def cells(rows):
    return [" ".join(row) for row in rows]


def news():
    title = "The winter in which the harbour froze"
    texts = ENGLISH[0:3] + ENGLISH[6:8]
    body = (
        f"{COOKIES}<header>{NAV}</header><main><article><h1>{title}</h1>{SHARE}{paragraphs(texts[:2])}"
        f"<div class=ad>Advertisement</div>{RELATED}<h2>What the engineers found</h2>{paragraphs(texts[2:])}{SHARE}</article>"
        "<section id=comments class=comments><h2>3 comments</h2><div class=comment><p>First! Great read, thanks.</p></div>"
        "<div class=comment><p>My grandfather told me about that bakery.</p></div></section></main>" + FOOTER
    )
    return page("news", title, document(title + " | Daily Example", body), texts[:2] + ["What the engineers found"] + texts[2:])


def documentation():
    title = "Configuration of the relay"
    sidebar = "".join(f"<li><a href=/docs/{n}>Chapter {n}: {word}</a></li>" for n, word in enumerate(
        "Overview Installation Quickstart Clusters Upgrades Metrics Troubleshooting Glossary Plugins Migration".split()))
    options = [["listen", "127.0.0.1:7000", "Address that accepts connections"],
               ["queue.depth", "512", "Messages held before senders wait"],
               ["retry.backoff", "250ms", "Pause that doubles after each failure"],
               ["tls.certificate", "none", "Path of a PEM file; without it nothing is encrypted"]]
    intro = "The relay reads one file at its start. A second file may override single keys, and variables override both."
    note = "Changes take effect after a restart, except those of the log, which apply at once."
    terms = [("strict", "Unknown keys are errors."), ("lenient", "Unknown keys are reported once and ignored.")]
    body = (
        f"<header><a href=/>Relay</a> <a href=/blog>Blog</a> <a href=/community>Community</a></header><div class=layout>"
        f"<nav class=sidebar><ul>{sidebar}</ul></nav><div class=toc><b>On this page</b><a href=#o>Options</a><a href=#m>Modes</a></div>"
        f"<main><h1>{title}</h1><p>{intro}</p><pre><code class=language-sh>{html.escape(CODE[2])}</code></pre>"
        f"<h2 id=o>Options</h2>{table(options, ['Key', 'Default', 'Meaning'])}<h2 id=m>Modes</h2><dl>"
        + "".join(f"<dt><code>{term}</code></dt><dd>{text}</dd>" for term, text in terms)
        + f"</dl><blockquote><p>{note}</p></blockquote></main></div><div class=pager><a href=/docs/2>Previous: Quickstart</a>"
        "<a href=/docs/4>Next: Upgrades</a></div>" + FOOTER
    )
    wanted = [intro, CODE[2], "Options Key Default Meaning", *cells(options), "Modes", *(" ".join(t) for t in terms), note]
    return page("documentation", title, document(title + " - Relay", body), wanted)


def tutorial():
    title = "Three small programs"
    steps = ["Sum the even numbers first.", "Then find the middle of a list.", "Finally keep a copy of the results elsewhere."]
    parts = "".join(f"<h2>Step {n + 1}</h2><p>{step}</p><pre>{html.escape(code)}</pre>" for n, (step, code) in enumerate(zip(steps, CODE)))
    wanted = [f"Step {n + 1} {step} {code}" for n, (step, code) in enumerate(zip(steps, CODE))]
    return page("tutorial with code", title, document(title, f"{NAV}<div class=post><h1>{title}</h1>{parts}</div>{FOOTER}"), wanted)


def only_a_table():
    title = "Heights of passes"
    rows = [[f"Pass {chr(65 + n % 26)}{n}", str(900 + 37 * n % 1800), ["gravel", "asphalt", "snow"][n % 3], f"{n % 12 + 1} months"]
            for n in range(60)]
    head = ["Name", "Metres", "Surface", "Open"]
    body = f"{NAV}<h1>{title}</h1>{table(rows, head)}{FOOTER}"
    return page("only a table", title, document(title, body), [" ".join(head), *cells(rows)])


def layout_of_1999():
    title = "Bees in spring"
    texts = ENGLISH[3:6]
    menu = "<br>".join(f'<a href="p{n}.htm"><font size=1>{word}</font></a>' for n, word in enumerate(
        "Welcome Guestbook Webring Links Pictures Awards".split()))
    middle = "<br><br>".join(f'<font face="Verdana" size=2>{html.escape(text)}</font>' for text in texts)
    body = (
        f"<center><table width=760 border=0><tr><td colspan=2 bgcolor=#003366><font color=white>You are visitor 0012345</font></td>"
        f"</tr><tr><td width=120 valign=top>{menu}</td><td><table cellpadding=4><tr><td><h1>{title}</h1>{middle}</td></tr></table>"
        "</td></tr><tr><td colspan=2><font size=1>Best viewed with 800x600. Last update by the webmaster.</font></td></tr>"
        "</table></center>"
    )
    return page("layout with tables", title, f"<HTML><HEAD><TITLE>{title}</TITLE></HEAD><BODY>{body}</BODY></HTML>", texts)


def foreign(name, title, texts, attributes, menu, encoding, declared, content_type):
    items = "".join(f"<li><a href=/{n}>{word}</a></li>" for n, word in enumerate(menu))
    body = f"<header><nav><ul>{items}</ul></nav></header><article><h1>{title}</h1>{paragraphs(texts)}</article><footer>{menu[-1]}</footer>"
    return page(name, title, document(title, body, declared, attributes), texts, encoding, content_type)


def div_soup():
    title = "Wet hands"
    texts = ENGLISH[9:11] + ENGLISH[3:4]
    body = (
        "<div class=x1a><div class=k9><div>Menu</div><div><a href=/a>Recipes</a></div><div><a href=/b>Shop knives</a></div></div></div>"
        f"<div class=q7><div class=z><div>{title}</div><div>{'<br><br>'.join(map(html.escape, texts))}</div></div>"
        "<div class=w3><div>You might like</div><div><a href=/c>Rye starter kit, now 20% off</a></div><div><a href=/d>Oven "
        "thermometer</a></div></div></div><div class=f0><div>Gift cards</div><div>Store finder</div></div>"
    )
    return page("nothing but div", title, document(title, body), texts)


def short_note():
    title = "Closed on Monday"
    text = "The reading room stays closed on Monday because the heating is repaired. From Tuesday the usual hours apply."
    body = f"{COOKIES}<header>{NAV}</header><main><h1>{title}</h1><p>{text}</p></main>{RELATED}{FOOTER}"
    return page("two sentences", title, document(title, body), [text])


def forum():
    title = "Dough too sticky - what now?"
    posts = [("mira", ENGLISH[9]), ("oldbaker", ENGLISH[10]), ("tunnelrat", ENGLISH[13]), ("mira", "Thanks, wet hands solved it.")]
    body = f"{NAV}<h1>{title}</h1><div class=thread>" + "".join(
        f"<div class=post id=p{n}><div class=meta><a href=/u/{name}>{name}</a> <span>Joined 2019</span> <span>{n * 17} posts</span></div>"
        f"<div class=content><p>{html.escape(text)}</p></div><div class=actions><a href=#>Reply</a> <a href=#>Quote</a> <a href=#>Report</a>"
        "</div></div>" for n, (name, text) in enumerate(posts)) + f"</div>{FOOTER}"
    return page("forum", title, document(title, body), [text for _, text in posts])


def recipe():
    title = "Bread with much water"
    ingredients = ["500 g strong flour", "420 g lukewarm water", "11 g sea salt", "2 g dry yeast", "rice flour for the basket"]
    steps = ["Mix flour and water and wait for half an hour.", "Add salt and yeast, and fold eight times.",
             "Let it rise until it has doubled, then shape it gently.", "Bake in a covered pot for forty minutes at 240 degrees."]
    lists = "<h2>Ingredients</h2><ul>" + "".join(f"<li>{one}</li>" for one in ingredients) + "</ul><h2>Method</h2><ol>" + "".join(
        f"<li>{one}</li>" for one in steps) + "</ol>"
    body = f"<header>{NAV}</header><main><article><h1>{title}</h1><p>{ENGLISH[9]}</p>{SHARE}{lists}</article>{RELATED}</main>{FOOTER}"
    return page("recipe", title, document(title, body), [ENGLISH[9], "Ingredients", *ingredients, "Method", *steps])


def changelog():
    title = "Releases"
    releases = [(f"4.{n}.0", [f"Fixed a crash when queue {n} was empty", f"Option number {n * 3} accepts durations", f"Faster start by {n + 2} percent"])
                for n in range(9, 0, -1)]
    body = f"{NAV}<main><h1>{title}</h1>" + "".join(
        f"<h2>{version}</h2><ul>" + "".join(f"<li>{one}</li>" for one in notes) + "</ul>" for version, notes in releases) + f"</main>{FOOTER}"
    return page("lists of changes", title, document(title, body), [" ".join([v, *notes]) for v, notes in releases])


def wiki():
    title = "Summit tunnel"
    edit = '<span class="mw-editsection">[<a href="/edit">edit</a>]</span>'
    toc = "<div id=toc class=toc><h2>Contents</h2><ul><li><a href=#1>1 Construction</a></li><li><a href=#2>2 Today</a></li></ul></div>"
    link = ENGLISH[13].replace("Tunnels", '<a href="/wiki/Tunnel">Tunnels</a>').replace("summit tunnel", "<b>summit tunnel</b>")
    body = (
        '<div id=mw-navigation><a href=/main>Main page</a> <a href=/random>Random article</a> <a href=/donate>Donate</a></div>'
        f'<div id=content><h1 id=firstHeading>{title}</h1><div id=bodyContent><div class="mw-parser-output"><p>{link}</p>{toc}'
        f"<h2 id=1>Construction{edit}</h2><p>{ENGLISH[14]}</p><p>{ENGLISH[7]}</p><h2 id=2>Today{edit}</h2><p>{ENGLISH[15]}</p></div></div></div>"
        "<div id=footer>This page was last edited on 3 March. Text is available under a licence.</div>"
    )
    return page("wiki", title, document(title + " - Example wiki", body),
                [ENGLISH[13], "Construction", ENGLISH[14], ENGLISH[7], "Today", ENGLISH[15]])


def broken():
    title = "An archive"
    body = (
        f"<html><head><title>{title}</title></head><body class=\"a\" class='b' <div>{NAV[:-6]}<div id=text><h1>{title}</h2>"
        f"<p>{ENGLISH[11]}<p><b><i>{ENGLISH[12]}</b></i><p>5 < 7 & 8 > 3; AT&T <3 <unknown-tag>stays</unknown-tag>"
        f"<ul><li>first point<li>second point</ul></span></div></p><p>{ENGLISH[8]}</div></div><p><a href=x>Impressum</body></html></html>"
    )
    return page("broken HTML", title, body,
                [ENGLISH[11], ENGLISH[12], "5 < 7 & 8 > 3; AT&T <3 stays", "first point second point", ENGLISH[8]])


def huge():
    # `fetch_page` cuts texts after a million characters.
    title = "The complete logbook"
    subjects = "pilot keeper surveyor baker archivist foreman ferryman beekeeper".split()
    deeds = ["measured the depth near buoy", "repaired the lamp of tower", "counted the crates in warehouse", "sealed the letter for office"]
    lines = [f"On day {n} the {subjects[n % 8]} {deeds[n % 4]} {n * 7 % 1009}, wrote {n * 13 % 97} pages and noted a wind of force "
             f"{n % 11}; nothing else disturbed watch {n % 6} of the crew, which had {n % 40 + 3} men, as entry {n * 31 % 10007} confirms."
             for n in range(4200)]
    body = f"<header>{NAV}</header><main><article><h1>{title}</h1>{paragraphs(lines)}</article></main>{FOOTER}"
    return page("900,000 characters", title, document(title, body), lines)


def hidden():
    title = "How maps learned honesty"
    head = '<script type="application/ld+json">{"@type": "NewsArticle", "articleBody": "Structured body that nobody reads"}</script><style>.x{}</style>'
    body = (
        f"<noscript>Please enable JavaScript to use this site.</noscript><template><p>Template remains</p></template>{NAV}"
        f"<div hidden><p>Hidden draft paragraph about invoices.</p></div><div style='display:none'>Invisible keywords casino loans</div>"
        f"<svg><title>Icon caption</title><text>vector</text></svg><article><h1>{title}</h1>{paragraphs(ENGLISH[6:9])}"
        "<div aria-hidden=true>Decorative chevron</div><script>var words = 'inline script text';</script></article>" + FOOTER
    )
    return page("hidden text and scripts", title, document(title, body, head), ENGLISH[6:9])


def nested(depth):
    title = "The tunnel path"
    texts = ENGLISH[13:16]
    body = f"{NAV}{'<div>' * depth}<h1>{title}</h1>{paragraphs(texts)}{'</div>' * depth}{FOOTER}"
    return page(f"{depth} nested elements", title, document(title, body), texts)


def interview():
    title = "I count weight, not bees"
    questions = ["How did you begin?", "What do beginners get wrong?", "Is rain really that bad?"]
    answers = [ENGLISH[3], ENGLISH[5], ENGLISH[4]]
    talk = "".join(f"<p><strong>{q}</strong></p><p>{html.escape(a).replace('week', '<em>week</em>').replace('hive', '<a href=/hive>hive</a>')}"
                   f"<sup><a href=#f{n}>[{n}]</a></sup></p>" for n, (q, a) in enumerate(zip(questions, answers)))
    quote = "The loudest hive is not the happiest one."
    body = f"<header>{NAV}</header><article><h1>{title}</h1>{talk}<blockquote>{quote}</blockquote></article>{SHARE}{RELATED}{FOOTER}"
    wanted = [part for pair in zip(questions, answers) for part in pair] + [quote]
    return page("interview", title, document(title, body), wanted)


def repository():
    title = "relay"
    files = "".join(f"<tr><td><a href=/blob/{name}>{name}</a></td><td>Initial commit</td><td>2 years ago</td></tr>"
                    for name in ".gitignore LICENSE Makefile README.md main.c relay.h".split())
    usage = "Build it with make, then start it beside the program whose messages it is to keep."
    body = (
        f"<header><a href=/pricing>Pricing</a> <a href=/signin>Sign in</a> <a href=/signup>Sign up</a></header><main><div class=stats><a href=#>Star 128"
        f"</a> <a href=#>Fork 9</a> <a href=#>Issues 4</a></div><table class=files>{files}</table><div id=readme class=Box><article class="
        f"'markdown-body entry-content'><h1>{title}</h1><p>{usage}</p><h2>Usage</h2><pre><code>{html.escape(CODE[0])}</code></pre><p>{ENGLISH[2]}"
        "</p></article></div></main><footer>Terms Privacy Security Status</footer>"
    )
    return page("repository with a readme", title, document("GitHub - example/relay", body), [usage, "Usage", CODE[0], ENGLISH[2]])


def wrongly_declared():
    title = "Die Mühle am Bach"
    body = f"{NAV}<main><h1>{title}</h1>{paragraphs(GERMAN)}</main>{FOOTER}"
    text = document(title, body, '<meta charset="iso-8859-1">', 'lang="de"')
    return page("UTF-8 declared as another", title, text, GERMAN, "utf-8", "text/html; charset=utf-8")


PAGES = [
    news(), documentation(), tutorial(), only_a_table(), layout_of_1999(), div_soup(), short_note(), forum(), recipe(), changelog(), wiki(),
    broken(), huge(), hidden(), nested(120), nested(400), interview(), repository(), wrongly_declared(),
    foreign("Arabic", "الميناء القديم", ARABIC, 'lang="ar" dir="rtl"', ["الرئيسية", "رياضة", "اتصل بنا"], "utf-8", "", None),
    foreign("Hebrew, windows-1255", "הספרייה", HEBREW, 'lang="he" dir="rtl"', ["ראשי", "ספורט", "צור קשר"], "windows-1255",
            '<meta charset="windows-1255">', "text/html"),
    foreign("Russian, header only", "Старый мост", RUSSIAN, 'lang="ru"', ["Главная", "Спорт", "Контакты"], "windows-1251", "",
            "text/html; charset=windows-1251"),
    foreign("German, undeclared", "Mühle", GERMAN, 'lang="de"', ["Startseite", "Anfahrt", "Impressum"], "iso-8859-1", "", "text/html"),
    foreign("Japanese, Shift_JIS", "灯台", JAPANESE, 'lang="ja"', ["ホーム", "ニュース", "お問い合わせ"], "shift_jis",
            '<meta http-equiv="Content-Type" content="text/html; charset=Shift_JIS">', "text/html"),
    foreign("Chinese, GB18030", "古桥", CHINESE, 'lang="zh"', ["首页", "新闻", "联系我们"], "gb18030", '<meta charset="gb18030">', "text/html"),
    foreign("UTF-16 with a mark", "Mühle", GERMAN, 'lang="de"', ["Startseite", "Anfahrt", "Impressum"], "utf-16", "", "text/html"),
]
