/** Descriptions of relations, tags and labels. */

import { make } from "./make.js";
import { askMeanings } from "./service.js";

let known = { groups: {}, relations: {}, tags: {}, phrases: {} };

/** Request all descriptions; without a response, there are none. */
export async function loadMeanings() {
  try {
    known = await askMeanings();
  } catch {
    // The trees are useful without descriptions.
  }
}

/** Find the description of a relation; a subtype has that of its universal relation. */
export function relationMeaning(relation) {
  return find(known.relations, withoutSubtype(relation));
}

/** Find the description of a tag. */
export function tagMeaning(tag) {
  return find(known.tags, tag);
}

/** Find the description of a constituent label or tag. */
export function labelMeaning(label) {
  return find(known.tags, label) ?? find(known.phrases, withoutSubtype(label));
}

/** The group of a relation, which determines its colour. */
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
    meaning ? `, ${meaning.name}. ` : ": no description.",
    parts,
  );
}

function find(table, name) {
  return Object.hasOwn(table, name) ? table[name] : null;
}

function withoutSubtype(name) {
  return name.replace(/[:@\-=|].*/s, "");
}
