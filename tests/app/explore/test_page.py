"""The page in a browser: clicked through, its numbers those of Python, and no complaint on the console."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import powersum as ps
from powersum import Model
from tests.app.explore.conftest import SECONDS, Served, serving
from tests.app.explore.test_routes import network
from tests.app.explore.test_server import UNSOLVED
from tests.browser import CHROMIUM, Browser, Tab, browsing
from tests.interop.networks import CLINIC

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium to look at the page with")

SMOKER, CANCER, BRONCHITIS, DYSPNOEA = (CLINIC.variable(n) for n in ("smoker", "cancer", "bronchitis", "dyspnoea"))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(CLINIC, "clinic.bif") as found:
        yield found


def opened(browser: Browser, served: Served, link: str = "", **options: Any) -> Tab:
    tab = browser.open(served.address + (f"#{link}" if link else ""), **options)
    tab.wait("document.body.dataset.ready")
    return tab


def state(variable: int, number: int) -> str:
    return f'[data-id="{variable}"] [data-state="{number}"]'


def shown(variable: int) -> str:
    """The script that reads the beliefs of a variable off the page."""
    return f"""Array.from(document.querySelectorAll('[data-id="{variable}"] .percent'), (e) => e.textContent).join()"""


def expected(model: Model, evidence: Mapping[int, Any], variable: int) -> list[str]:
    beliefs = ps.marginals(model, evidence=evidence).beliefs[variable]
    return [f"{100 * p:.1f} %" if 100 * p >= 10 else f"{100 * p:.2f} %" for p in beliefs.tolist()]


def settled(tab: Tab, variable: int, numbers: list[str]) -> None:
    """Until a variable has these beliefs."""
    tab.wait(f"{shown(variable)} === {json.dumps(','.join(numbers))}")


def answered(tab: Tab, *words: str) -> None:
    """Until the answer is proven and says these words: all at once, for another question may have said some of them."""
    tab.wait(
        "document.getElementById('status').textContent === 'optimal' &&"
        f"{json.dumps(words)}.every((word) => document.getElementById('now').innerText.includes(word))"
    )


def worded(tab: Tab, text: str) -> None:
    """Until the question in words has this; words have a request of their own."""
    tab.wait(f"document.getElementById('chips').innerText.includes({json.dumps(text)})")


def test_evidence_changes_beliefs(browser: Browser, served: Served) -> None:
    tab = opened(browser, served)
    settled(tab, CANCER, expected(CLINIC, {}, CANCER))
    tab.click(state(DYSPNOEA, 1))
    settled(tab, CANCER, expected(CLINIC, {DYSPNOEA: 1}, CANCER))
    assert tab.value(shown(DYSPNOEA)).split(",")[1] == "100 %"
    tab.click(state(SMOKER, 1))
    settled(tab, CANCER, expected(CLINIC, {DYSPNOEA: 1, SMOKER: 1}, CANCER))
    # Once more takes it back.
    tab.click(state(SMOKER, 1))
    settled(tab, CANCER, expected(CLINIC, {DYSPNOEA: 1}, CANCER))
    assert tab.complaints() == []
    assert all(address.startswith((served.origin, "data:", "about:")) for address in tab.addresses())


def test_the_answer_is_that_of_solve(browser: Browser, served: Served) -> None:
    tab = opened(browser, served)
    tab.click(state(DYSPNOEA, 1))
    for variable in (CANCER, BRONCHITIS):
        tab.click(f'[data-id="{variable}"] .role')
    result = ps.solve(CLINIC, [CANCER, BRONCHITIS], evidence={DYSPNOEA: 1})
    answered(
        tab, *(f"{name} = {label}" for name, label in result.assignment.items()), f"probability {result.probability}"
    )
    best = {name: CLINIC.state(CLINIC.variable(name), label) for name, label in result.assignment.items()}
    for name, number in best.items():
        assert tab.value(f"document.querySelector('{state(CLINIC.variable(name), number)}').classList.contains('best')")
    assert "log value = −" in tab.text("#now")
    assert tab.value("document.getElementById('curves').hasAttribute('hidden')")
    assert tab.complaints() == []


def test_a_network_that_is_asked_nothing_has_no_answer(browser: Browser, served: Served) -> None:
    tab = opened(browser, served)
    assert tab.text("#now") == "Nothing is asked yet."
    assert tab.text("#status") == ""
    tab.click(f'[data-id="{CANCER}"] .role')
    answered(tab, "cancer = ")
    tab.click("#undo")
    tab.wait("document.getElementById('now').innerText === 'Nothing is asked yet.'")
    assert tab.value("document.getElementById('report').hidden")
    assert tab.complaints() == []


def test_how_probable_an_observation_is_without_directions(browser: Browser) -> None:
    """The sum with the state is a share of the sum of everything, which is not 1."""
    model = Model.from_factors([2, 3, 2], [((0, 1), [[1, 2, 3], [4, 5, 6]]), ((1, 2), [[1, 2], [3, 1], [2, 2]])])
    with serving(model) as other:
        tab = opened(browser, other)
        answered(tab, "log value = ")
        tab.click(state(1, 2))
        answered(tab, f"probability of what is observed: {ps.marginals(model)[1][2]}")
        assert tab.complaints() == []


def test_tab_goes_through_one_box(browser: Browser, served: Served) -> None:
    """Whoever uses the keyboard goes from box to box by arrows, and past all of them by Tab."""
    tab = opened(browser, served)
    tab.value(f"document.querySelector('[data-id=\"{CANCER}\"]').focus()")
    inside = f"document.activeElement.closest('.box')?.dataset.id === '{CANCER}'"
    for _ in range(2 + CLINIC.cardinalities[CANCER]):
        tab.press("Tab")
        assert tab.value(inside)
    tab.press("Tab")
    assert not tab.value("document.activeElement.closest('.box')")
    assert tab.complaints() == []


def test_long_names_keep_their_ends(browser: Browser) -> None:
    names = ["a_name_too_long_for_any_box_left", "a_name_too_long_for_any_box_right"]
    model = Model.from_tables({name: {"no": 0.3, "yes": 0.7} for name in names})
    seen = "document.querySelector('[data-id=\"0\"] .name').lastChild.getBoundingClientRect()"
    box = "document.querySelector('[data-id=\"0\"]').getBoundingClientRect()"
    with serving(model) as other:
        tab = opened(browser, other)
        assert tab.value("document.querySelector('[data-id=\"0\"] .name').lastChild.textContent") == "_left"
        assert tab.value(f"{seen}.right < {box}.right && {seen}.left > {box}.left && {seen}.width > 10")
        assert tab.value("document.querySelector('[data-id=\"0\"] .name').ariaLabel") == f"all about {names[0]}"
        assert tab.complaints() == []


def test_uncertain_evidence(browser: Browser, served: Served) -> None:
    tab = opened(browser, served, "max=cancer")
    # Numbers that nobody is typing are shown anew whenever something comes: nothing may be on its way.
    answered(tab, "cancer = ")
    tab.click(f'[data-id="{DYSPNOEA}"] .name')
    tab.wait("!document.getElementById('chosen').hidden")
    tab.click("#lean summary")
    fill = "document.querySelectorAll('#lean-states input').forEach((e, i) => { e.value = [0.1, 0.2, 0.7][i]; })"
    tab.value(fill)
    tab.click("#lean-form button")
    leaning = {DYSPNOEA: [0.1, 0.2, 0.7]}
    settled(tab, CANCER, expected(CLINIC, leaning, CANCER))
    answered(tab, f"probability {ps.solve(CLINIC, [CANCER], evidence=leaning).probability}")
    worded(tab, "dyspnoea leans 0.1 : 0.2 : 0.7")
    assert "lean=dyspnoea:0.1;0.2;0.7" in tab.value("location.hash")
    assert "given 1 uncertain, summed over 4" in tab.text("#sentence")
    # An address has all of it, a state takes the place of likelihoods, and undo brings them back.
    again = opened(browser, served, tab.value("location.hash.slice(1)"))
    settled(again, CANCER, expected(CLINIC, leaning, CANCER))
    tab.click(state(DYSPNOEA, 1))
    settled(tab, CANCER, expected(CLINIC, {DYSPNOEA: 1}, CANCER))
    tab.click("#undo")
    settled(tab, CANCER, expected(CLINIC, leaning, CANCER))
    tab.click("#lean-back")
    settled(tab, CANCER, expected(CLINIC, {}, CANCER))
    answered(tab, f"probability {ps.solve(CLINIC, [CANCER]).probability}")
    tab.value("document.querySelectorAll('#lean-states input').forEach((e) => { e.value = 0; })")
    tab.click("#lean-form button")
    tab.wait("document.getElementById('notice').innerText.includes('above 0')")
    assert tab.complaints() + again.complaints() == []


BEHIND = """
Array.from(document.querySelectorAll('#edges [data-from]'), (line) => {
  const length = line.getTotalLength();
  return Array.from({ length: 60 }, (_, i) => line.getPointAtLength((length * i) / 59)).filter(({ x, y }) =>
    Array.from(document.querySelectorAll('.box')).some((box) => {
      const [left, top] = [box.offsetLeft, box.offsetTop];
      return x > left + 1 && x < left + box.offsetWidth - 1 && y > top + 1 && y < top + box.offsetHeight - 1;
    })).length;
}).reduce((a, b) => a + b, 0)
"""


def test_edges_go_around_boxes(browser: Browser) -> None:
    """As the browser draws them; that some of them have to is in ``test_routes.py``."""
    with serving(network(5), "skips.bif") as found:
        tab = opened(browser, found)
        assert tab.value("document.querySelectorAll('#edges [data-from]').length") > 20
        assert tab.value(BEHIND) == 0
        assert tab.complaints() == []


def test_the_best_what_if_and_undo(browser: Browser, served: Served) -> None:
    tab = opened(browser, served, "max=cancer,bronchitis&see=dyspnoea:much")
    first = ps.solve(CLINIC, [CANCER, BRONCHITIS], evidence={"dyspnoea": "much"})
    answered(tab, f"probability {first.probability}")
    tab.click("#whatif")
    tab.click(state(SMOKER, 0))
    second = ps.solve(CLINIC, [CANCER, BRONCHITIS], evidence={"dyspnoea": "much", SMOKER: 0})
    answered(tab, f"probability {second.probability}")
    assert f"probability {first.probability}" in tab.text("#before")
    tab.wait(f"{before(CANCER)}.length === 2")
    tab.click("#undo")
    answered(tab, f"probability {first.probability}")
    tab.click("#redo")
    answered(tab, f"probability {second.probability}")
    tab.click("#whatif")
    assert tab.value("document.getElementById('before').hidden")
    tab.value("document.getElementById('count').value = 3")
    tab.click("#again")
    tab.wait("document.querySelectorAll('#best li').length === 3")
    three = ps.solve(CLINIC, [CANCER, BRONCHITIS], evidence={"dyspnoea": "much", SMOKER: 0}, k=3)
    for item, one in zip(tab.text("#best ol").splitlines(), three.best, strict=True):
        assert all(f"{name} = {label}" in item for name, label in one.assignment.items())
    assert tab.complaints() == []


def before(variable: int) -> str:
    """The script that reads the widths of the thin bars of a variable, in percent."""
    bars = f"""document.querySelectorAll('[data-id="{variable}"] .before:not([hidden])')"""
    return f"Array.from({bars}, (e) => parseFloat(e.style.width))"


def test_what_if_keeps_the_beliefs_of_its_own_question(browser: Browser, served: Served) -> None:
    """Pressed in the moment after a change, when the page still shows the beliefs of the question before."""
    tab = opened(browser, served)
    settled(tab, CANCER, expected(CLINIC, {}, CANCER))
    both = (
        f"document.querySelector({json.dumps(state(DYSPNOEA, 1))}).click(); document.getElementById('whatif').click()"
    )
    tab.value(both)
    tab.wait(f"{before(CANCER)}.length === 2")
    kept = ps.marginals(CLINIC, evidence={DYSPNOEA: 1}).beliefs[CANCER]
    assert tab.value(before(CANCER)) == pytest.approx(100 * kept, abs=0.01)
    # It stays when the question goes on, and goes when it is taken back.
    tab.click(state(SMOKER, 1))
    settled(tab, CANCER, expected(CLINIC, {DYSPNOEA: 1, SMOKER: 1}, CANCER))
    assert tab.value(before(CANCER)) == pytest.approx(100 * kept, abs=0.01)
    tab.click("#whatif")
    assert tab.value(before(CANCER)) == []
    assert tab.complaints() == []


def test_what_is_copied_asks_the_same(browser: Browser, served: Served) -> None:
    tab = opened(browser, served)
    tab.click(state(DYSPNOEA, 1))
    tab.click(f'[data-id="{CANCER}"] .role')
    label = CLINIC.label(DYSPNOEA, 1)
    tab.wait(f"location.hash === '#max=cancer&see=dyspnoea:{label}'")
    tab.click("#copies summary")
    link = tab.text("#copy-link")
    assert (
        tab.text("#copy-command")
        == f"powersum solve clinic.bif --max cancer --evidence dyspnoea={label} --time {SECONDS}"
    )
    assert f"evidence={{'dyspnoea': '{label}'}}" in tab.text("#copy-python")
    other = browser.open(link)
    other.wait("document.body.dataset.ready")
    answered(other, "cancer = ")
    other.wait(f"document.getElementById('chips').innerText === {json.dumps(tab.text('#chips'))}")
    answered(tab, "cancer = ")
    # Each tab has a question of its own.
    other.click("#clear")
    other.wait("document.getElementById('chips').children.length === 0")
    assert "cancer = " in tab.text("#now")
    assert "dyspnoea" in tab.text("#chips")
    assert tab.complaints() == other.complaints() == []


def test_by_keyboard_alone(browser: Browser, served: Served) -> None:
    tab = opened(browser, served)
    tab.press("/")
    tab.type("dysp")
    tab.wait("document.querySelectorAll('#found [role=option]').length === 1")
    tab.press("Enter")
    tab.wait(f"document.activeElement.dataset.id === '{DYSPNOEA}'")
    tab.press("2")
    settled(tab, CANCER, expected(CLINIC, {DYSPNOEA: 1}, CANCER))
    tab.press("ArrowUp")
    tab.wait(f"document.activeElement.classList.contains('box') && document.activeElement.dataset.id !== '{DYSPNOEA}'")
    above = int(tab.value("document.activeElement.dataset.id"))
    tab.press("m")
    answered(tab, f"{CLINIC.name(above)} = ")
    tab.press("s")
    tab.wait("!document.getElementById('chips').innerText.includes('max')")
    tab.press("z", control=True)
    answered(tab, f"{CLINIC.name(above)} = ")
    tab.press("?")
    tab.wait("document.getElementById('help').open")
    tab.press("Escape")
    tab.wait("!document.getElementById('help').open")
    assert tab.complaints() == []


def test_what_a_screen_reader_finds(browser: Browser, served: Served) -> None:
    tab = opened(browser, served, "max=cancer&see=dyspnoea:much")
    answered(tab, "cancer = ")
    tab.wait("document.getElementById('said').textContent.includes('cancer = ')")
    # Beliefs have a request of their own, which may be answered after the question.
    tab.wait(f"{shown(SMOKER)}.includes('%')")
    nodes = tab.ask("Accessibility.getFullAXTree")["nodes"]
    names = [(node.get("role", {}).get("value"), node.get("name", {}).get("value", "")) for node in nodes]
    assert ("group", "cancer, maximised") in names
    assert any(role == "button" and name.startswith("observe smoker = ") and name.endswith("%") for role, name in names)
    assert any(role == "button" and name == "maximise smoker" for role, name in names)
    nameless = [role for role, name in names if role in ("button", "combobox", "spinbutton", "link") and not name]
    assert nameless == []


@pytest.mark.parametrize("dark", [0, 1])
def test_a_phone_has_a_list_and_nothing_beside_it(browser: Browser, served: Served, dark: int) -> None:
    tab = opened(browser, served, "max=cancer", width=390, height=844, dark=dark)
    answered(tab, "cancer = ")
    assert tab.value("document.body.classList.contains('as-list')")
    assert tab.value("document.documentElement.scrollWidth <= innerWidth")
    assert tab.value("document.getElementById('scroll').scrollWidth <= document.getElementById('scroll').clientWidth")
    tab.click(state(DYSPNOEA, 1))
    settled(tab, CANCER, expected(CLINIC, {DYSPNOEA: 1}, CANCER))
    # What comes later moves what is below it.
    answered(tab, f"probability {ps.solve(CLINIC, [CANCER], evidence={DYSPNOEA: 1}).probability}")
    worded(tab, "dyspnoea")
    # All about a variable is elsewhere on the page: pressing its name leads there.
    tab.click(f'[data-id="{DYSPNOEA}"] .name')
    tab.wait("document.activeElement.id === 'chosen-title'")
    assert tab.value("document.getElementById('chosen').getBoundingClientRect().top >= -1")
    assert tab.value("document.getElementById('chosen').getBoundingClientRect().top < innerHeight / 2")
    tab.click("#list")
    tab.wait("!document.body.classList.contains('as-list')")
    assert tab.value("document.documentElement.scrollWidth <= innerWidth")
    assert tab.complaints() == []


def test_on_a_phone_the_answer_stays_in_sight(browser: Browser, served: Served) -> None:
    tab = opened(browser, served, "max=cancer", width=390, height=844)
    answered(tab, "cancer = ")
    tab.click(state(DYSPNOEA, 1))
    found = f"probability {ps.solve(CLINIC, ['cancer'], evidence={DYSPNOEA: 1}).probability}"
    tab.wait(f"document.getElementById('glance').textContent.includes({json.dumps(found)})")
    tab.wait("document.getElementById('glance').getBoundingClientRect().bottom <= innerHeight + 1")
    assert tab.value("document.getElementById('glance').getBoundingClientRect().height > 20")
    tab.click("#glance")
    tab.wait("document.getElementById('answer').getBoundingClientRect().top < 200")


def test_labels_have_the_room_that_there_is(browser: Browser) -> None:
    for width, labels in (
        (390, ["no shunt was seen at all", "from left to right"]),
        (1280, ["none there", "left side"]),
    ):
        model = ps.Model.from_factors([2], [((0,), [0.4, 0.6])], names=["shunt"], states=[labels])
        with serving(model) as served:
            tab = opened(browser, served, width=width)
            cut = "[...document.querySelectorAll('.box .label')].some((e) => e.scrollWidth > e.clientWidth)"
            tab.wait(f"!({cut})")


def test_a_click_beside_a_changed_number_counts(browser: Browser, served: Served) -> None:
    """Leaving the number asks anew, which moves the button below it before the mouse is released."""
    tab = opened(browser, served, "max=cancer")
    answered(tab, "cancer = ")
    tab.value("document.getElementById('count').focus()")
    tab.value("document.getElementById('count').select()")
    tab.type("3")
    place = tab.value(
        "(() => { const b = document.getElementById('all').getBoundingClientRect();"
        " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
    )
    for kind in ("mousePressed", "mouseReleased"):
        tab.ask("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
    tab.wait("location.hash.includes('all')")


def test_seconds_that_are_none_are_refused(browser: Browser, served: Served) -> None:
    tab = opened(browser, served, "max=cancer")
    answered(tab, "cancer = ")
    tab.value("document.getElementById('seconds').value = '0'")
    tab.click("#again")
    tab.wait("document.getElementById('reason').textContent.includes('time is 0: give a number from 0.05')")


def test_what_to_ask_next(browser: Browser, served: Served) -> None:
    tab = opened(browser, served, "max=cancer&see=dyspnoea:some")
    tab.click("#ask-next summary")
    first = ps.ask_next(CLINIC, ["cancer"], evidence={"dyspnoea": "some"})[0]
    tab.wait(f"document.querySelector('#next li').innerText.startsWith({json.dumps(first.variable)})")
    assert f"{first.information.lower:.3f}" in tab.text("#next li")
    assert tab.complaints() == []


def test_long_questions_are_short_on_the_page(browser: Browser) -> None:
    n = 60
    model = ps.Model.from_factors([2] * n, [((v,), [0.4, 0.6]) for v in range(n)], names=[f"v{v}" for v in range(n)])
    with serving(model) as served:
        tab = opened(browser, served, "max=" + ",".join(f"v{v}" for v in range(n - 1)))
        tab.wait("document.querySelectorAll('#chips button').length === 21")
        assert tab.text("#chips button:last-child") == "+39"
        tab.click("#chips button:last-child")
        tab.wait("document.querySelectorAll('#chips button').length === 59")


def test_a_hard_answer_falls_into_place_and_stops(browser: Browser) -> None:
    model, query = UNSOLVED
    with serving(model) as hard:
        tab = browser.open(f"{hard.address}#max={','.join(map(str, query))}")
        tab.wait("document.getElementById('now').innerText.includes('≤ log value ≤')")
        tab.wait("document.querySelectorAll('#curves path').length === 2")
        tab.click("#stop")
        tab.wait("document.getElementById('status').textContent === 'interrupted'")
        assert tab.value("document.getElementById('stop').hidden")
        assert tab.complaints() == []


def test_the_result_as_the_report_page(browser: Browser, served: Served) -> None:
    tab = opened(browser, served, "max=cancer,bronchitis")
    answered(tab, "cancer = ")
    page = browser.open(str(tab.value("document.getElementById('report').href")))
    page.wait("document.querySelector('.largest')")
    assert "cancer = " in page.text("header")
    assert page.complaints() == []


def test_a_large_model_is_seen_part_by_part(browser: Browser) -> None:
    count = 3000
    tables = [((0,), [0.3, 0.7]), *(((v // 2, v), [[0.9, 0.1], [0.4, 0.6]]) for v in range(1, count))]
    model = Model.from_factors([2] * count, tables, directed=True)
    with serving(model) as large:
        tab = opened(browser, large)
        assert "40 of 3000 variables drawn" in tab.text("#drawn")
        tab.press("/")
        tab.type("2999")
        tab.wait("document.querySelectorAll('#found [role=option]').length === 1")
        tab.press("Enter")
        tab.wait("""document.activeElement.dataset.id === "2999" """)
        tab.press("1")
        settled(tab, 2999 // 2, expected(model, {2999: 0}, 2999 // 2))
        assert not tab.value("document.querySelector('[data-id=\"10\"]')")
        tab.click('[data-id="5"] .more')
        tab.wait("document.querySelector('[data-id=\"10\"]')")
        assert tab.complaints() == []


def test_impossible_evidence_is_said(browser: Browser) -> None:
    model = Model.from_tables({"a": {"x": 1.0, "y": 0.0}, ("a", "b"): [[0.5, 0.5], [0.5, 0.5]]})
    with serving(model) as other:
        tab = opened(browser, other)
        tab.click(state(0, 1))
        tab.wait("document.getElementById('notice').innerText.includes('probability 0')")
        tab.click("#undo")
        settled(tab, 1, ["50.0 %", "50.0 %"])
        assert tab.complaints() == []


def test_a_long_answer_is_in_every_box(browser: Browser) -> None:
    """Not only in those of its first states."""
    count = 1200
    tables = [((0,), [0.3, 0.7]), *(((v - 1, v), [[0.9, 0.1], [0.4, 0.6]]) for v in range(1, count))]
    model = Model.from_factors([2] * count, tables, directed=True)
    last = ps.solve(model, "all").assignment["1199"]
    with serving(model) as large:
        tab = opened(browser, large, "all=max")
        answered(tab, "and 1188 more")
        tab.press("/")
        tab.type("1199")
        tab.wait("document.querySelectorAll('#found [role=option]').length === 1")
        tab.press("Enter")
        tab.wait(f"document.querySelector('{state(1199, int(last))}')?.classList.contains('best')")
        assert tab.complaints() == []


def test_a_link_that_is_pasted_can_be_undone(browser: Browser, served: Served) -> None:
    tab = opened(browser, served)
    tab.value("location.hash = '#max=cancer'")
    answered(tab, "cancer = ")
    tab.click("#undo")
    tab.wait("document.getElementById('chips').children.length === 0")
    assert tab.complaints() == []


def test_a_link_that_is_pasted_counts_whatever_is_on_its_way(browser: Browser, served: Served) -> None:
    """The words of the question before come back with its address, at any moment."""
    tab = opened(browser, served)
    tab.value("location.hash = '#max=cancer'; history.replaceState(null, '', location.pathname + location.search)")
    answered(tab, "cancer = ")
    assert tab.complaints() == []


def test_the_wrong_token_shows_no_page(browser: Browser, served: Served) -> None:
    tab = browser.open(f"{served.origin}/?token=wrong")
    tab.wait("document.body.innerText.includes('ends with a token')")
    assert not tab.value("document.getElementById('boxes')")


def test_names_are_text(browser: Browser) -> None:
    odd = Model.from_tables({"<img src=x onerror=alert(1)>": {"<b>": 0.3, "&amp;": 0.7}})
    with serving(odd) as other:
        tab = opened(browser, other)
        tab.click('[data-id="0"] .role')
        answered(tab, "&amp;")
        assert (
            tab.value("document.querySelector('[data-id=\"0\"] .name').textContent") == "<img src=x onerror=alert(1)>"
        )
        assert tab.complaints() == []
