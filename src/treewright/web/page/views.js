/** Display of a tree: zoom, fit to width, full screen, horizontal or vertical layout. */

import { make } from "./make.js";

const STEP = 1.25;
const SMALLEST = 0.2;
const LARGEST = 4;
const READABLE = 0.7; // of the natural size; below it, words stand under one another
const PANEL = 352;
const PANEL_FROM = 1024;
const FRAME = 64;
const SIZES = { word: 8.8, tag: 7, gap: 16, least: 16 };

let alone = null;

/** Choose the horizontal or vertical layout by the available width. */
export function fittingLayout(sentence, { isBeside }) {
  const widths = sentence.words.map((word, place) =>
    Math.max(SIZES.least, SIZES.word * word.length, SIZES.tag * (sentence.upos?.[place] ?? "").length),
  );
  const needed = widths.reduce((sum, width) => sum + width + SIZES.gap, 0);
  const whole = document.querySelector("main").clientWidth;
  const room = (whole - (innerWidth > PANEL_FROM ? PANEL : 0) - FRAME) / (isBeside ? 2 : 1);
  return READABLE * needed > room ? "vertical" : "horizontal";
}

/** Make the buttons that change the display of a tree. */
export function viewTools(figure, { label, key, layout, setLayout }) {
  const other = layout === "vertical" ? "horizontal" : "vertical";
  const button = (name, says, text, act) =>
    make(
      "button",
      { type: "button", class: `quiet ${name}`, "data-key": `${key}-${name}`, "aria-label": says, onclick: act },
      text,
    );
  return make(
    "div",
    { class: "tools", role: "group", "aria-label": `View of ${label}` },
    button("smaller", `Zoom out of ${label}`, "−", () => zoom(figure, 1 / STEP)),
    button("larger", `Zoom into ${label}`, "+", () => zoom(figure, STEP)),
    button("fit", `Fit ${label} to the width`, "Fit", () => zoom(figure, null)),
    button("turn", `${name(other)} layout of all trees`, name(other), () => setLayout(other)),
    button("alone", `Full screen for ${label}`, "Full screen", () => toggleAlone(figure)),
  );
}

function name(layout) {
  return layout === "vertical" ? "Vertical" : "Horizontal";
}

/** Scale a drawing by a factor; without one, fit it to the width. */
function zoom(figure, factor) {
  const picture = figure.querySelector(".picture");
  const svg = picture.querySelector("svg");
  if (factor === null) {
    picture.style.removeProperty("--zoom");
    picture.classList.remove("zoomed");
    return;
  }
  const scale = (factor * svg.getBoundingClientRect().width) / svg.viewBox.baseVal.width;
  picture.style.setProperty("--zoom", Math.min(LARGEST, Math.max(SMALLEST, scale)));
  picture.classList.add("zoomed");
}

/** Toggle full screen for one tree. */
function toggleAlone(figure) {
  if (alone) return leaveAlone();
  alone = { model: figure.dataset.model, rank: figure.dataset.rank };
  markAlone();
  // If the browser does not support full screen, the tree fills the window.
  document.documentElement.requestFullscreen?.().catch(() => {});
}

/** Leave full screen; the focus returns to the button. */
export function leaveAlone() {
  if (!alone) return;
  alone = null;
  if (document.fullscreenElement) document.exitFullscreen().catch(() => {});
  const button = document.querySelector(".tree.alone .alone");
  markAlone();
  button?.focus();
}

/** Find the full-screen tree among the redrawn ones. */
export function markAlone() {
  for (const figure of document.querySelectorAll(".tree.alone")) {
    figure.classList.remove("alone");
    figure.querySelector(".tools .alone").textContent = "Full screen";
  }
  const found =
    alone &&
    document.querySelector(`figure[data-model="${CSS.escape(alone.model)}"][data-rank="${alone.rank}"]`);
  if (!found) alone = null;
  document.body.classList.toggle("solo", Boolean(found));
  if (!found) return;
  found.classList.add("alone");
  found.querySelector(".tools .alone").textContent = "Close";
}

/** Listen for events that leave full screen. */
export function watchAlone() {
  document.addEventListener("fullscreenchange", () => document.fullscreenElement || leaveAlone());
  addEventListener("keydown", (event) => event.key === "Escape" && !event.defaultPrevented && leaveAlone());
}
