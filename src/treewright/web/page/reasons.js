/** The features for and against a tree or an arc; pointing at one highlights its arcs. */

import { make } from "./make.js";
import { light } from "./trees.js";

/** Make the lists of features for and against, with totals; `pictureOf` returns the drawing of a tree. */
export function renderReasons({ listed, totalFor, totalAgainst, names, pictureOf }) {
  const sides = [
    [names[0], totalFor, listed.filter((one) => one.weight > 0)],
    [names[1], totalAgainst, listed.filter((one) => one.weight < 0)],
  ];
  return make(
    "div",
    { class: "reasons" },
    balance(totalFor, totalAgainst),
    sides.map(([name, total, features]) =>
      make(
        "section",
        {},
        make("h4", {}, name, " ", make("span", { class: "number" }, weigh(total))),
        features.length
          ? make(
              "ul",
              {},
              features.map((one) => reason(one, pictureOf)),
            )
          : make("p", { class: "hint" }, total ? "Only features with small weights." : "No features."),
      ),
    ),
  );
}

function reason({ sentence, text, weight, arcs, rank }, pictureOf) {
  const show = () => light(pictureOf(rank), arcs);
  const hide = () => button.getAttribute("aria-pressed") === "true" || light(pictureOf(rank), []);
  const button = make(
    "button",
    {
      type: "button",
      class: "reason",
      "aria-pressed": "false",
      "data-arcs": arcs.join(" "),
      onpointerenter: show,
      onpointerleave: hide,
      onfocus: show,
      onblur: () => {
        button.setAttribute("aria-pressed", "false");
        hide();
      },
      onclick: () => {
        const isPressed = button.getAttribute("aria-pressed") === "true";
        button.setAttribute("aria-pressed", String(!isPressed));
        if (isPressed) hide();
        else show();
      },
    },
    make("span", { class: "sentence" }, sentence || text),
    make("span", { class: weight < 0 ? "number against" : "number" }, weigh(weight)),
  );
  return make("li", {}, button);
}

/** Make a bar that compares the totals for and against. */
function balance(totalFor, totalAgainst) {
  const whole = totalFor - totalAgainst;
  if (!whole) return null;
  const made = make(
    "span",
    { class: "balance", "aria-hidden": "true" },
    make("span", { class: "for" }),
    make("span", { class: "against" }),
  );
  made.firstChild.style.inlineSize = `${(100 * totalFor) / whole}%`;
  made.lastChild.style.inlineSize = `${(-100 * totalAgainst) / whole}%`;
  return made;
}

function weigh(weight) {
  const size = Math.abs(weight);
  const sign = weight < 0 ? "−" : size ? "+" : "";
  return `${sign}${size >= 0.01 || !size ? size.toFixed(2) : size.toPrecision(1)}`;
}
