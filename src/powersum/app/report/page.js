"use strict";
(function () {
  const result = JSON.parse(document.getElementById("result").textContent);
  const svgNames = "http://www.w3.org/2000/svg";
  const real = (x) => (x === "-inf" ? -Infinity : x === "inf" ? Infinity : x);
  const words = (x, digits) => {
    if (x === -Infinity) return "−∞";
    if (x === Infinity) return "∞";
    return String(Number(x.toPrecision(digits))).replace("-", "−");
  };
  const element = (parent, name, attributes, text) => {
    const made = document.createElementNS(svgNames, name);
    for (const key of Object.keys(attributes)) made.setAttribute(key, attributes[key]);
    if (text !== undefined) made.textContent = text;
    return parent.appendChild(made);
  };

  // The chart: bounds hold from the moment they are known, so they are drawn as steps.
  const chart = document.getElementById("chart");
  if (chart) drawChart();

  function drawChart() {
    const points = result.history.map((s) => ({ t: s.seconds, upper: real(s.log_upper), lower: real(s.log_lower) }));
    const readout = document.getElementById("readout");
    const last = points.length ? points[points.length - 1].t : 0;
    const first = points.length ? points[0].t : 0;
    const everything = { from: 0, to: Math.max(last * 1.02, 1e-6) };
    const pad = { left: 64, right: 14, top: 14, bottom: 34 };
    let view = { from: everything.from, to: everything.to };
    let logTime = false;
    let cursor = null;
    let dragged = null;
    let size = { width: 0, height: 0 };

    const earliest = Math.max(Math.min(first, last) * 0.8, last * 1e-4, 1e-6);
    const warp = (t) => (logTime ? Math.log(Math.max(t, earliest)) : t);
    const unwarp = (w) => (logTime ? Math.exp(w) : w);
    const xOf = (t) => {
      const low = warp(view.from), high = warp(view.to);
      return pad.left + ((warp(t) - low) / (high - low || 1)) * (size.width - pad.left - pad.right);
    };
    const timeAt = (x) => {
      const low = warp(view.from), high = warp(view.to);
      return unwarp(low + ((x - pad.left) / (size.width - pad.left - pad.right)) * (high - low));
    };
    const at = (t) => {
      let found = -1;
      for (let k = 0; k < points.length && points[k].t <= t; k += 1) found = k;
      return found;
    };

    function ticks(low, high, count) {
      const raw = (high - low) / count;
      const unit = Math.pow(10, Math.floor(Math.log10(raw)));
      const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw) || raw;
      const found = [];
      for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * step; k += 1) found.push(Number((k * step).toPrecision(12)));
      return found;
    }

    function timeTicks() {
      if (!logTime) return ticks(view.from, view.to, size.width < 420 ? 4 : 7);
      const found = [];
      const low = Math.floor(Math.log10(Math.max(view.from, earliest)));
      for (let power = low; Math.pow(10, power) <= view.to; power += 1) {
        for (const m of [1, 2, 5]) found.push(Number((m * Math.pow(10, power)).toPrecision(3)));
      }
      return found.filter((t) => t >= view.from && t <= view.to);
    }

    function valueRange() {
      // What is seen: the points inside the view, and the one that still holds at its start.
      const start = Math.max(at(view.from), 0);
      const seen = points.filter((p, k) => k >= start && p.t <= view.to);
      const upper = seen.map((p) => p.upper).filter(Number.isFinite);
      const lower = seen.map((p) => p.lower).filter(Number.isFinite);
      const all = upper.concat(lower);
      if (!all.length) return null;
      let low = Math.min.apply(null, all), high = Math.max.apply(null, all);
      // A first bound that is far off would flatten all that follows; zooming out is always possible in time.
      if (upper.length > 2 && upper[0] - low > 3 * (upper[1] - low) && upper[1] > low) high = upper[1];
      // Bounds that have met are a line in the middle, not a forest of digits.
      const room = high - low > 1e-6 ? (high - low) * 0.08 : 0.5;
      return { low: low - room, high: high + room };
    }

    function draw() {
      const box = chart.getBoundingClientRect();
      size = { width: Math.max(box.width, 200), height: Math.max(box.height, 160) };
      chart.setAttribute("viewBox", "0 0 " + size.width + " " + size.height);
      chart.replaceChildren();
      const range = valueRange();
      if (!range) {
        const told = "log value = " + words(real(result.log_upper), 10);
        element(chart, "text", { x: size.width / 2, y: size.height / 2, "text-anchor": "middle" }, told);
        return;
      }
      const bottom = size.height - pad.bottom;
      const yOf = (v) => bottom - ((Math.min(v, range.high) - range.low) / (range.high - range.low)) * (bottom - pad.top);
      const right = size.width - pad.right;
      const clip = element(element(chart, "defs", {}), "clipPath", { id: "inside" });
      element(clip, "rect", { x: pad.left, y: 0, width: Math.max(right - pad.left, 1), height: size.height });
      for (const v of ticks(range.low, range.high, 5)) {
        element(chart, "line", { class: "grid", x1: pad.left, x2: right, y1: yOf(v), y2: yOf(v) });
        element(chart, "text", { x: pad.left - 6, y: yOf(v) + 4, "text-anchor": "end" }, words(v, 8));
      }
      for (const t of timeTicks()) {
        element(chart, "text", { x: xOf(t), y: size.height - 16, "text-anchor": "middle" }, words(t, 4));
      }
      element(chart, "text", { x: right, y: size.height - 2, "text-anchor": "end" }, "seconds");
      const inside = element(chart, "g", { "clip-path": "url(#inside)" });
      for (const side of ["upper", "lower"]) {
        const known = points.filter((p) => Number.isFinite(p[side]));
        if (!known.length) continue;
        let path = "";
        known.forEach((p, k) => { path += (k ? "H" + xOf(p.t) + "V" + yOf(p[side]) : "M" + xOf(p.t) + " " + yOf(p[side])); });
        path += "H" + xOf(Math.max(view.to, last));
        element(inside, "path", { class: "curve " + side, d: path });
        const end = known[known.length - 1];
        const place = { class: "dot " + side, cx: xOf(end.t), cy: yOf(end[side]), r: 4 };
        element(inside, "circle", place);
      }
      const lowest = points[points.length - 1];
      const legend = element(chart, "text", { x: right, y: 12, "text-anchor": "end" });
      const name = document.createElementNS(svgNames, "tspan");
      name.setAttribute("fill", "var(--upper)");
      name.textContent = "upper " + words(lowest.upper, 7);
      legend.appendChild(name);
      if (Number.isFinite(lowest.lower)) {
        const other = document.createElementNS(svgNames, "tspan");
        other.setAttribute("fill", "var(--lower)");
        other.textContent = "   lower " + words(lowest.lower, 7);
        legend.appendChild(other);
      }
      if (cursor !== null) {
        const p = points[cursor];
        element(inside, "line", { class: "cursor", x1: xOf(p.t), x2: xOf(p.t), y1: pad.top, y2: bottom });
        for (const side of ["upper", "lower"]) {
          if (Number.isFinite(p[side])) element(inside, "circle", { class: "dot " + side, cx: xOf(p.t), cy: yOf(p[side]), r: 5 });
        }
      }
      if (dragged) {
        const [a, b] = [Math.min(dragged.from, dragged.to), Math.max(dragged.from, dragged.to)];
        element(inside, "rect", { class: "drag", x: a, y: pad.top, width: b - a, height: bottom - pad.top });
      }
    }

    function read(k) {
      cursor = k;
      const p = points[k];
      readout.textContent = words(p.t, 4) + " s: " + words(p.lower, 10) + " ≤ log value ≤ " + words(p.upper, 10);
      draw();
    }

    function look(from, to) {
      const least = Math.max(everything.to * 1e-6, 1e-9);
      view = { from: Math.max(from, 0), to: Math.min(Math.max(to, from + least), everything.to) };
      draw();
    }

    function zoom(factor) {
      const centre = cursor === null ? (view.from + view.to) / 2 : points[cursor].t;
      look(centre - (centre - view.from) * factor, centre + (view.to - centre) * factor);
    }

    const zooms = {
      in: () => zoom(0.5),
      out: () => zoom(2),
      all: () => look(everything.from, everything.to),
      log: () => {
        logTime = !logTime;
        document.querySelector("[data-zoom=log]").setAttribute("aria-pressed", String(logTime));
        draw();
      },
    };
    for (const button of document.querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", () => zooms[button.dataset.zoom]());
    }
    const placeOf = (event) => event.clientX - chart.getBoundingClientRect().left;
    chart.addEventListener("pointermove", (event) => {
      if (!points.length) return;
      if (dragged) dragged.to = placeOf(event);
      read(Math.max(at(timeAt(placeOf(event))), 0));
    });
    chart.addEventListener("pointerdown", (event) => {
      if (event.pointerType === "mouse" && event.button === 0) dragged = { from: placeOf(event), to: placeOf(event) };
    });
    window.addEventListener("pointerup", () => {
      if (!dragged) return;
      const [a, b] = [Math.min(dragged.from, dragged.to), Math.max(dragged.from, dragged.to)];
      dragged = null;
      if (b - a > 8) look(timeAt(a), timeAt(b));
      else draw();
    });
    chart.addEventListener("dblclick", zooms.all);
    chart.addEventListener("keydown", (event) => {
      if (!points.length || event.ctrlKey || event.metaKey || event.altKey) return;
      const now = cursor === null ? points.length - 1 : cursor;
      const moves = {
        ArrowLeft: () => read(Math.max(now - 1, 0)),
        ArrowRight: () => read(Math.min(now + 1, points.length - 1)),
        Home: () => read(0),
        End: () => read(points.length - 1),
        "+": zooms.in, "=": zooms.in, "-": zooms.out, "0": zooms.all, l: zooms.log,
      };
      if (!moves[event.key]) return;
      event.preventDefault();
      moves[event.key]();
    });
    window.addEventListener("resize", draw);
    draw();
  }

  // The graph: a variable lights up together with its rows.
  const graph = document.querySelector(".graph");
  const pointed = document.getElementById("pointed");
  function light(variable) {
    for (const lit of document.querySelectorAll(".lit")) lit.classList.remove("lit");
    if (variable === undefined) return;
    for (const found of document.querySelectorAll('[data-variable="' + variable + '"]')) {
      found.classList.add("lit");
      const title = found.querySelector("title");
      if (title) pointed.textContent = title.textContent;
    }
  }
  document.addEventListener("pointerover", (event) => {
    const found = event.target.closest("[data-variable]");
    if (found) light(found.dataset.variable);
  });
  document.addEventListener("focusin", (event) => {
    const found = event.target.closest("[data-variable]");
    if (found) light(found.dataset.variable);
  });
  // Rows are reached with the arrow keys once a table has the focus: one stop for Tab, not thousands.
  for (const scroll of document.querySelectorAll(".tall")) {
    scroll.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      const rows = Array.from(scroll.querySelectorAll("tbody tr:not([hidden])"));
      const next = rows[Math.min(Math.max(rows.indexOf(document.activeElement) + step, 0), rows.length - 1)];
      if (next) { event.preventDefault(); next.focus(); }
    });
  }
  if (graph) {
    const whole = graph.viewBox.baseVal;
    const full = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
    let frame = Object.assign({}, full);
    let held = null;
    const show = () => graph.setAttribute("viewBox", [frame.x, frame.y, frame.width, frame.height].join(" "));
    const scale = (factor) => {
      const width = Math.min(full.width, frame.width * factor), height = Math.min(full.height, frame.height * factor);
      frame = { x: frame.x + (frame.width - width) / 2, y: frame.y + (frame.height - height) / 2, width, height };
      if (width === full.width) frame = Object.assign({}, full);
      show();
    };
    const views = { in: () => scale(0.7), out: () => scale(1 / 0.7), all: () => scale(1e9) };
    for (const button of document.querySelectorAll("[data-graph]")) {
      button.addEventListener("click", () => views[button.dataset.graph]());
    }
    graph.addEventListener("pointerdown", (event) => { held = { x: event.clientX, y: event.clientY }; });
    window.addEventListener("pointerup", () => { held = null; });
    graph.addEventListener("pointermove", (event) => {
      if (!held) return;
      const unit = frame.width / graph.getBoundingClientRect().width;
      frame.x -= (event.clientX - held.x) * unit;
      frame.y -= (event.clientY - held.y) * unit;
      held = { x: event.clientX, y: event.clientY };
      show();
    });
  }

  for (const box of document.querySelectorAll("[data-filter]")) {
    const rows = document.querySelectorAll("#table-" + box.dataset.filter + " tbody tr");
    box.addEventListener("input", () => {
      const wanted = box.value.toLowerCase();
      for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  }

  document.getElementById("save").addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([document.getElementById("result").textContent], { type: "application/json" }));
    link.download = "result.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });
})();
