// Numbers as people read them, and elements made of names and text; text from outside is never taken for HTML.

export const real = (x) => (x === "-inf" ? -Infinity : x === "inf" ? Infinity : x);

export function number(value, digits = 7) {
  const x = real(value);
  if (x === Infinity) return "∞";
  if (x === -Infinity) return "−∞";
  // What is nothing but rounding is 0.
  return String(Number((Math.abs(x) < 1e-10 ? 0 : x).toPrecision(digits))).replace("-", "−");
}

function percentOf(x) {
  const p = 100 * x;
  if (p === 0 || p === 100) return String(p);
  // Never shown as certain or impossible by rounding alone.
  if (p > 99.9) return ">99.9";
  if (p < 0.1) return "<0.1";
  return p >= 9.995 ? p.toFixed(1) : p.toFixed(2);
}

export function percent([lower, upper]) {
  // Sides that only rounding has parted are one number to the digits shown.
  if (upper - lower < 1e-4) return percentOf((lower + upper) / 2) + " %";
  if (lower === 0 && upper === 1) return "?";
  const a = Math.floor(100 * lower), b = Math.ceil(100 * upper);
  return a + "–" + b + " %";
}

export function make(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "class") made.className = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...inside);
  return made;
}

const svgNames = "http://www.w3.org/2000/svg";

export function makeSvg(name, attributes = {}, text) {
  const made = document.createElementNS(svgNames, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

let pressed = false;
const waiting = [];
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const kind of ["pointerup", "pointercancel", "blur"]) {
  addEventListener(kind, () => {
    pressed = false;
    setTimeout(() => { for (const act of waiting.splice(0)) act(); });
  }, true);
}

/** Act now, or after the click that is under way: a button that moves between press and release is never clicked. */
export function afterClick(act) {
  if (pressed) waiting.push(act);
  else act();
}

export const byId = (id) => document.getElementById(id);
