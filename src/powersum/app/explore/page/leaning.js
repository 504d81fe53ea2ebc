// Evidence that is not certain: a likelihood for each state of the variable that is chosen.

import { byId, make } from "./text.js";

export function setUpLeaning(question, complain) {
  let variable = null;
  const inputs = () => [...byId("lean-states").querySelectorAll("input")];

  byId("lean-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const numbers = inputs().map((input) => input.valueAsNumber);
    if (!numbers.every((number) => number >= 0 && number < Infinity)) complain(new Error("Give each state a likelihood, 0 or more."));
    else if (!numbers.some((number) => number > 0)) complain(new Error("Some state must have a likelihood above 0."));
    else question.lean(variable.id, numbers);
  });
  byId("lean-back").addEventListener("click", () => question.lean(variable.id, null));

  return {
    /** The variable whose likelihoods can be set now; of one with too many states not all are known here. */
    offer(chosen) {
      variable = chosen;
      byId("lean").hidden = chosen.state_count > chosen.states.length;
      byId("lean-states").replaceChildren(...chosen.states.map((label) => make("li", {}, make("label", {},
        make("span", { class: "label" }, label),
        make("input", { type: "number", min: 0, step: "any", required: true, inputmode: "decimal", value: 1 })))));
      byId("lean").open = Boolean(question.leaningOf(chosen.id));
    },
    /** The numbers of the question, unless somebody is typing others. */
    show() {
      const known = variable && question.leaningOf(variable.id);
      byId("lean-back").disabled = !known;
      if (byId("lean").contains(document.activeElement)) return;
      inputs().forEach((input, state) => { input.value = known ? known[state] : 1; });
    },
  };
}
