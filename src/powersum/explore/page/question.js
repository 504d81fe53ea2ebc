// The question: what is observed and what is maximised, with all that came before it.

const copyOf = (asked) => ({ max: asked.max === "all" ? "all" : [...asked.max], evidence: new Map(asked.evidence) });
const keyOf = (asked) => JSON.stringify(toJson(asked));

export const toJson = (asked) => ({ max: asked.max, evidence: [...asked.evidence] });

export class Question {
  constructor(total, changed) {
    this.total = total;
    this.changed = changed;
    this.now = { max: [], evidence: new Map() };
    this.past = [];
    this.future = [];
  }

  roleOf(id) {
    if (this.now.evidence.has(id)) return "evidence";
    return this.now.max === "all" || this.now.max.includes(id) ? "max" : "sum";
  }

  stateOf(id) {
    return this.now.evidence.get(id);
  }

  set(asked, { remember = true } = {}) {
    if (keyOf(asked) === keyOf(this.now)) return;
    if (remember) {
      this.past.push(this.now);
      this.future = [];
    }
    this.now = asked;
    this.changed();
  }

  /** Observe a state; the state that is observed already is taken back. */
  observe(id, state) {
    const next = copyOf(this.now);
    if (next.evidence.get(id) === state) {
      next.evidence.delete(id);
    } else {
      next.evidence.set(id, state);
      if (next.max !== "all") next.max = next.max.filter((other) => other !== id);
      else next.max = this.allBut(next);
    }
    this.set(next);
  }

  maximise(id) {
    const next = copyOf(this.now);
    next.evidence.delete(id);
    if (next.max !== "all" && !next.max.includes(id)) next.max.push(id);
    this.set(next);
  }

  sum(id) {
    const next = copyOf(this.now);
    next.evidence.delete(id);
    if (next.max === "all") next.max = this.allBut(next);
    next.max = next.max.filter((other) => other !== id);
    this.set(next);
  }

  maximiseAll() {
    const next = copyOf(this.now);
    next.max = next.evidence.size ? this.allBut(next) : "all";
    this.set(next);
  }

  allBut(next) {
    return Array.from({ length: this.total }, (_, id) => id).filter((id) => !next.evidence.has(id));
  }

  clear() {
    this.set({ max: [], evidence: new Map() });
  }

  undo() {
    if (!this.past.length) return;
    this.future.push(this.now);
    this.set(this.past.pop(), { remember: false });
  }

  redo() {
    if (!this.future.length) return;
    this.past.push(this.now);
    this.set(this.future.pop(), { remember: false });
  }
}

/** The question of an address, by names; the server knows their numbers. */
export function fromLink(hash) {
  const asked = { max: [], evidence: [] };
  for (const part of hash.replace(/^#/, "").split("&")) {
    const [key, value = ""] = part.split("=");
    const words = value.split(",").filter((word) => word);
    if (key === "all") asked.max = "all";
    else if (key === "max") asked.max = words.map(decodeURIComponent);
    else if (key === "see") asked.evidence = words.map((pair) => pair.split(":").map(decodeURIComponent));
  }
  return asked;
}

export const fromJson = (said) => ({ max: said.max, evidence: new Map(said.evidence) });
