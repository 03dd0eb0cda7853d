/** A tooltip at the pointer; for keyboard users, the panel shows the same information. */

const MARGIN = 8;
const tip = document.getElementById("tip");
let dismissed = false;

/** Show what `write` returns (nodes or null) while the pointer is on an element. */
export function giveTip(node, write) {
  const open = (event) => event.pointerType === "mouse" && show(node, write());
  node.addEventListener("pointerenter", (event) => {
    dismissed = false;
    open(event);
  });
  // Scrolling hides the tooltip; the next movement on the same element shows it again, unless Escape closed it.
  node.addEventListener("pointermove", (event) => tip.hidden && !dismissed && open(event));
  node.addEventListener("pointerleave", hideTip);
}

/** Hide the tooltip. */
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

function dismiss() {
  dismissed = true;
  hideTip();
}

addEventListener("keydown", (event) => event.key === "Escape" && dismiss(), { capture: true });
addEventListener("scroll", hideTip, { capture: true, passive: true });
