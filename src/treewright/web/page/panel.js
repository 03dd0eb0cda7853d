/** The panel about one arc: its confidence, alternative heads and features. */

import { bar, make, percent } from "./make.js";
import { explained, relationMeaning, tagMeaning } from "./meanings.js";
import { renderReasons } from "./reasons.js";
import { light, nameWord, sayArc, tagsOf } from "./trees.js";

const HINT = "Point at an arc or tap it, or select it with Tab and the arrow keys.";

/** The panel; `explain` requests the explanation of a sentence, and `fix` keeps an arc or releases it. */
export class Panel {
  constructor(place, { explain, fix, isFixed }) {
    this.place = place;
    this.explain = explain;
    this.fix = fix;
    this.isFixed = isFixed;
    this.chosen = null;
    this.isPinned = false;
    place.addEventListener("keydown", (event) => {
      if (event.key !== "Escape") return;
      event.preventDefault(); // stay in full screen
      this.leave();
    });
    this.clear();
  }

  /** Clear the panel. */
  clear() {
    this.chosen?.arc.classList.remove("chosen");
    if (this.chosen) light(this.chosen.arc.ownerSVGElement, []);
    this.chosen = null;
    this.isPinned = false;
    this.place.classList.remove("open");
    this.place.replaceChildren(make("p", { class: "hint" }, HINT));
  }

  /** Show an arc, unless another one is pinned. */
  show(shown, word, arc) {
    if (!this.isPinned && this.chosen?.arc !== arc) this.open(shown, word, arc);
  }

  /** Show and pin an arc; the keyboard focus moves to the panel. */
  choose(shown, word, arc) {
    this.open(shown, word, arc);
    this.isPinned = true;
    this.place.querySelector("h2").focus({ preventScroll: true });
  }

  /** Return the focus to the arc. */
  leave() {
    const arc = this.chosen?.arc;
    this.clear();
    if (arc?.isConnected) arc.focus();
    // The focus event would open the panel again.
    this.clear();
  }

  /** Show an arc in place of the current one. */
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
      aboutArc(sentence, word),
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
        "Release this arc",
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
      make("p", { class: "hint", "aria-busy": "true" }, "Loading the explanation …"),
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
        ? make("p", {}, "This head is not among the most likely heads of the word.")
        : confidence(sure),
      this.heads(
        sentence,
        word,
        alternatives.filter((one) => one.head !== head),
      ),
      this.chooser(sentence, word),
      this.features(found, isExplained),
    ];
  }

  features(found, isExplained) {
    const hint = (text) => make("p", { class: "hint" }, text);
    if (!isExplained) return hint("Features are available for arcs of the best tree only.");
    if (!found.features.length) return hint("No feature of this model applies to this arc.");
    const svg = this.chosen.arc.ownerSVGElement;
    return make(
      "section",
      { class: "why-arc" },
      make("h3", {}, "Why this arc"),
      renderReasons({
        listed: found.features,
        totalFor: found.total_for,
        totalAgainst: found.total_against,
        names: ["For this arc", "Against this arc"],
        pictureOf: () => svg,
      }),
    );
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

/** Describe the relation of an arc and the tags of its word. */
function aboutArc(sentence, word) {
  const relation = sentence.deprels[word - 1];
  const meaning = relation && relation !== "_" ? relationMeaning(relation) : null;
  return make(
    "div",
    { class: "about" },
    meaning ? explained(relation, meaning) : null,
    tagsOf(sentence, word - 1).map((tag) => explained(tag, tagMeaning(tag))),
    sentence.unknown?.includes(word)
      ? make("p", { class: "unseen" }, `${nameWord(sentence, word)} is not in the training set.`)
      : null,
  );
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
