/** The trees of one sentence by one model or two, best first. */

import { downloads } from "./downloads.js";
import { bar, count, make, percent } from "./make.js";
import { features, isReranker } from "./panel.js";
import { adopt, differingNodes, differingWords, enliven, mark, nameWord, sayArc, sayNodes } from "./trees.js";

const SHORT_LIST = 3;
const TITLES = { dependency: "Dependencies", constituent: "Constituents" };

/** Make the section of the trees of one kind; `context` has the panel and what the page does. */
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

/** Find what differs between the best trees of two models: words or, for each of the two, nodes. */
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
  if (isReranker(model) && others.length) article.append(renderWhy(result, context));
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
  figure.append(
    make(
      "figcaption",
      {},
      make("span", { class: "rank" }, rank === 1 ? "Best tree" : `Tree ${rank}`),
      candidate.probability === null ? null : bar(candidate.probability),
      make("span", { class: "probability" }, rate(candidate)),
    ),
    renderPicture(result, candidate, { key, label, marks, context }),
  );
  if (rank > 1) figure.append(renderDifferences(result, candidate, marks));
  const name = `${model.name}-sentence-${context.state.at}-tree-${rank}`;
  figure.append(downloads(candidate, { name, label, key, onError: context.onError }));
  return figure;
}

function rate({ probability, score }) {
  return probability === null ? `score ${score.toFixed(2).replace("-", "−")}` : percent(probability);
}

function renderPicture(result, candidate, { key, label, marks, context }) {
  const svg = adopt(candidate.svg, `The words and arcs of ${label}; arrow keys go from word to word`);
  for (const marked of svg.querySelectorAll(".marked")) marked.classList.remove("marked");
  mark(svg, marks);
  if (result.model.kind === "constituent") {
    svg.setAttribute("aria-label", `Picture of ${label}: ${candidate.brackets}`);
    return make(
      "div",
      { class: "picture", role: "region", tabindex: "0", "aria-label": `Picture of ${label}` },
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
  return make("div", { class: "picture" }, svg);
}

/** Bring what is marked into view, in every picture that is wider than its place. */
export function showMarks(root) {
  for (const picture of root.querySelectorAll(".picture")) {
    const marked = picture.querySelector(".marked")?.getBoundingClientRect();
    const place = picture.getBoundingClientRect();
    if (marked && marked.right > place.right) {
      picture.scrollLeft = marked.left + marked.width / 2 - place.left - place.width / 2;
    }
  }
}

/** Say what is marked in a picture. */
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
  if (head === former) return `${sayArc(candidate, word)}, in the best tree as ${best.deprels[word - 1]}`;
  return `${sayArc(candidate, word)}, in the best tree on ${nameWord(best, former)}`;
}

/** Offer the reasons for the first tree against the second, which are asked for when they are wanted. */
function renderWhy(result, context) {
  const place = make("div", {}, make("p", { class: "hint" }, "Looking for reasons …"));
  const details = make(
    "details",
    { class: "why" },
    make("summary", {}, "Why the best tree and not the second"),
    place,
  );
  details.addEventListener("toggle", async () => {
    if (!details.open) return;
    try {
      const { reasons } = await context.explain({ result });
      const none = make("p", { class: "hint" }, "No mined feature decided between them.");
      place.replaceChildren(reasons.length ? features(reasons) : none);
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
