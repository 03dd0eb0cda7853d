/** Files of a tree: SVG, PNG, CoNLL-U or brackets. */

import { make } from "./make.js";
import { onWhite } from "./trees.js";

const SCALE = 2;
const MARGIN = 16;
const MAX_SIDE = 16000; // browsers do not support larger canvases

/** Make the buttons that write the files of one tree. */
export function downloads(sentence, { name, label, key, onError }) {
  const forms = [
    ["SVG", "svg", () => new Blob([sentence.svg], { type: "image/svg+xml" })],
    ["PNG", "png", () => paint(sentence.svg)],
    sentence.conllu === undefined
      ? ["Brackets", "mrg", () => new Blob([`${sentence.brackets.trimEnd()}\n`], { type: "text/plain" })]
      : ["CoNLL-U", "conllu", () => new Blob([`${sentence.conllu.trimEnd()}\n\n`], { type: "text/plain" })],
  ];
  const buttons = forms.map(([form, suffix, write]) =>
    make(
      "button",
      {
        type: "button",
        class: "quiet",
        "data-key": `${key}-${suffix}`,
        "aria-label": `Download ${label} as ${form}`,
        onclick: async () => {
          try {
            save(await write(), `${name}.${suffix}`);
          } catch (problem) {
            onError(`${form} could not be written: ${problem.message}.`);
          }
        },
      },
      form,
    ),
  );
  return make("div", { class: "downloads", role: "group", "aria-label": `Download ${label}` }, buttons);
}

function save(blob, name) {
  const address = URL.createObjectURL(blob);
  make("a", { href: address, download: name }).click();
  // The browser reads the file after the click event.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Draw a tree on white, at twice its size on the page. */
async function paint(text) {
  const { text: picture, width, height } = onWhite(text);
  const address = URL.createObjectURL(new Blob([picture], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = address;
    await image.decode();
    const scale = Math.min(SCALE, MAX_SIDE / (Math.max(width, height) + 2 * MARGIN));
    const canvas = document.createElement("canvas");
    canvas.width = Math.ceil(scale * (width + 2 * MARGIN));
    canvas.height = Math.ceil(scale * (height + 2 * MARGIN));
    const context = canvas.getContext("2d");
    context.fillStyle = "white";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, scale * MARGIN, scale * MARGIN, scale * width, scale * height);
    const blob = await new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
    if (!blob) throw new Error("the drawing is too large");
    return blob;
  } finally {
    URL.revokeObjectURL(address);
  }
}
