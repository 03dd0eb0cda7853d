/** A tip beside whatever the pointer is on; the panel says the same to those who use the keyboard. */

const MARGIN = 8;
const tip = document.getElementById("tip");

/** Show what `write` returns, nodes or null, while a pointer is on an element. */
export function giveTip(node, write) {
  node.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && show(node, write()));
  node.addEventListener("pointerleave", hideTip);
}

/** Take the tip away. */
export function hideTip() {
  tip.hidden = true;
}

function show(node, content) {
  if (!content) return hideTip();
  tip.replaceChildren(...[content].flat());
  tip.hidden = false;
  const target = node.getBoundingClientRect();
  const { width, height } = tip.getBoundingClientRect();
  const middle = target.left + target.width / 2 - width / 2;
  const below = target.bottom + MARGIN;
  const fits = below + height < innerHeight - MARGIN;
  tip.style.left = `${Math.max(MARGIN, Math.min(middle, innerWidth - width - MARGIN))}px`;
  tip.style.top = `${fits ? below : Math.max(MARGIN, target.top - height - MARGIN)}px`;
}

addEventListener("keydown", (event) => event.key === "Escape" && hideTip(), { capture: true });
addEventListener("scroll", hideTip, { capture: true, passive: true });
