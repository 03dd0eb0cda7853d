/** Drawings of trees on the page, and differences between trees. */

import { make } from "./make.js";
import { explained, groupOf, labelMeaning, relationMeaning, tagMeaning } from "./meanings.js";
import { giveTip } from "./tips.js";

/** Parse a drawing into an element of this document, as SVG, not as HTML. */
export function adopt(text, label) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  if (parsed.querySelector("parsererror")) throw new Error("the drawing is not well-formed");
  const svg = document.adoptNode(parsed.documentElement);
  fit(svg);
  svg.setAttribute("aria-label", label);
  // Browsers show titles as tooltips, which would cover the drawing; labels have the same text.
  for (const title of svg.querySelectorAll("title")) title.remove();
  return svg;
}

/** Leave the size of a drawing to the style sheet; pass it the natural width. */
function fit(svg) {
  svg.style.setProperty("--natural", `${svg.viewBox.baseVal.width}px`);
  svg.removeAttribute("width");
  svg.removeAttribute("height");
}

/** Make the arcs of a drawing interactive: pointer, focus and click. */
export function enliven(svg, sentence, { key, onPoint, onFocus, onChoose }) {
  explainWords(svg, sentence);
  const arcs = [...svg.querySelectorAll("g.arc")].sort((a, b) => a.dataset.word - b.dataset.word);
  svg.setAttribute("role", "group");
  arcs.forEach((arc, place) => {
    const word = Number(arc.dataset.word);
    widen(arc);
    arc.setAttribute("role", "button");
    arc.setAttribute("tabindex", place ? "-1" : "0");
    const meaning = relationMeaning(sentence.deprels[word - 1]);
    arc.dataset.group = groupOf(sentence.deprels[word - 1]);
    arc.setAttribute("aria-label", sayArc(sentence, word) + (meaning ? `, ${meaning.name}` : ""));
    giveTip(arc, () => meaning && explained(sentence.deprels[word - 1], meaning));
    arc.dataset.key = `${key}-arc-${word}`;
    arc.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && onPoint(word, arc));
    arc.addEventListener("focus", () => {
      for (const other of arcs) other.setAttribute("tabindex", other === arc ? "0" : "-1");
      onFocus(word, arc);
    });
    arc.addEventListener("click", () => onChoose(word, arc));
    arc.addEventListener("keydown", (event) => pressed(event, arcs, place, () => onChoose(word, arc)));
  });
}

/** Mark the words that are not in the training set, and describe all tags. */
function explainWords(svg, sentence) {
  for (const group of svg.querySelectorAll("g.word")) {
    const place = Number(group.dataset.word) - 1;
    const isUnknown = sentence.unknown?.includes(place + 1);
    group.classList.toggle("unknown", Boolean(isUnknown));
    giveTip(group, () => [
      ...tagsOf(sentence, place).map((tag) => explained(tag, tagMeaning(tag))),
      ...(isUnknown ? [make("p", {}, "This word is not in the training set.")] : []),
    ]);
  }
}

/** The distinct tags of a word. */
export function tagsOf(sentence, place) {
  const tags = [sentence.upos?.[place], sentence.xpos?.[place]];
  return [...new Set(tags)].filter((tag) => tag && tag !== "_");
}

/** Describe the labels of a constituency tree in tooltips. */
export function explainNodes(svg) {
  for (const node of svg.querySelectorAll("g.node:not(.leaf)")) {
    const label = node.textContent.trim();
    const meaning = labelMeaning(label);
    if (meaning) giveTip(node, () => explained(label, meaning));
  }
}

/** Highlight the arcs of these words or of a group of relations; an empty list clears the highlight. */
export function light(svg, words, group = null) {
  if (!svg) return;
  const lit = [...svg.querySelectorAll("g.arc")].filter(
    (arc) => words.includes(Number(arc.dataset.word)) || (group && arc.dataset.group === group),
  );
  svg.classList.toggle("dimmed", lit.length > 0);
  for (const arc of svg.querySelectorAll("g.arc")) arc.classList.toggle("lit", lit.includes(arc));
}

/** Add a wide invisible line along a thin one, as a larger target for pointers and fingers. */
function widen(arc) {
  const path = arc.querySelector("path");
  if (!path) return;
  const wide = path.cloneNode(false);
  wide.setAttribute("class", "reach");
  arc.append(wide);
}

function pressed(event, arcs, place, choose) {
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  let next = null;
  if (event.key in steps) next = Math.min(arcs.length - 1, Math.max(0, place + steps[event.key]));
  else if (event.key === "Home") next = 0;
  else if (event.key === "End") next = arcs.length - 1;
  if (next !== null) arcs[next].focus();
  else if (event.key === "Enter" || event.key === " ") choose();
  else return;
  event.preventDefault();
}

/** Name a word, with its position if it occurs more than once; 0 is the root. */
export function nameWord(sentence, word) {
  if (word === 0) return "the root";
  const text = sentence.words[word - 1];
  const isAlone = sentence.words.indexOf(text) === sentence.words.lastIndexOf(text);
  return isAlone ? `“${text}”` : `“${text}” (word ${word})`;
}

/** Describe an arc. */
export function sayArc(sentence, word) {
  const head = sentence.heads[word - 1];
  const relation = sentence.deprels[word - 1];
  if (head === 0) return `${nameWord(sentence, word)} is the root`;
  const as = relation && relation !== "_" ? ` as ${relation}` : "";
  return `${nameWord(sentence, word)} depends on ${nameWord(sentence, head)}${as}`;
}

/** Highlight the arcs of these words, or these nodes. */
export function mark(svg, numbers) {
  for (const number of numbers) {
    svg.querySelector(`g.arc[data-word="${number}"], g.node[data-node="${number}"]`)?.classList.add("marked");
  }
}

/** Find the words whose head or relation differs between two trees of one sentence. */
export function differingWords(one, other) {
  if (one.words.length !== other.words.length) return one.words.map((_, place) => place + 1);
  return one.words
    .map((_, place) => place + 1)
    .filter(
      (word) =>
        one.heads[word - 1] !== other.heads[word - 1] || one.deprels[word - 1] !== other.deprels[word - 1],
    );
}

/** Parse brackets into nodes in post-order, each with its label and span. */
export function readNodes(brackets) {
  const nodes = [];
  const open = [];
  const words = [];
  let awaitsLabel = false;
  for (const [token] of brackets.matchAll(/[()]|[^()\s]+/g)) {
    if (token === "(") {
      open.push({ label: "", start: words.length, isWord: false });
      awaitsLabel = true;
    } else if (token === ")") {
      const node = open.pop();
      if (node) nodes.push({ ...node, end: words.length });
      awaitsLabel = false;
    } else if (awaitsLabel) {
      open.at(-1).label = token;
      awaitsLabel = false;
    } else {
      nodes.push({ label: token, start: words.length, end: words.length + 1, isWord: true });
      words.push(token);
    }
  }
  return { nodes, words };
}

/** Find the nodes of the first tree that the second lacks. */
export function differingNodes(one, other) {
  const sign = (node) => `${node.label} ${node.start} ${node.end}`;
  const left = new Map();
  for (const node of readNodes(other).nodes) left.set(sign(node), (left.get(sign(node)) ?? 0) + 1);
  return readNodes(one).nodes.flatMap((node, number) => {
    const remaining = left.get(sign(node)) ?? 0;
    left.set(sign(node), remaining - 1);
    return remaining > 0 ? [] : [number];
  });
}

/** Describe nodes. */
export function sayNodes(brackets, numbers) {
  const { nodes, words } = readNodes(brackets);
  return numbers
    .filter((number) => number in nodes)
    .map((number) => {
      const node = nodes[number];
      return `${node.label} over “${words.slice(node.start, node.end).join(" ")}”`;
    });
}

/** Return a drawing with dark lines on white in any colour scheme, and its size. */
export function onWhite(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const svg = parsed.documentElement;
  const { width, height } = svg.viewBox.baseVal;
  svg.style.color = "#1f2328";
  svg.style.background = "white";
  return { text: new XMLSerializer().serializeToString(svg), width, height };
}
