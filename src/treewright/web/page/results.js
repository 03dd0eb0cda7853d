/** The trees of one sentence by one or two models, best first. */

import { downloads } from "./downloads.js";
import { bar, count, make, percent } from "./make.js";
import { allGroups } from "./meanings.js";
import { renderReasons } from "./reasons.js";
import {
  adopt,
  differingNodes,
  differingWords,
  enliven,
  explainNodes,
  light,
  mark,
  nameWord,
  sayArc,
  sayNodes,
} from "./trees.js";
import { viewTools } from "./views.js";

const SHORT_LIST = 3;
const TOO_SMALL = 0.01; // below this, the mean confidence of arcs is more informative than the probability
const TITLES = { dependency: "Dependencies", constituent: "Constituents" };

/** Make the section of trees of one kind; `context` has the panel and the actions of the page. */
export function renderKind(kind, results, context) {
  const compared = results.length === 2 && results.every((result) => result.candidates);
  const marks = compared ? compare(kind, results) : [[], []];
  return make(
    "section",
    { class: "kind card", "aria-labelledby": `${kind}-title` },
    make("h2", { id: `${kind}-title` }, TITLES[kind]),
    compared ? renderComparison(kind, results, marks) : null,
    make(
      "div",
      { class: results.length === 2 ? "models two" : "models" },
      results.map((result, place) => renderModel(result, marks[place], context, results.length === 2)),
    ),
  );
}

/** Find the differences between the best trees of two models: words, or nodes of each tree. */
function compare(kind, [one, other]) {
  const [left, right] = [one.candidates[0], other.candidates[0]];
  if (kind === "dependency") {
    const words = differingWords(left, right);
    return [words, words];
  }
  return [differingNodes(left.brackets, right.brackets), differingNodes(right.brackets, left.brackets)];
}

function renderComparison(kind, results, marks) {
  const bests = results.map((result) => result.candidates[0]);
  const names = results.map((result) => result.model.name);
  const lines =
    kind === "dependency"
      ? marks[0].map((word) =>
          names.map((name, place) => `${name}: ${sayArc(bests[place], word)}`).join("; "),
        )
      : names.flatMap((name, place) =>
          sayNodes(bests[place].brackets, marks[place]).map((said) => `${name}: ${said}`),
        );
  const noun = kind === "dependency" ? "word" : "constituent";
  const title = lines.length
    ? `The models differ in ${count(lines.length, noun)}.`
    : "Both models give the same tree.";
  return make("div", { class: "comparison" }, make("p", {}, title), listed(lines));
}

function renderModel(result, marks, context, isNamed) {
  const { model } = result;
  const article = make("article", { class: "model", "aria-label": `Trees by ${model.name}` });
  article.append(make("h3", { class: isNamed ? "" : "aside" }, model.name));
  if (result.error) article.append(make("p", { class: "error" }, result.error));
  if (!result.candidates) return article;
  const [best, ...others] = result.candidates;
  article.append(renderCandidate(result, best, 1, marks, context));
  if (model.compares && others.length) article.append(renderWhy(result, context));
  if (others.length) {
    const figures = others.map((candidate, place) =>
      renderCandidate(result, candidate, place + 2, candidate.differs ?? [], context),
    );
    article.append(make("div", { class: "others" }, figures));
  }
  return article;
}

function renderCandidate(result, candidate, rank, marks, context) {
  const { model } = result;
  const key = `${model.name}-${rank}`;
  const label = `tree ${rank} by ${model.name}`;
  const figure = make("figure", {
    class: rank === 1 ? "tree best" : "tree",
    "data-rank": rank,
    "data-model": model.name,
  });
  const { layout } = result.body;
  const picture = renderPicture(result, candidate, { key, label, marks, context });
  figure.append(
    make(
      "figcaption",
      {},
      make("span", { class: "rank" }, rank === 1 ? "Best tree" : `Tree ${rank}`),
      renderRate(candidate, result.candidates),
      viewTools(figure, { label, key, layout, setLayout: context.setLayout }),
    ),
    picture,
  );
  if (model.kind === "dependency" && rank === 1) {
    figure.append(...[renderLegend(picture.querySelector("svg")), renderUnknown(candidate)].filter(Boolean));
  }
  if (rank > 1) figure.append(renderDifferences(result, candidate, marks));
  const name = `${model.name}-sentence-${context.state.at}-tree-${rank}`;
  figure.append(downloads(candidate, { name, label, key, onError: context.onError }));
  return figure;
}

/** Format the probability of a tree or, if all are very small, the mean confidence of its arcs. */
function renderRate(candidate, candidates) {
  const { share, said } = rate(candidate, candidates);
  return make(
    "span",
    { class: "rate" },
    share === null ? null : bar(share),
    make("span", { class: "probability" }, said),
  );
}

export function rate({ probability, score, confidence }, [best]) {
  if (probability === null) return { share: null, said: `score ${score.toFixed(2).replace("-", "−")}` };
  if (best.probability >= TOO_SMALL || !confidence?.length) {
    return { share: probability, said: percent(probability) };
  }
  const mean = confidence.reduce((sum, one) => sum + one, 0) / confidence.length;
  return { share: mean, said: `mean arc confidence ${percent(mean)}` };
}

/** Make the legend of relation colours; pointing at one highlights its arcs. */
function renderLegend(svg) {
  const relations = new Map();
  for (const { dataset } of svg.querySelectorAll("g.arc")) {
    if (!relations.has(dataset.group)) relations.set(dataset.group, new Set());
    relations.get(dataset.group).add(dataset.relation);
  }
  const items = allGroups()
    .filter(([group]) => relations.has(group))
    .map(([group, name]) => make("li", {}, legendKey(svg, group, name, [...relations.get(group)])));
  return items.length ? make("ul", { class: "legend", "aria-label": "Colours of relations" }, items) : null;
}

function legendKey(svg, group, name, relations) {
  const isPressed = () => button.getAttribute("aria-pressed") === "true";
  const hide = () => isPressed() || light(svg, []);
  const button = make(
    "button",
    {
      type: "button",
      class: "key",
      "aria-pressed": "false",
      "data-group": group,
      onpointerenter: () => light(svg, [], group),
      onpointerleave: hide,
      onfocus: () => light(svg, [], group),
      onblur: () => {
        button.setAttribute("aria-pressed", "false");
        hide();
      },
      onclick: () => {
        button.setAttribute("aria-pressed", String(!isPressed()));
        light(svg, [], isPressed() ? group : null);
      },
    },
    make("span", { class: "swatch", "aria-hidden": "true" }),
    make("span", {}, name),
    make("span", { class: "names" }, relations.join(", ")),
  );
  return button;
}

/** List the words that are not in the training set. */
function renderUnknown({ words, unknown }) {
  if (!unknown?.length) return null;
  const named = [...new Set(unknown.map((word) => `“${words[word - 1]}”`))].join(", ");
  return make("p", { class: "unseen hint" }, `Not in the training set: ${named}.`);
}

function renderPicture(result, candidate, { key, label, marks, context }) {
  const svg = adopt(candidate.svg, `Words and arcs of ${label}; use the arrow keys to move between words`);
  for (const marked of svg.querySelectorAll(".marked")) marked.classList.remove("marked");
  mark(svg, marks);
  if (result.model.kind === "constituent") {
    svg.setAttribute("aria-label", `Drawing of ${label}: ${candidate.brackets}`);
    explainNodes(svg);
    return make(
      "div",
      {
        class: `picture ${result.body.layout}`,
        role: "region",
        tabindex: "0",
        "aria-label": `Drawing of ${label}`,
      },
      svg,
    );
  }
  const shown = { result, sentence: candidate };
  for (const { word, head } of context.fixed) {
    svg.querySelector(`g.arc[data-word="${word}"][data-head="${head}"]`)?.classList.add("fixed");
  }
  enliven(svg, candidate, {
    key,
    onPoint: (word, arc) => context.panel.show(shown, word, arc),
    onFocus: (word, arc) => context.panel.open(shown, word, arc),
    onChoose: (word, arc) => context.panel.choose(shown, word, arc),
  });
  return make("div", { class: `picture ${result.body.layout}` }, svg);
}

/** Scroll highlighted parts into view, in every drawing that is wider than its container. */
export function showMarks(root) {
  for (const picture of root.querySelectorAll(".picture")) {
    const marked = picture.querySelector(".marked")?.getBoundingClientRect();
    const place = picture.getBoundingClientRect();
    if (marked && marked.right > place.right) {
      picture.scrollLeft = marked.left + marked.width / 2 - place.left - place.width / 2;
    }
  }
}

/** List the highlighted differences. */
function renderDifferences(result, candidate, marks) {
  const best = result.candidates[0];
  const said =
    result.model.kind === "dependency"
      ? marks.map((word) => sayDifference(candidate, best, word))
      : sayNodes(candidate.brackets, marks);
  return make(
    "details",
    { class: "differences", open: said.length <= SHORT_LIST },
    make("summary", {}, `${count(said.length, "difference")} from the best tree`),
    listed(said),
  );
}

function sayDifference(candidate, best, word) {
  const [head, former] = [candidate.heads[word - 1], best.heads[word - 1]];
  if (head === former) return `${sayArc(candidate, word)}; in the best tree, as ${best.deprels[word - 1]}`;
  return `${sayArc(candidate, word)}; in the best tree, on ${nameWord(best, former)}`;
}

/** Make a section that explains why the first tree was chosen over the second; it is loaded when opened. */
function renderWhy(result, context) {
  const place = make("div", {}, make("p", { class: "hint" }, "Loading the explanation …"));
  const details = make(
    "details",
    { class: "why" },
    make("summary", {}, "Why the best tree was chosen over the second"),
    place,
  );
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    try {
      const found = await context.explain({ result });
      const pictureOf = (rank) =>
        details.parentElement.querySelector(`figure[data-rank="${rank}"] .picture svg`);
      place.replaceChildren(
        found.reasons.length
          ? renderReasons({
              listed: found.reasons,
              totalFor: found.total_for,
              totalAgainst: found.total_against,
              names: ["For the best tree", "For the second tree"],
              pictureOf,
            })
          : make("p", { class: "hint" }, "No feature distinguishes the two trees."),
      );
    } catch (problem) {
      if (problem.name !== "AbortError") place.replaceChildren(make("p", { class: "hint" }, problem.message));
    }
  });
  return details;
}

function listed(lines) {
  return lines.length
    ? make(
        "ul",
        { class: "said" },
        lines.map((line) => make("li", {}, line)),
      )
    : null;
}
