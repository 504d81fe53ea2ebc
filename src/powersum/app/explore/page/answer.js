// The answer: it falls into place while the server looks for it, and stays beside another one on demand.

import { listen, post, reportAddress } from "./api.js";
import { toJson } from "./question.js";
import { afterClick, byId, make, makeSvg, number, real } from "./text.js";

const MOST_LARGE = 12;
const AT_ONCE = 1;
const NOTHING = "Nothing is asked yet.";
const SLOW = "looking for it … The first hard question compiles code, for up to two minutes; that happens once.";

export class Answer {
  constructor({ changed, complain, say }) {
    this.changed = changed;
    this.complain = complain;
    this.say = say;
    this.now = null;
    this.kept = null;
    this.run = null;
    this.control = null;
    this.points = [];
    this.resting = false;
    byId("stop").addEventListener("click", () => this.stop());
    byId("glance").addEventListener("click", () => byId("answer").scrollIntoView({ block: "start" }));
    // At the bottom of a phone's screen as long as the answer is out of sight.
    new IntersectionObserver(([seen]) => byId("glance").classList.toggle("needed", !seen.isIntersecting)).observe(byId("now"));
  }

  get working() {
    return this.control !== null;
  }

  /** States of the answer by the numbers of the variables; of a long answer not all are shown, but all are known. */
  states() {
    if (!this.known) {
      const { states = [], assignment = [] } = this.now || {};
      this.known = new Map(assignment.map((one) => [one.id, one.state]));
      for (let k = 0; k < states.length; k += 2) this.known.set(states[k], states[k + 1]);
    }
    return this.known;
  }

  /** Nothing is asked. */
  rest() {
    this.leave();
    this.now = this.known = null;
    this.points = [];
    this.resting = true;
    this.draw();
    this.changed();
  }

  async ask(asked, costs) {
    this.leave();
    const control = (this.control = new AbortController());
    this.points = [];
    this.now = this.known = null;
    this.slow = this.resting = false;
    const late = setTimeout(() => { this.slow = true; this.draw(); }, 4000);
    this.draw();
    try {
      await listen("solve", { question: toJson(asked), ...costs }, control.signal, (kind, said) => {
        if (control === this.control) this.hear(kind, said);
      });
    } catch (error) {
      if (error.name !== "AbortError" && control === this.control) this.fail(error.message);
    }
    clearTimeout(late);
    if (control === this.control) {
      this.control = null;
      this.draw();
    }
  }

  /** Let go of a run that works for a question nobody asks any more; the server hears of it by the broken connection. */
  leave() {
    this.control?.abort();
    this.control = null;
    this.run = null;
    byId("report").hidden = true;
  }

  async stop() {
    if (!this.run) return;
    try {
      await post("stop", { run: this.run });
    } catch (error) {
      this.complain(error);
    }
  }

  hear(kind, said) {
    if (kind === "run") {
      this.run = said.id;
      return;
    }
    if (kind === "failed") {
      this.fail(said.error);
      return;
    }
    this.now = { ...said, working: kind === "snapshot" };
    this.known = null;
    this.points.push({ t: said.seconds, upper: real(said.log_upper), lower: real(said.log_lower) });
    if (kind === "result") {
      this.control = null;
      byId("report").href = reportAddress(this.run);
      byId("report").hidden = false;
      this.say(this.words());
    }
    this.draw();
    this.changed();
  }

  fail(message) {
    this.control = null;
    this.now = { failed: message, assignment: [] };
    this.known = null;
    this.draw();
  }

  words() {
    const states = (this.now.assignment || []).slice(0, MOST_LARGE).map((one) => one.name + " = " + one.label).join(", ");
    const share = this.now.probability ? "probability " + this.now.probability.text : "";
    if (this.now.utility) return [states, "expected utility " + this.now.utility, this.now.status].filter((part) => part).join(", ");
    return [states || "log value " + number(this.now.log_upper), share, this.now.status].filter((part) => part).join(", ");
  }

  /** Keep the present answer beside those that follow, or let it go. */
  keep(on) {
    this.kept = on ? this.now : null;
    this.draw();
  }

  draw() {
    afterClick(() => this.drawNow());
  }

  drawNow() {
    const now = this.now;
    const status = this.working ? "working" : now?.failed ? "failed" : now?.status || "";
    byId("status").textContent = status;
    byId("status").className = "status " + status;
    byId("stop").hidden = !this.working;
    byId("before").hidden = !this.kept;
    byId("now").querySelector("h3").hidden = !this.kept;
    const shown = this.resting ? [make("p", { class: "small" }, NOTHING)] : body(now, this.kept, this.slow);
    byId("now").querySelector(".body").replaceChildren(...shown);
    if (this.kept) byId("before").querySelector(".body").replaceChildren(...body(this.kept, null));
    byId("reason").textContent = now?.failed || [now?.reason, ...(now?.notes || [])].filter((part) => part).join(" ");
    byId("glance").textContent = this.resting ? "" : now?.failed || (now ? this.words() : "looking for it …");
    byId("glance").hidden = !byId("glance").textContent;
    this.drawBest();
    this.drawCurves();
  }

  drawBest() {
    const best = this.now?.best || [];
    byId("best").hidden = best.length < 2;
    if (best.length < 2) return;
    const items = best.map((one) => make("li", {},
      one.assignment.map((state) => state.name + " = " + state.label).join(", "),
      make("span", { class: "small" }, " " + (one.probability?.text || "log " + number(one.log_lower)) + (one.status === "optimal" ? "" : ", not proven"))));
    const next = real(this.now.log_upper_next);
    const after = next === -Infinity ? "There are no more." : "The next one has a log value of at most " + number(next) + ".";
    byId("best").replaceChildren(make("h3", {}, "The " + best.length + " best"), make("ol", {}, ...items), make("p", { class: "small" }, after));
  }

  /** Both bounds as steps; nothing where they met at once. */
  drawCurves() {
    const svg = byId("curves");
    const points = this.points.filter((p) => Number.isFinite(p.upper) || Number.isFinite(p.lower));
    const values = points.flatMap((p) => [p.upper, p.lower]).filter(Number.isFinite);
    // Bounds that only differ by rounding met at once.
    const flat = !values.length || Math.max(...values) - Math.min(...values) < 1e-4;
    // Nor is there anything to watch in an answer that was there at once.
    const quick = this.now?.status === "optimal" && this.now.seconds < AT_ONCE;
    const empty = points.length < 2 || flat || quick;
    svg.toggleAttribute("hidden", empty);
    if (empty) return;
    const box = svg.getBoundingClientRect(), width = box.width || 300, height = box.height || 100;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const last = points[points.length - 1].t || 1e-9, first = points[0].t;
    const low = Math.min(...values), high = Math.max(...values), room = Math.max(high - low, 1e-9);
    const x = (t) => 4 + ((t - first) / Math.max(last - first, 1e-9)) * (width - 8);
    const y = (v) => 16 + (1 - (v - low) / room) * (height - 34);
    const drawn = ["upper", "lower"].map((side) => {
      const known = points.filter((p) => Number.isFinite(p[side]));
      if (!known.length) return "";
      const steps = known.map((p, k) => (k ? `H${x(p.t)}V${y(p[side])}` : `M${x(p.t)} ${y(p[side])}`)).join("");
      return makeSvg("path", { class: side, d: steps + "H" + x(last) });
    });
    svg.replaceChildren(...drawn,
      makeSvg("text", { x: 4, y: 11 }, "log value between " + number(low, 5) + " and " + number(high, 5)),
      makeSvg("text", { x: width - 4, y: height - 3, "text-anchor": "end" }, number(last, 3) + " s"));
  }
}

function body(answer, other, slow = false) {
  if (!answer) return [make("p", { class: "small" }, slow ? SLOW : "looking for it …")];
  if (answer.failed) return [make("p", {}, "There is no answer.")];
  const lower = real(answer.log_lower), upper = real(answer.log_upper);
  const parts = [];
  const assigned = answer.assigned ?? answer.assignment?.length ?? 0;
  if (assigned) {
    const before = new Map((other?.assignment || []).map((one) => [one.id, one.label]));
    const items = answer.assignment.slice(0, MOST_LARGE).map((one) => {
      const changed = before.has(one.id) && before.get(one.id) !== one.label;
      return make("li", { class: changed ? "changed" : "" }, one.name + " = ", make("b", {}, one.label));
    });
    if (assigned > MOST_LARGE) items.push(make("li", { class: "small" }, "and " + (assigned - MOST_LARGE) + " more, on the report page"));
    parts.push(make("ul", { class: items.length > 4 ? "largest many" : "largest" }, ...items));
  }
  if (answer.status === "infeasible") parts.push(make("p", { class: "share" }, "Nothing is possible: what is observed has probability 0."));
  else if (answer.utility) parts.push(make("p", { class: "share" }, "expected utility ", make("b", { class: "whole" }, answer.utility)));
  else if (answer.probability) {
    const what = assigned ? "probability " : "probability of what is observed: ";
    parts.push(make("p", { class: "share" }, what, make("b", { class: "whole" }, answer.probability.text)));
  }
  const value = lower === upper || answer.status === "optimal"
    ? "log value = " + number(upper, 10)
    : number(lower, 8) + " ≤ log value ≤ " + number(upper, 8);
  if (!answer.utility) parts.push(make("p", { class: "bounds" }, value));
  return parts;
}
