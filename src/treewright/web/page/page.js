/** The page: a form, the state in the URL, and the trees of the service. */

import { editConllu, editWords, isConllu, renderFixed, renderSentences, renderTags } from "./editing.js";
import { count, make } from "./make.js";
import { loadMeanings } from "./meanings.js";
import { Panel } from "./panel.js";
import { rate, renderKind, showMarks } from "./results.js";
import { ask, askModels, ServiceError } from "./service.js";
import { bounded, decode, EMPTY, encode, MAX_K, withArc, withTag } from "./state.js";
import { hideTip } from "./tips.js";
import { fittingLayout, markAlone, watchAlone } from "./views.js";

const KINDS = ["dependency", "constituent"];
const NONE = "";
const RESIZED = 250; // milliseconds without a change

const at = (id) => document.getElementById(id);
const form = at("ask");
const text = at("text");
const panel = new Panel(at("panel"), { explain, fix, isFixed });

let models = [];
let state = { ...EMPTY };
let run = { controller: new AbortController(), results: [] };
let drawn = new AbortController(); // aborts requests about the displayed trees
const explanations = new WeakMap();

/** Change the state, with an entry in the browser's history, and show it. */
function change(changes) {
  state = { ...state, ...changes };
  const fragment = encode(state);
  if (fragment !== location.hash) history.pushState(null, "", fragment);
  return show();
}

/** Show a status message. */
function say(message, { isError = false } = {}) {
  at("status").textContent = message;
  at("status").classList.toggle("error", isError);
}

/** Start a run; pending requests of the previous one are cancelled. */
function begin() {
  run.controller.abort();
  run = { controller: new AbortController(), results: [] };
  setBusy(true);
  return run;
}

function setBusy(isBusy) {
  at("progress").hidden = !isBusy;
  at("cancel").hidden = !isBusy;
  at("view").setAttribute("aria-busy", String(isBusy));
}

/** Request all results of the state, and draw them. */
async function show() {
  fillForm();
  if (!state.text.trim()) {
    run.controller.abort();
    setBusy(false);
    at("view").hidden = true;
    return;
  }
  const mine = begin();
  say("Parsing …");
  mine.results = chosenModels().map((model) => ({ model }));
  await Promise.all(mine.results.map((result) => consult(result, mine)));
  if (mine !== run || mine.controller.signal.aborted) return;
  setBusy(false);
  draw();
  announce();
}

/** The models in use: one for each kind of tree, and one more to compare with. */
function chosenModels() {
  const other = models.find((model) => model.name === state.other);
  return [...new Set([...KINDS.map(chosenModel), other])].filter(Boolean);
}

function chosenModel(kind) {
  const ofKind = models.filter((model) => model.kind === kind);
  return ofKind.find((model) => model.name === state[kind]) ?? ofKind[0];
}

/** Request the sentences of the text from one model, and the k-best trees of the displayed sentence. */
async function consult(result, mine) {
  const { name, kind } = result.model;
  try {
    result.sentences = await readSentences(result, mine);
    if (!result.sentences.length) throw new ServiceError("The text contains no sentence.");
    if (state.at > result.sentences.length) state = { ...state, at: result.sentences.length };
    result.given = result.sentences[state.at - 1];
    if (result.lacksTags) askForTags(result);
    result.body = { ...source(result), model: name, layout: layoutOf(result, mine.results) };
    const arcs = kind === "dependency" ? fixedHere() : [];
    if (arcs.length) result.body.fixed = [arcs];
    const listed = await question("kbest", { ...result.body, k: state.k }, mine);
    result.candidates = listed.sentences[0].candidates;
  } catch (problem) {
    if (problem.name === "AbortError") return;
    if (!(problem instanceof ServiceError)) throw problem;
    result.error = problem.message;
  }
}

/** Request the parsed sentences of the text, or the unparsed ones if the model needs tags. */
async function readSentences(result, mine) {
  try {
    const body = { text: state.text, model: result.model.name, pictures: false };
    return (await question("parse", body, mine)).sentences;
  } catch (problem) {
    if (!problem.sentences) throw problem;
    result.lacksTags = true;
    return problem.sentences;
  }
}

/** Throw an error with the number of missing tags, if there are any. */
function askForTags({ given, model }) {
  const words = editWords(given, editedHere()).filter((each) => !each.tag && !each.xpos);
  if (!words.length) return;
  const found = `${count(words.length, "word")} without a tag; ${model.name} needs tags`;
  throw new ServiceError(`${found}. Fill in all tags to parse the sentence.`);
}

/** The layout of a model's trees: the user's choice, or by the available width. */
function layoutOf({ given, model }, results) {
  const isBeside = results.filter((one) => one.model.kind === model.kind).length > 1;
  return state.layout ?? fittingLayout(given, { isBeside });
}

function question(route, body, mine) {
  return ask(route, body, {
    signal: mine.controller.signal,
    onBusy: (seconds) => mine === run && tellBusy(seconds),
  });
}

function tellBusy(seconds) {
  say(`The service is busy; retrying in ${count(seconds, "second")}.`);
}

/** The request for the displayed sentence: the text itself if possible, since it may contain more than words. */
function source({ given, sentences }) {
  const edits = editedHere();
  if (edits.length && given.conllu && isConllu(state.text)) return { text: editConllu(given.conllu, edits) };
  const whole = sentences.length === 1 ? state.text : (given.conllu ?? given.brackets);
  return edits.length || !whole ? { sentences: [editWords(given, edits)] } : { text: whole };
}

function fixedHere() {
  return state.fixed.filter((arc) => arc.sentence === state.at).map(({ word, head }) => ({ word, head }));
}

function editedHere() {
  return state.tags.filter((tag) => tag.sentence === state.at);
}

function isFixed(word, head) {
  return fixedHere().some((arc) => arc.word === word && arc.head === head);
}

function fix(word, head) {
  return change({ fixed: withArc(state, word, head) });
}

/** Request the explanation of a parse, once. */
function explain({ result }) {
  if (!explanations.has(result)) {
    const asked = ask("explain", { ...result.body, pictures: false }, { signal: drawn.signal, onBusy: tellBusy });
    explanations.set(
      result,
      asked.then((answer) => answer.sentences[0]),
    );
    asked.catch(() => explanations.delete(result));
  }
  return explanations.get(result);
}

/** Draw the results, and restore the focus. */
function draw() {
  const focused = document.activeElement?.dataset?.key;
  const wasInPanel = at("panel").contains(document.activeElement);
  const word = panel.chosen?.word;
  const { results } = run;
  const fixed = fixedHere();
  const context = {
    state,
    panel,
    fixed,
    explain,
    setLayout: (layout) => change({ layout }),
    onError: (message) => say(message, { isError: true }),
  };
  hideTip();
  drawn.abort();
  drawn = new AbortController();
  panel.clear();
  const first = results.find((result) => result.given);
  renderSentences(at("sentences"), first?.sentences ?? [], state.at, (place) => change({ at: place }));
  const kinds = KINDS.map((kind) => [kind, results.filter((result) => result.model.kind === kind)]);
  const parts = kinds
    .filter(([, ofKind]) => ofKind.length)
    .map(([kind, ofKind]) => renderKind(kind, ofKind, context));
  const kept = first && renderFixed(first.given, fixed, (one) => fix(one, null));
  at("trees").replaceChildren(...[kept, ...parts].filter(Boolean));
  drawTags(results.find((result) => result.given && result.lacksTags) ?? first);
  at("view").hidden = !first; // a rejected text is reported in the status message
  at("view").classList.toggle(
    "plain",
    !results.some((one) => one.model.kind === "dependency" && one.candidates),
  );
  markAlone();
  showMarks(at("trees"));
  refocus(wasInPanel && word ? `${first?.model.name}-1-arc-${word}` : focused);
}

function refocus(key) {
  if (!key) return;
  document.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

function drawTags(result) {
  at("tags").hidden = !result;
  if (!result) return;
  renderTags(at("tags"), result.given, {
    found: result.candidates?.[0] ?? result.given,
    known: [...new Set(run.results.flatMap((one) => one.model.tags_known ?? []))],
    edited: editedHere(),
    isNeeded: Boolean(result.lacksTags),
    change: (word, column, value) => change({ tags: withTag(state, word, column, value) }),
  });
}

/** Summarise the results in the status message. */
function announce() {
  const errors = [...new Set(run.results.filter((one) => one.error).map((one) => one.error))];
  const found = run.results
    .filter((result) => result.candidates)
    .map(({ model, candidates }) => sayBest(model, candidates));
  say([...errors.map(ended), ...found].join(" "), { isError: errors.length > 0 });
}

/** End a message of the service with a full stop. */
function ended(sentence) {
  return sentence.endsWith(".") ? sentence : `${sentence}.`;
}

function sayBest(model, candidates) {
  const { share, said } = rate(candidates[0], candidates);
  const best = share === null ? "" : `, the best with ${said.startsWith("mean") ? "" : "probability "}${said}`;
  return `${model.name}: ${count(candidates.length, "tree")}${best}.`;
}

function fillForm() {
  offerExamples();
  if (text.value !== state.text) text.value = state.text;
  at("k").value = state.k;
  for (const kind of KINDS) {
    const ofKind = models.filter((model) => model.kind === kind);
    fillSelect(
      at(kind),
      ofKind.map((model) => model.name),
      chosenModel(kind)?.name,
    );
    at(`${kind}-choice`).hidden = !ofKind.length;
  }
  const shown = KINDS.map((kind) => at(kind).value);
  const others = models.map((model) => model.name).filter((name) => !shown.includes(name));
  fillSelect(at("other"), [NONE, ...others], state.other ?? NONE);
  at("other-choice").hidden = !others.length;
}

function fillSelect(select, names, chosen) {
  select.replaceChildren(
    ...names.map((name) =>
      make("option", { value: name, selected: name === chosen }, name || "no other model"),
    ),
  );
}

/** Parse the text of the field; a new text has no kept arcs and no edited tags. */
function submit() {
  if (!text.value.trim()) {
    text.setAttribute("aria-invalid", "true");
    text.focus();
    return say("Type or paste a sentence first.", { isError: true });
  }
  const isNew = text.value !== state.text;
  const fresh = isNew ? { text: text.value, at: 1, fixed: [], tags: [] } : {};
  return change({ ...fresh, ...choices() });
}

function choices() {
  return {
    ...Object.fromEntries(KINDS.map((kind) => [kind, at(kind).value || null])),
    other: at("other").value || null,
    k: bounded(at("k").value, 1, MAX_K, EMPTY.k),
  };
}

function listen() {
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
  });
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
  text.addEventListener("input", () => text.removeAttribute("aria-invalid"));
  for (const id of [...KINDS, "other", "k"]) {
    at(id).addEventListener("change", () => state.text && text.value === state.text && change(choices()));
  }
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault(); // the URL fragment is in use
    at("results").focus();
  });
  at("cancel").addEventListener("click", () => {
    run.controller.abort();
    setBusy(false);
    say("Cancelled.");
    text.focus();
  });
  addEventListener("popstate", () => {
    state = readAddress();
    show();
  });
  watchAlone();
  let waiting = null;
  addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(fitAgain, RESIZED);
  });
}

/** Update the layout of the trees if the window size requires another one. */
function fitAgain() {
  const shown = run.results.filter((result) => result.candidates);
  if (shown.some((result) => layoutOf(result, run.results) !== result.body.layout)) show();
}

/** The example sentences of the models in use. */
function examples() {
  const chosen = [...KINDS.map(chosenModel), ...models].filter(Boolean);
  return chosen.find((model) => model.examples.length)?.examples ?? [];
}

/** Read the URL; without a text, show the first example. */
function readAddress() {
  const found = decode(location.hash);
  state = found; // determines the models in use
  return found.text ? found : { ...found, text: examples()[0] ?? "" };
}

function offerExamples() {
  at("examples").hidden = !examples().length;
  at("examples").replaceChildren(
    ...examples().map((example) =>
      make(
        "button",
        {
          type: "button",
          class: "example",
          onclick: () => {
            text.value = example;
            text.removeAttribute("aria-invalid");
            submit();
          },
        },
        example,
      ),
    ),
  );
}

async function start() {
  listen();
  try {
    [models] = await Promise.all([askModels(), loadMeanings()]);
  } catch (problem) {
    return say(problem.message, { isError: true });
  }
  state = readAddress();
  const shown = show();
  // An on-screen keyboard would cover the trees.
  if (!decode(location.hash).text && !matchMedia("(pointer: coarse)").matches) {
    text.focus({ preventScroll: true });
    text.select();
  }
  await shown;
}

start();
