/** Make an element; properties that start with "on" are listeners, and true is an empty attribute. */
export function make(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(key, value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Format a probability. */
export function percent(probability) {
  if (probability > 0.9995 && probability < 1) return "over 99.9%";
  if (probability > 0 && probability < 0.0005) return "under 0.1%";
  const digits = probability >= 0.995 || probability < 0.1 ? 1 : 0;
  return `${(100 * probability).toFixed(digits).replace(/\.0$/, "")}%`;
}

/** Make a bar whose length is a probability. */
export function bar(probability) {
  const made = make("span", { class: "bar", "aria-hidden": "true" }, make("span"));
  made.firstChild.style.inlineSize = `${100 * Math.min(1, Math.max(0, probability))}%`;
  return made;
}

/** Format a number with a noun. */
export function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
