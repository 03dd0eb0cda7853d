/** The panel about one arc: how sure the model is of it, what else it could be, and why. */

import { bar, make, percent } from "./make.js";
import { nameWord, sayArc } from "./trees.js";

const MAX_FEATURES = 12;
const HINT = "Point at an arc, tap it, or reach it with Tab and the arrow keys.";

/** The panel; `explain` asks for the explanation of a shown sentence, `fix` fixes an arc or lets it go. */
export class Panel {
  constructor(place, { explain, fix, isFixed }) {
    this.place = place;
    this.explain = explain;
    this.fix = fix;
    this.isFixed = isFixed;
    this.chosen = null;
    this.isPinned = false;
    place.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.leave();
    });
    this.clear();
  }

  /** Forget the arc. */
  clear() {
    this.chosen?.arc.classList.remove("chosen");
    this.chosen = null;
    this.isPinned = false;
    this.place.classList.remove("open");
    this.place.replaceChildren(make("p", { class: "hint" }, HINT));
  }

  /** Show an arc, unless another one is pinned. */
  show(shown, word, arc) {
    if (!this.isPinned && this.chosen?.arc !== arc) this.open(shown, word, arc);
  }

  /** Show an arc and keep it, whatever is pointed at next; the keyboard moves into the panel. */
  choose(shown, word, arc) {
    this.open(shown, word, arc);
    this.isPinned = true;
    this.place.querySelector("h2").focus({ preventScroll: true });
  }

  /** Go back to the arc. */
  leave() {
    const arc = this.chosen?.arc;
    this.clear();
    if (arc?.isConnected) arc.focus();
    // The focus alone would open the panel again.
    this.clear();
  }

  /** Show an arc, whatever was shown. */
  open(shown, word, arc) {
    this.clear();
    this.chosen = { shown, word, arc };
    arc.classList.add("chosen");
    const { sentence } = shown;
    this.details = make("div", { class: "details" });
    this.place.classList.add("open");
    this.place.replaceChildren(
      make(
        "div",
        { class: "title" },
        make("h2", { tabindex: "-1" }, sayArc(sentence, word)),
        make(
          "button",
          { type: "button", class: "quiet", "aria-label": "Close", onclick: () => this.leave() },
          "×",
        ),
      ),
      this.keeping(sentence, word),
      this.details,
    );
    this.fill(shown, word);
  }

  keeping(sentence, word) {
    const head = sentence.heads[word - 1];
    if (this.isFixed(word, head)) {
      return make(
        "button",
        { type: "button", class: "wide", onclick: () => this.fix(word, null) },
        "Let this arc go",
      );
    }
    return make(
      "button",
      { type: "button", class: "wide", onclick: () => this.fix(word, head) },
      "Keep this arc",
    );
  }

  async fill(shown, word) {
    const known = shown.sentence.confidence?.[word - 1];
    this.details.replaceChildren(
      ...(known === undefined || known === null ? [] : [confidence(known)]),
      this.chooser(shown.sentence, word),
      make("p", { class: "hint", "aria-busy": "true" }, "Looking for reasons …"),
    );
    const place = this.details;
    try {
      const explained = await this.explain(shown);
      if (place === this.details) {
        place.replaceChildren(...this.reasons(shown.sentence, word, explained).filter(Boolean));
      }
    } catch (problem) {
      if (problem.name === "AbortError" || place !== this.details) return;
      place.lastChild.replaceWith(make("p", { class: "hint" }, problem.message));
    }
  }

  reasons(sentence, word, explained) {
    const found = explained.arcs.find((arc) => arc.word === word);
    const head = sentence.heads[word - 1];
    const alternatives = found?.alternatives ?? [];
    const isExplained = found?.head === head;
    const sure = isExplained ? found.confidence : alternatives.find((one) => one.head === head)?.probability;
    return [
      sure === undefined || sure === null
        ? make("p", {}, "Not among the likeliest heads of this word.")
        : confidence(sure),
      this.heads(
        sentence,
        word,
        alternatives.filter((one) => one.head !== head),
      ),
      this.chooser(sentence, word),
      this.minedFeatures(found, isExplained),
    ];
  }

  minedFeatures(found, isExplained) {
    const hint = (text) => make("p", { class: "hint" }, text);
    if (!isReranker(this.chosen.shown.result.model))
      return hint("This model is no reranker and has no mined features.");
    return isExplained
      ? features(found.features)
      : hint("Mined features are shown for arcs of the best tree.");
  }

  heads(sentence, word, alternatives) {
    if (!alternatives.length) return null;
    const rows = alternatives.map(({ head, probability }) =>
      make(
        "li",
        {},
        make("span", { class: "name" }, nameWord(sentence, head)),
        bar(probability),
        make("span", { class: "number" }, percent(probability)),
        make(
          "button",
          {
            type: "button",
            class: "quiet",
            "data-head": head,
            "aria-label": `Use ${nameWord(sentence, head)} as the head of ${nameWord(sentence, word)}`,
            onclick: () => this.fix(word, head),
          },
          "Use",
        ),
      ),
    );
    return make("section", {}, make("h3", {}, "Other heads"), make("ul", { class: "bars" }, rows));
  }

  chooser(sentence, word) {
    const options = ["", ...sentence.words]
      .map((_, head) => head)
      .filter((head) => head !== word && head !== sentence.heads[word - 1])
      .map((head) =>
        make("option", { value: head }, head ? `${head} ${sentence.words[head - 1]}` : "the root"),
      );
    const select = make(
      "select",
      { id: "any-head", onchange: () => select.value !== "" && this.fix(word, Number(select.value)) },
      make("option", { value: "" }, "choose a word"),
      options,
    );
    return make("p", { class: "choice" }, make("label", { for: "any-head" }, "Any other head"), select);
  }
}

/** Tell whether a model has mined features. */
export function isReranker(model) {
  return model.class === "DependencyReranker";
}

function confidence(probability) {
  return make(
    "p",
    { class: "confidence" },
    "Confidence ",
    make("strong", {}, percent(probability)),
    bar(probability),
  );
}

/** Make a table of features and their weights. */
export function features(listed) {
  if (!listed?.length) {
    return make("p", { class: "hint" }, "No mined feature speaks for or against this arc.");
  }
  const rows = listed
    .slice(0, MAX_FEATURES)
    .map(({ text, weight }) =>
      make(
        "tr",
        {},
        make("td", {}, text),
        make("td", { class: weight < 0 ? "number against" : "number" }, weigh(weight)),
      ),
    );
  const head = make(
    "tr",
    {},
    make("th", { scope: "col" }, "Mined feature"),
    make("th", { scope: "col", class: "number" }, "Weight"),
  );
  return make("table", { class: "features" }, make("thead", {}, head), make("tbody", {}, rows));
}

function weigh(weight) {
  const size = Math.abs(weight);
  return `${weight < 0 ? "−" : "+"}${size >= 0.01 ? size.toFixed(2) : size.toPrecision(1)}`;
}
