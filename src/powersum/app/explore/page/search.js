// The box to find a variable: a combobox whose list comes from the server.

import { get } from "./api.js";
import { byId, make } from "./text.js";

export function setUpSearch(go, complain) {
  const box = byId("search"), list = byId("found");
  let found = [], at = -1, asked = 0;

  const close = () => {
    list.hidden = true;
    at = -1;
    box.setAttribute("aria-expanded", "false");
    box.removeAttribute("aria-activedescendant");
  };
  const choose = (variable) => {
    close();
    box.value = "";
    go(variable.id);
  };
  const mark = (next) => {
    at = next;
    [...list.children].forEach((item, row) => item.setAttribute("aria-selected", String(row === at)));
    if (at >= 0 && list.children[at]) {
      box.setAttribute("aria-activedescendant", list.children[at].id);
      list.children[at].scrollIntoView({ block: "nearest" });
    }
  };
  const show = (variables) => {
    found = variables;
    list.replaceChildren(...found.map((variable, row) =>
      make("li", { role: "option", id: "found-" + row, onmousedown: (event) => { event.preventDefault(); choose(variable); } },
        variable.name)));
    if (!found.length) list.replaceChildren(make("li", { role: "option", "aria-disabled": "true" }, "no variable has this in its name"));
    list.hidden = false;
    box.setAttribute("aria-expanded", "true");
    mark(found.length ? 0 : -1);
  };

  box.addEventListener("input", async () => {
    const mine = (asked += 1);
    if (!box.value.trim()) return close();
    try {
      const variables = await get("search?text=" + encodeURIComponent(box.value));
      // Answers may come in another order than they were asked for.
      if (mine === asked) show(variables);
    } catch (error) {
      complain(error);
    }
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && found.length) mark((at + 1) % found.length);
    else if (event.key === "ArrowUp" && found.length) mark((at + found.length - 1) % found.length);
    else if (event.key === "Enter" && !list.hidden && found[at]) choose(found[at]);
    else if (event.key === "Escape") { close(); box.blur(); }
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("blur", close);
}
