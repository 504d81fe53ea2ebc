// The page: one question in this tab, asked of the server whenever it changes; another tab has another one.

import { get, pageAddress, post } from "./api.js";
import { Answer } from "./answer.js";
import { Graph, labelRoom, showState, stateButton } from "./graph.js";
import { setUpLeaning } from "./leaning.js";
import { Question, evidenceOf, fromJson, fromLink, toJson } from "./question.js";
import { setUpSearch } from "./search.js";
import { afterClick, byId, make } from "./text.js";

const MOST_CHIPS = 20;
const NARROW = "(max-width: 60rem)";
const model = { variables: 0 };
const seen = { beliefs: null, asked: null, before: null, evidenceBefore: [], exact: true, waiting: false, picture: null };
let centre = [];
let variable = null;
let asking = false, askAgain = false;

const question = new Question(0, changed);
const graph = new Graph(question, { choose, centre: centreOn });
const answer = new Answer({ changed: show, complain, say });
const leaning = setUpLeaning(question, complain);

function complain(error) {
  byId("notice").textContent = error.message;
  byId("notice").hidden = false;
}

function say(text) {
  byId("said").textContent = text;
}

/** The question has changed: everything about it is asked anew. */
function changed() {
  byId("notice").hidden = true;
  byId("undo").disabled = !question.past.length;
  byId("redo").disabled = !question.future.length;
  show();
  word();
  solve();
  believe();
  askNext();
}

/** What an answer may take, as it is written: the server refuses what is no such number. */
function costs() {
  const [time, best] = ["seconds", "count"].map((id) => byId(id).value);
  return { time: time === "" ? model.seconds : Number(time), best: best === "" ? 1 : Number(best) };
}

function solve() {
  const { max, evidence, leanings } = question.now;
  // The sum of a whole Bayesian network is 1, which answers nothing.
  if (!model.kinds && model.directed && !max.length && !evidence.size && !leanings.size) {
    answer.rest();
    return;
  }
  answer.ask(question.now, costs());
}

/** The question in words: chips, link, command, Python. */
async function word() {
  const asked = question.now;
  try {
    const said = await post("question", { question: toJson(asked), ...costs() });
    if (asked !== question.now) return;
    history.replaceState(null, "", location.pathname + location.search + (said.link ? "#" + said.link : ""));
    byId("copy-link").textContent = pageAddress(said.link);
    byId("copy-command").textContent = said.command || "The names of this model cannot be written in a list on a command line.";
    byId("copy-python").textContent = said.python;
    afterClick(() => drawChips(said));
  } catch (error) {
    complain(error);
  }
}

/** Beliefs of what is drawn: one request at a time, and once more if the question has changed meanwhile. */
async function believe() {
  if (asking) {
    askAgain = true;
    return;
  }
  asking = true;
  const late = setTimeout(() => { seen.waiting = true; show(); }, 300);
  const asked = question.now;
  try {
    const ids = [...new Set([...graph.ids, ...(variable ? [variable.id] : [])])];
    const said = await post("beliefs", { question: { max: [], evidence: evidenceOf(asked) }, of: ids });
    seen.beliefs = said.beliefs || null;
    seen.asked = asked;
    seen.exact = said.exact !== false;
    if (said.impossible) complain(new Error("What is observed has probability 0: take something back."));
  } catch (error) {
    seen.beliefs = null;
    complain(error);
  } finally {
    clearTimeout(late);
    seen.waiting = false;
    asking = false;
  }
  if (askAgain) {
    askAgain = false;
    believe();
  } else {
    document.body.dataset.settled = String(Number(document.body.dataset.settled || 0) + 1);
  }
  show();
}

async function picture() {
  // What is asked about is in the picture as far as there is room.
  const asked = [...evidenceOf(question.now).map(([id]) => id), ...(question.now.max === "all" ? [] : question.now.max)];
  try {
    const drawn = await post("picture", {
      centre: [...centre, ...asked].slice(0, 200), most: Number(byId("most").value), widest: graph.widest(),
    });
    graph.draw(drawn);
    seen.picture = drawn;
    byId("most").parentElement.hidden = drawn.total <= 10;
    show();
    await believe();
    if (seen.before) await keepUp();
  } catch (error) {
    complain(error);
  }
}

async function centreOn(id) {
  centre = [id];
  await picture();
  choose(id);
  graph.focus(id);
}

/** Show all states of a variable at the side; on a phone that is elsewhere, and whoever wants to see it is taken there. */
async function choose(id, go = false) {
  graph.chosen = id;
  const box = graph.picture.boxes.find((other) => other.id === id);
  let whole = box;
  if (box && box.state_count > box.states.length) {
    try {
      whole = await get("variable/" + id);
    } catch (error) {
      complain(error);
    }
    // Another one may have been chosen meanwhile.
    if (graph.chosen !== id) return;
  }
  variable = whole;
  byId("chosen").hidden = !variable;
  if (!variable) return;
  byId("chosen-title").textContent = variable.name;
  byId("chosen-states").replaceChildren(...variable.states.map((label, state) =>
    make("li", {}, stateButton(variable, state, label, () => question.observe(id, state)))));
  labelRoom(byId("chosen-states"), variable.states);
  leaning.offer(variable);
  show();
  if (go && matchMedia(NARROW).matches) {
    byId("chosen").scrollIntoView({ block: "start" });
    byId("chosen-title").focus({ preventScroll: true });
  }
}

/** What is drawn, and what kind of numbers stand there. */
function tell() {
  const { boxes, total } = seen.picture;
  const cut = boxes.length < total
    ? boxes.length + " of " + total + " variables drawn, those nearest."
    : total + " variables.";
  const sides = seen.exact ? "" : " Too wide for exact probabilities: both sides are shown, ? where nothing is known.";
  const waiting = seen.waiting ? " Computing probabilities …" : "";
  byId("drawn").textContent = cut + waiting + sides + (seen.before ? " Thin bars: before." : "");
}

function show() {
  const states = answer.states();
  if (seen.picture) tell();
  graph.show({ beliefs: seen.beliefs, before: seen.before, answer: states, waiting: seen.waiting });
  if (!variable) return;
  const role = question.roleOf(variable.id);
  leaning.show();
  for (const button of byId("chosen").querySelectorAll("[data-role]")) {
    button.setAttribute("aria-pressed", String(button.dataset.role === role));
  }
  for (const button of byId("chosen-states").querySelectorAll(".state")) {
    const state = Number(button.dataset.state);
    showState(button, {
      name: variable.name,
      belief: seen.beliefs?.[variable.id]?.[state],
      before: seen.before?.[variable.id]?.[state],
      observed: question.stateOf(variable.id) === state,
      best: role === "max" && states.get(variable.id) === state,
    });
  }
}

function drawChips(said) {
  const chip = (one, role, text, takeBack = () => question.sum(one.id)) => make("button", {
    type: "button", class: role, "aria-label": "take back: " + text, title: "Take this back", onclick: takeBack,
  }, text + "  ×");
  const all = said.max === "all";
  const chips = [
    ...said.observed.map((one) => chip(one, "evidence", one.name + " = " + one.label)),
    ...said.leaning.map((one) => chip(one, "evidence", one.name + " leans " + one.text, () => question.lean(one.id, null))),
    ...(all ? [] : said.maximised.map((one) => chip(one, "max", "max " + one.name)))];
  const rest = said.evidence.length + (all ? 0 : said.max.length) - MOST_CHIPS;
  const more = make("button", { type: "button", class: "small", onclick: () => byId("chips").replaceChildren(...chips) }, "+" + rest);
  byId("chips").replaceChildren(...chips.slice(0, MOST_CHIPS), ...(rest > 0 ? [more] : []));
  const maximised = all ? model.variables : said.max.length;
  const observed = said.evidence.filter(([, known]) => !Array.isArray(known)).length;
  const summed = model.variables - maximised - observed;
  const given = [observed ? observed + " observed" : "", said.leaning.length ? said.leaning.length + " uncertain" : ""]
    .filter((part) => part).join(" and ");
  byId("sentence").textContent = model.kinds
    ? (observed ? `What to do, given ${observed} observed or decided?` : "Press a state to observe it, or to decide it.")
    : maximised
    ? `Which joint state of ${maximised === 1 ? "1 variable" : maximised + " variables"} is the most probable`
      + (given ? ", given " + given : "") + (summed ? `, summed over ${summed}?` : "?")
    : said.evidence.length ? (said.observed.length && !said.leaning.length ? "How probable is what is observed?" : "How large is the sum, given that?") : "Press a state to observe it, or max to ask for the best state.";
}

function whatIf() {
  const on = byId("whatif").getAttribute("aria-pressed") !== "true";
  byId("whatif").setAttribute("aria-pressed", String(on));
  answer.keep(on);
  seen.evidenceBefore = evidenceOf(question.now);
  // Beliefs on the page may still be those of the question before this one.
  seen.before = on ? { ...(seen.asked === question.now ? seen.beliefs : {}) } : null;
  show();
  if (on) keepUp();
}

/** Beliefs of what was kept, for boxes that were not drawn then, or whose beliefs had not come yet. */
async function keepUp() {
  const kept = seen.before;
  const missing = graph.ids.filter((id) => !(id in kept));
  if (!missing.length) return;
  try {
    const said = await post("beliefs", { question: { max: [], evidence: seen.evidenceBefore }, of: missing });
    Object.assign(kept, said.beliefs || {});
    show();
  } catch (error) {
    complain(error);
  }
}

/** Which variables tell most about what is maximised, while the list is open. */
async function askNext() {
  if (!byId("ask-next").open) return;
  const asked = question.now;
  byId("next").replaceChildren();
  if (asked.max !== "all" && !asked.max.length) {
    byId("next-about").textContent = "Maximise a variable: this says which other one tells most about it.";
    return;
  }
  byId("next-about").textContent = "Computing …";
  try {
    const found = await post("next", { question: toJson(asked) });
    if (asked !== question.now) return;
    byId("next-about").textContent = found.length ? "Expected information about what is maximised, in nats:" : "Nothing is left to observe.";
    byId("next").replaceChildren(...found.map((one) => make("li", {},
      make("button", { type: "button", onclick: () => centreOn(one.id) }, one.name), " " + sidesText(one.sides))));
  } catch (error) {
    byId("next-about").textContent = error.message;
  }
}

const sidesText = ([low, high]) => {
  const [a, b] = [low, high].map((side) => side.toFixed(3));
  return a === b ? a : a + " to " + b;
};

function asList(on) {
  document.body.classList.toggle("as-list", on);
  byId("list").setAttribute("aria-pressed", String(on));
  for (const id of ["smaller", "larger", "fit"]) byId(id).hidden = on;
}

async function copy(kind) {
  const text = byId("copy-" + kind).textContent;
  try {
    await navigator.clipboard.writeText(text);
    say("copied");
  } catch {
    // Not allowed here: what is selected can be copied by hand.
    getSelection().selectAllChildren(byId("copy-" + kind));
    say("selected: press Ctrl+C");
  }
}

async function readLink(hash) {
  const said = await post("question", { question: fromLink(hash) });
  // The question that the page is opened with has none before it.
  question.set(fromJson(said), { remember: Boolean(document.body.dataset.ready) });
}

function setUpKeys() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea, dialog");
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
      event.preventDefault();
      if (event.shiftKey) question.redo();
      else question.undo();
      return;
    }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      "/": () => byId("search").focus(), "?": () => byId("help").showModal(), w: whatIf,
      l: () => byId("list").click(), Escape: () => answer.stop(),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  });
}

async function start() {
  Object.assign(model, await get("model"));
  document.title = model.title + " – powersum explore";
  byId("title").textContent = model.title;
  byId("title").title = model.variables + " variables, " + model.factors + " factors";
  byId("seconds").value = model.seconds;
  byId("seconds").max = model.most_seconds;
  question.total = model.variables;
  graph.kinds = model.kinds || {};
  document.body.classList.toggle("diagram", Boolean(model.kinds));
  // A diagram maximises its decisions and nothing else.
  if (model.kinds) question.maximise = question.maximiseAll = () => {};
  if (model.notes.length) complain(new Error(model.notes.join(" ")));
  asList(matchMedia(NARROW).matches);
  setUpSearch(centreOn, complain);
  setUpKeys();
  byId("undo").addEventListener("click", () => question.undo());
  byId("redo").addEventListener("click", () => question.redo());
  byId("clear").addEventListener("click", () => question.clear());
  byId("all").addEventListener("click", () => question.maximiseAll());
  byId("whatif").addEventListener("click", whatIf);
  byId("keys").addEventListener("click", () => byId("help").showModal());
  byId("again").addEventListener("click", () => { word(); solve(); });
  byId("list").addEventListener("click", () => { asList(!document.body.classList.contains("as-list")); graph.fit(); });
  byId("ask-next").addEventListener("toggle", askNext);
  byId("most").addEventListener("change", picture);
  byId("centre").addEventListener("click", () => centreOn(variable.id));
  byId("count").addEventListener("change", () => afterClick(() => { word(); solve(); }));
  byId("seconds").addEventListener("change", () => afterClick(word));
  for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button.dataset.copy));
  for (const button of byId("chosen").querySelectorAll("[data-role]")) {
    button.addEventListener("click", () => (button.dataset.role === "max" ? question.maximise(variable.id) : question.sum(variable.id)));
  }
  // The event knows what was pasted; words that were on their way may have put the question before it back into the address.
  window.addEventListener("hashchange", (event) => readLink(new URL(event.newURL).hash).then(picture).catch(complain));
  const first = location.hash || model.link;
  if (first) await readLink(first);
  else changed();
  await picture();
  document.body.dataset.ready = "true";
}

start().catch(complain);
