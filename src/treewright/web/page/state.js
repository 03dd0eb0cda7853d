/** The state of the page, stored in the URL fragment, so that a link restores it. */

export const EMPTY = {
  text: "",
  dependency: null,
  constituent: null,
  other: null,
  k: 5,
  at: 1,
  layout: null, // by the available width
  fixed: [], // { sentence, word, head }
  tags: [], // { sentence, word, column, value }
};

export const MAX_K = 50;
const LAYOUTS = ["horizontal", "vertical"];

/** Clip a number to its bounds. */
export function bounded(value, least, most, otherwise) {
  const number = Math.trunc(Number(value));
  return Number.isFinite(number) && value !== "" && value !== null
    ? Math.min(most, Math.max(least, number))
    : otherwise;
}

/** Encode a state as a URL fragment. */
export function encode(state) {
  const fields = new URLSearchParams();
  if (state.text) fields.set("text", state.text);
  for (const name of ["dependency", "constituent", "other"]) {
    if (state[name] !== null) fields.set(name, state[name]);
  }
  if (state.k !== EMPTY.k) fields.set("k", state.k);
  if (state.at !== 1) fields.set("at", state.at);
  if (state.layout) fields.set("layout", state.layout);
  for (const { sentence, word, head } of state.fixed) fields.append("fixed", `${sentence}.${word}.${head}`);
  for (const { sentence, word, column, value } of state.tags) {
    fields.append("tag", `${sentence}.${word}.${column}.${value}`);
  }
  return `#${fields}`;
}

/** Decode a state from a URL fragment; invalid parts are ignored. */
export function decode(fragment) {
  const fields = new URLSearchParams(fragment.replace(/^#/, ""));
  return {
    text: (fields.get("text") ?? "").replace(/\r\n?/g, "\n"), // as text fields have it
    dependency: fields.get("dependency"),
    constituent: fields.get("constituent"),
    other: fields.get("other"),
    k: bounded(fields.get("k"), 1, MAX_K, EMPTY.k),
    at: bounded(fields.get("at"), 1, Number.MAX_SAFE_INTEGER, 1),
    layout: LAYOUTS.includes(fields.get("layout")) ? fields.get("layout") : null,
    fixed: fields.getAll("fixed").flatMap(readFixed),
    tags: fields.getAll("tag").flatMap(readTag),
  };
}

function readFixed(text) {
  const found = /^(\d+)\.(\d+)\.(\d+)$/.exec(text);
  if (!found) return [];
  const [sentence, word, head] = found.slice(1).map(Number);
  return [{ sentence, word, head }];
}

function readTag(text) {
  const found = /^(\d+)\.(\d+)\.(upos|xpos)\.(.*)$/.exec(text);
  if (!found) return [];
  return [{ sentence: Number(found[1]), word: Number(found[2]), column: found[3], value: found[4] }];
}

/** Keep the head of a word; without a head, release it. */
export function withArc(state, word, head) {
  const others = state.fixed.filter((arc) => arc.sentence !== state.at || arc.word !== word);
  if (head === null) return others;
  return [...others, { sentence: state.at, word, head }].sort(
    (a, b) => a.sentence - b.sentence || a.word - b.word,
  );
}

/** Set the tag of a word; without a value, restore the original. */
export function withTag(state, word, column, value) {
  const others = state.tags.filter(
    (tag) => tag.sentence !== state.at || tag.word !== word || tag.column !== column,
  );
  return value === null ? others : [...others, { sentence: state.at, word, column, value }];
}
