// The picture: a box for each variable with its states as buttons, edges behind them, or the same boxes as a list.

import { byId, make, makeSvg, percent } from "./text.js";

const WORDS = { max: "maximised", sum: "summed", evidence: "observed" };

/** A line of a box: press it to observe the state. */
export function stateButton(variable, state, label, press) {
  const button = make("button", { type: "button", class: "state", "data-state": state, onclick: press },
    make("span", { class: "label" }, label),
    make("span", { class: "bar", "aria-hidden": "true" },
      make("i", { class: "possible" }), make("i", { class: "sure" }), make("i", { class: "before", hidden: true })),
    make("span", { class: "percent" }));
  button.title = variable.name + " = " + label;
  return button;
}

/** Room for the longest label, the same in all lines of a box: bars begin below each other. */
export function labelRoom(element, states) {
  element.style.setProperty("--label", 0.66 * Math.max(4, ...states.map((label) => [...label].length + 2)) + "em");
}

/** Show the belief of a state, that before a change, whether it is observed, and whether the answer has it. */
export function showState(button, { name, belief, before, observed, best }) {
  const label = button.querySelector(".label").textContent;
  const text = belief ? percent(belief) : "";
  const [sure, possible, old] = ["sure", "possible", "before"].map((kind) => button.querySelector("." + kind));
  sure.style.width = (belief ? 100 * belief[0] : 0) + "%";
  possible.style.width = (belief ? 100 * belief[1] : 0) + "%";
  old.hidden = !before;
  if (before) old.style.width = (100 * (before[0] + before[1])) / 2 + "%";
  button.querySelector(".percent").textContent = text;
  button.setAttribute("aria-pressed", String(observed));
  button.classList.toggle("best", best);
  const parts = ["observe " + name + " = " + label, text, before ? "before " + percent(before) : "", best ? "in the answer" : ""];
  button.setAttribute("aria-label", parts.filter((part) => part).join(", "));
}

/** A name whose end stays readable where its middle has no room: long names often differ in their ends only. */
function inTwo(name) {
  const letters = [...name];
  if (letters.length <= 12) return [name];
  return [make("span", { class: "head" }, letters.slice(0, -5).join("")), make("span", {}, letters.slice(-5).join(""))];
}

export class Graph {
  constructor(question, { choose, centre }) {
    this.question = question;
    this.choose = choose;
    this.centre = centre;
    this.picture = { boxes: [], edges: [] };
    this.kinds = {};
    this.scale = 1;
    this.chosen = null;
    this.reached = null;
    this.elements = new Map();
    this.scroll = byId("scroll");
    this.stage = byId("stage");
    byId("smaller").addEventListener("click", () => this.zoom(this.scale / 1.2));
    byId("larger").addEventListener("click", () => this.zoom(this.scale * 1.2));
    byId("fit").addEventListener("click", () => this.fit());
    this.scroll.addEventListener("keydown", (event) => this.pressed(event));
    this.setUpDragging();
  }

  get ids() {
    return this.picture.boxes.map((box) => box.id);
  }

  widest() {
    return Math.max(2, Math.min(8, Math.floor(this.scroll.clientWidth / 200)));
  }

  draw(picture) {
    const focused = this.scroll.contains(document.activeElement) ? document.activeElement.closest(".box")?.dataset.id : null;
    this.picture = picture;
    this.elements = new Map(picture.boxes.map((box) => [box.id, this.box(box)]));
    byId("boxes").replaceChildren(...this.elements.values());
    this.drawEdges();
    this.stage.style.width = picture.width + "px";
    this.stage.style.height = picture.height + "px";
    this.fit();
    const again = focused && this.elements.get(Number(focused));
    if (again) again.focus({ preventScroll: true });
    else if (picture.boxes.length) this.rove(picture.boxes[0].id);
  }

  box(box) {
    const press = (state) => () => this.question.observe(box.id, state);
    const hidden = box.hidden > 0;
    const element = make("article", { class: "box", role: "group", tabindex: "-1", "data-id": box.id },
      make("header", {},
        make("button", {
          type: "button", class: "name", title: box.name, "aria-label": "all about " + box.name, onclick: () => this.choose(box.id, true),
        }, ...inTwo(box.name)),
        hidden ? make("button", {
          type: "button", class: "more", title: box.hidden + " neighbours are not drawn: centre here",
          "aria-label": "show " + box.hidden + " more neighbours of " + box.name, onclick: () => this.centre(box.id),
        }, "+" + box.hidden) : "",
        make("button", { type: "button", class: "role", "aria-label": "maximise " + box.name, onclick: () => this.toggle(box.id) }, "max")),
      make("ul", {}, ...box.states.map((label, state) => make("li", {}, stateButton(box, state, label, press(state)))),
        box.state_count > box.states.length
          ? make("li", {}, make("button", { type: "button", class: "others", onclick: () => this.choose(box.id, true) }, "all " + box.state_count + " states"))
          : ""));
    labelRoom(element, box.states);
    element.style.left = box.x + "px";
    element.style.top = box.y + "px";
    element.style.width = box.width + "px";
    element.style.height = box.height + "px";
    element.addEventListener("focusin", () => this.rove(box.id));
    for (const button of element.querySelectorAll("button")) button.tabIndex = -1;
    return element;
  }

  toggle(id) {
    if (this.question.roleOf(id) === "max") this.question.sum(id);
    else this.question.maximise(id);
  }

  drawEdges() {
    const svg = byId("edges");
    const arrows = makeSvg("defs");
    const marker = makeSvg("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 10, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" });
    marker.append(makeSvg("path", { d: "M0 0 8 4 0 8z" }));
    arrows.append(marker);
    const places = new Map(this.picture.boxes.map((box) => [box.id, box]));
    const lines = this.picture.edges.map(([from, to], number) => {
      const route = this.picture.routes[number];
      const d = route ? between(route) : straight(places.get(from), places.get(to));
      const line = makeSvg("path", { d, "data-from": from, "data-to": to });
      if (this.picture.directed) line.setAttribute("marker-end", "url(#tip)");
      return line;
    });
    svg.setAttribute("width", this.picture.width);
    svg.setAttribute("height", this.picture.height);
    svg.replaceChildren(arrows, ...lines);
  }

  /** Roles, beliefs, those before a change, and the states of the answer. */
  show({ beliefs, before, answer, waiting }) {
    byId("boxes").classList.toggle("waiting", Boolean(waiting));
    for (const box of this.picture.boxes) {
      const element = this.elements.get(box.id), role = this.question.roleOf(box.id);
      const leaning = Boolean(this.question.leaningOf(box.id));
      element.className = "box " + role + " " + (this.kinds[box.id] || "") + (leaning ? " leaning" : "") + (box.id === this.chosen ? " chosen" : "");
      element.setAttribute("aria-label", box.name + ", " + (this.kinds[box.id] || WORDS[role]) + (leaning ? ", with uncertain evidence" : ""));
      element.querySelector(".role").setAttribute("aria-pressed", String(role === "max"));
      for (const button of element.querySelectorAll(".state")) {
        const state = Number(button.dataset.state);
        showState(button, {
          name: box.name,
          belief: beliefs?.[box.id]?.[state],
          before: before?.[box.id]?.[state],
          observed: this.question.stateOf(box.id) === state,
          best: (role === "max" || this.kinds[box.id] === "decision") && answer.get(box.id) === state,
        });
      }
    }
    for (const line of byId("edges").querySelectorAll("[data-from]")) {
      const near = this.chosen !== null && [line.dataset.from, line.dataset.to].includes(String(this.chosen));
      line.classList.toggle("near", near);
    }
  }

  /** One box for Tab, and the buttons in it; arrows lead to the others. */
  rove(id) {
    if (this.reached === id && this.elements.get(id)?.tabIndex === 0) return;
    for (const other of [this.reached, id]) {
      const element = this.elements.get(other);
      if (!element) continue;
      for (const one of [element, ...element.querySelectorAll("button")]) one.tabIndex = other === id ? 0 : -1;
    }
    this.reached = id;
  }

  focus(id) {
    const element = this.elements.get(id);
    if (!element) return;
    element.focus();
    element.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  pressed(event) {
    const element = event.target.closest(".box");
    if (!element || event.ctrlKey || event.metaKey || event.altKey) return;
    const id = Number(element.dataset.id);
    const box = this.picture.boxes.find((other) => other.id === id);
    const acts = {
      ArrowLeft: () => this.step(box, -1, 0), ArrowRight: () => this.step(box, 1, 0),
      ArrowUp: () => this.step(box, 0, -1), ArrowDown: () => this.step(box, 0, 1),
      m: () => this.question.maximise(id), s: () => this.question.sum(id), c: () => this.centre(id),
    };
    if (event.key === "Enter" && event.target === element) acts.Enter = () => this.choose(id, true);
    const digit = Number(event.key);
    if (digit >= 1 && digit <= box.state_count) acts[event.key] = () => this.question.observe(id, digit - 1);
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  }

  /** To the nearest box in a direction; in the list, to the next one. */
  step(from, dx, dy) {
    if (document.body.classList.contains("as-list")) {
      const next = this.picture.boxes[this.picture.boxes.indexOf(from) + (dx + dy)];
      if (next) this.focus(next.id);
      return;
    }
    let best = null, least = Infinity;
    for (const box of this.picture.boxes) {
      const x = box.x - from.x, y = box.y + box.height / 2 - from.y - from.height / 2;
      const along = x * dx + y * dy, across = Math.abs(x * dy) + Math.abs(y * dx);
      if (box === from || along < 5) continue;
      const cost = along + 2 * across;
      if (cost < least) [best, least] = [box, cost];
    }
    if (best) this.focus(best.id);
  }

  zoom(scale) {
    this.scale = Math.max(0.25, Math.min(2, scale));
    this.stage.style.transform = "scale(" + this.scale + ")";
    // The room that is scrolled is that of the stage as it is seen.
    this.stage.style.marginRight = (this.scale - 1) * this.picture.width + "px";
    this.stage.style.marginBottom = (this.scale - 1) * this.picture.height + "px";
    const spare = this.scroll.clientWidth - this.scale * this.picture.width;
    this.stage.style.marginLeft = Math.max(0, spare / 2) + "px";
  }

  fit() {
    const room = this.scroll.clientWidth;
    this.zoom(Math.max(0.55, Math.min(1, room / Math.max(this.picture.width, 1))));
  }

  setUpDragging() {
    let held = null;
    this.scroll.addEventListener("pointerdown", (event) => {
      if (event.pointerType !== "mouse" || event.button !== 0 || event.target.closest(".box")) return;
      held = { x: event.clientX + this.scroll.scrollLeft, y: event.clientY + this.scroll.scrollTop };
    });
    window.addEventListener("pointermove", (event) => {
      if (held) this.scroll.scrollTo(held.x - event.clientX, held.y - event.clientY);
    });
    window.addEventListener("pointerup", () => { held = null; });
  }
}

/** Down the stretches of a way, [x, top, bottom] each, aside between the rows. */
function between(route) {
  return route.map(([x, top, bottom], number) => {
    // A line without length would turn the arrow's tip anywhere.
    const line = `${x} ${top}` + (bottom > top + 0.1 ? `L${x} ${bottom}` : "");
    if (number === 0) return "M" + line;
    const [before, , from] = route[number - 1], middle = (from + top) / 2;
    return `C${before} ${middle} ${x} ${middle} ${line}`;
  }).join("");
}

/** From the rim of one box to the rim of another. */
function straight(from, to) {
  const a = { x: from.x + from.width / 2, y: from.y + from.height / 2 };
  const b = { x: to.x + to.width / 2, y: to.y + to.height / 2 };
  const [start, end] = [rim(a, b, from), rim(b, a, to)];
  return `M${start.x} ${start.y}L${end.x} ${end.y}`;
}

function rim(inside, outside, box) {
  const dx = outside.x - inside.x, dy = outside.y - inside.y;
  const share = Math.min(Math.abs(dx) > 1e-9 ? box.width / 2 / Math.abs(dx) : Infinity, Math.abs(dy) > 1e-9 ? box.height / 2 / Math.abs(dy) : Infinity);
  const t = Math.min(share, 1);
  return { x: inside.x + t * dx, y: inside.y + t * dy };
}
