/** Controls to choose a sentence, edit its tags and keep arcs. */

import { make } from "./make.js";
import { nameWord } from "./trees.js";

const COLUMNS = { upos: "tag", xpos: "fine tag" };
const FIELDS = { upos: 3, xpos: 4 };
const FEATURES = 5;

/** Detect CoNLL-U: after comments comes the first word, with its number. */
export function isConllu(text) {
  return /^(?:#.*\r?\n|\s*\n)*1(?:-\d+)?\t/.test(text);
}

/** Replace tags in a CoNLL-U sentence, and drop the features of these words, which belong to the old tags. */
export function editConllu(conllu, edits) {
  const lines = conllu.split("\n").map((line) => {
    const fields = line.split("\t");
    const here = edits.filter((edit) => String(edit.word) === fields[0]);
    if (!here.length) return line;
    fields[FIELDS.upos] = fields[FIELDS.xpos] = fields[FEATURES] = "_";
    for (const { column, value } of here) fields[FIELDS[column]] = value;
    return fields.join("\t");
  });
  return lines.join("\n");
}

/** Return the words of a sentence with edited tags; if a word has only one tag, the service predicts the other. */
export function editWords(sentence, edits) {
  return sentence.words.map((word, place) => {
    const here = edits.filter((edit) => edit.word === place + 1);
    const given = (column) => {
      const tag = here.length
        ? here.find((edit) => edit.column === column)?.value
        : sentence[column]?.[place];
      return plain(tag) || null;
    };
    return { word, tag: given("upos"), xpos: given("xpos") };
  });
}

/** Fill the list of sentences, with buttons for the next and previous one, unless there is only one. */
export function renderSentences(nav, sentences, at, go) {
  nav.hidden = sentences.length < 2;
  if (nav.hidden) return nav.replaceChildren();
  const step = (label, key, target) =>
    make(
      "button",
      {
        type: "button",
        "data-key": key,
        disabled: target < 1 || target > sentences.length,
        onclick: () => go(target),
      },
      label,
    );
  const items = sentences.map((sentence, place) =>
    make(
      "li",
      {},
      make(
        "button",
        {
          type: "button",
          class: "quiet",
          dir: "auto",
          "data-key": `sentence-${place + 1}`,
          "aria-current": place + 1 === at ? "true" : null,
          onclick: () => go(place + 1),
        },
        sentence.words.join(" "),
      ),
    ),
  );
  return nav.replaceChildren(
    make(
      "div",
      { class: "steps" },
      step("Previous", "previous", at - 1),
      make("span", {}, `Sentence ${at} of ${sentences.length}`),
      step("Next", "next", at + 1),
    ),
    make("ol", { class: "sentences" }, items),
  );
}

/** Make the list of kept arcs, each with a button that releases it. */
export function renderFixed(sentence, fixed, letGo) {
  const items = fixed
    .filter(({ word, head }) => word <= sentence.words.length && head <= sentence.words.length)
    .map(({ word, head }) => {
      const as = head ? `depends on ${nameWord(sentence, head)}` : "is the root";
      const said = `${nameWord(sentence, word)} ${as}`;
      return make(
        "li",
        {},
        make("span", {}, said),
        make(
          "button",
          {
            type: "button",
            class: "quiet",
            "data-key": `let-go-${word}`,
            "aria-label": `Release the arc: ${said}`,
            onclick: () => letGo(word),
          },
          "Remove",
        ),
      );
    });
  if (!items.length) return null;
  return make(
    "section",
    { class: "kept card", "aria-labelledby": "kept-title" },
    make("h2", { id: "kept-title" }, "Kept arcs"),
    make("p", { class: "hint" }, "All trees below contain these arcs. Probabilities are among such trees only."),
    make("ul", {}, items),
  );
}

/**
 * Fill the inputs for the tags of a sentence with the tags in `found`.
 ** `change` is called with word, column and value; null restores the tag. Existing inputs are kept,
 * so that a response does not interrupt typing. If tags are required, the section is open.
 */
export function renderTags(place, sentence, { found, known, edited, isNeeded, change }) {
  const columns = ["upos", "xpos"].filter((column) => hasTags(sentence, column));
  const shown = columns.length ? columns : ["upos"];
  const about = JSON.stringify([isNeeded, sentence.words, ...shown.map((column) => sentence[column])]);
  if (place.dataset.about !== about) {
    const isOpen = isNeeded || (place.firstChild?.open ?? false);
    place.dataset.about = about;
    place.replaceChildren(tagEditor(sentence, shown, { known, isOpen, isNeeded, change }));
  }
  for (const input of place.querySelectorAll("input")) {
    const word = Number(input.dataset.word);
    const edit = edited.find((tag) => tag.word === word && tag.column === input.dataset.column);
    input.classList.toggle("edited", Boolean(edit));
    if (input !== document.activeElement)
      input.value = plain(edit?.value ?? found[input.dataset.column]?.[word - 1]);
  }
}

function tagEditor(sentence, columns, { known, isOpen, isNeeded, change }) {
  const hint = isNeeded
    ? "The sentence is parsed when every word has a tag."
    : "Change a tag to parse again; clear it to restore the original.";
  const words = sentence.words.map((text, place) =>
    make(
      "div",
      { class: "word" },
      make("span", { class: "text" }, text),
      columns.map((column) => tagInput(sentence, place + 1, column, change)),
    ),
  );
  return make(
    "details",
    { class: "tags card", open: isOpen },
    make("summary", {}, "Edit tags"),
    make("p", { class: "hint" }, hint),
    make("div", { class: "words" }, words),
    make(
      "datalist",
      { id: "known-tags" },
      known.map((tag) => make("option", { value: tag })),
    ),
  );
}

function tagInput(sentence, word, column, change) {
  const given = plain(sentence[column]?.[word - 1]);
  const input = make("input", {
    type: "text",
    list: "known-tags",
    maxlength: 60,
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    "data-column": column,
    "data-word": word,
    "aria-label": `${COLUMNS[column]} of ${nameWord(sentence, word)}`,
    onchange: () => {
      const value = input.value.trim();
      input.value = value || given;
      change(word, column, value === "" || value === given ? null : value);
    },
  });
  return input;
}

function hasTags(sentence, column) {
  return (sentence[column] ?? []).some((tag) => plain(tag));
}

function plain(tag) {
  return !tag || tag === "_" ? "" : tag;
}
