// The question: what is observed, for certain or only leaning, and what is maximised, with all that came before it.

const nothing = () => ({ max: [], evidence: new Map(), leanings: new Map() });
const copyOf = (asked) => ({
  max: asked.max === "all" ? "all" : [...asked.max], evidence: new Map(asked.evidence), leanings: new Map(asked.leanings),
});
const keyOf = (asked) => JSON.stringify(toJson(asked));

/** All evidence as pairs: of a variable and its state, or the likelihoods of all its states. */
export const evidenceOf = (asked) => [...asked.evidence, ...asked.leanings];
export const toJson = (asked) => ({ max: asked.max, evidence: evidenceOf(asked) });

export class Question {
  constructor(total, changed) {
    this.total = total;
    this.changed = changed;
    this.now = nothing();
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

  leaningOf(id) {
    return this.now.leanings.get(id);
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
      next.leanings.delete(id);
      if (next.max !== "all") next.max = next.max.filter((other) => other !== id);
      else next.max = this.allBut(next);
    }
    this.set(next);
  }

  /** Likelihoods of all states of a variable; none takes them back. */
  lean(id, likelihoods) {
    const next = copyOf(this.now);
    if (likelihoods) {
      next.evidence.delete(id);
      next.leanings.set(id, likelihoods);
    } else {
      next.leanings.delete(id);
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
    this.set(nothing());
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
    else if (key === "see") asked.evidence.push(...words.map((pair) => pair.split(":").map(decodeURIComponent)));
    else if (key === "lean") asked.evidence.push(...words.map(leaning));
  }
  return asked;
}

function leaning(pair) {
  const [name, numbers = ""] = pair.split(":");
  return [decodeURIComponent(name), numbers.split(";").map(Number)];
}

export const fromJson = (said) => ({
  max: said.max,
  evidence: new Map(said.evidence.filter(([, known]) => !Array.isArray(known))),
  leanings: new Map(said.evidence.filter(([, known]) => Array.isArray(known))),
});
