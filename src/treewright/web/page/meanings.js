/** What relations, tags and labels stand for. */

import { make } from "./make.js";
import { askMeanings } from "./service.js";

let known = { groups: {}, relations: {}, tags: {}, phrases: {} };

/** Ask for all meanings; without an answer, nothing is explained. */
export async function loadMeanings() {
  try {
    known = await askMeanings();
  } catch {
    // The trees are worth more than what is said of them.
  }
}

/** Find what a relation stands for; a subtype stands for what its universal part does. */
export function relationMeaning(relation) {
  return find(known.relations, withoutSubtype(relation));
}

/** Find what a tag stands for. */
export function tagMeaning(tag) {
  return find(known.tags, tag);
}

/** Find what the label of a constituent stands for, a tag's included. */
export function labelMeaning(label) {
  return find(known.tags, label) ?? find(known.phrases, withoutSubtype(label));
}

/** The group of a relation, by which it has its colour. */
export function groupOf(relation) {
  return relationMeaning(relation)?.group ?? "other";
}

/** The groups of relations, in their order, with their names. */
export function allGroups() {
  return Object.entries(known.groups);
}

/** Make a paragraph that explains a relation, tag or label. */
export function explained(name, meaning) {
  const parts = (meaning?.text ?? "").split("*").map((part, at) => (at % 2 ? make("em", {}, part) : part));
  return make(
    "p",
    { class: "meaning" },
    make("strong", {}, name),
    meaning ? `, ${meaning.name}. ` : ": not described here.",
    parts,
  );
}

function find(table, name) {
  return Object.hasOwn(table, name) ? table[name] : null;
}

function withoutSubtype(name) {
  return name.replace(/[:@\-=|].*/s, "");
}
