// Elements of the page. What comes from users becomes text nodes and values of attributes, and never HTML.

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. attributes: null, undefined and false are left out, true is "", "on..." are listeners. */
export function make(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An element of a drawing. */
export function draw(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((x) => x !== null && x !== undefined && x !== false && x !== ""));
  return element;
}

/** The address, where it is one that a browser may safely go to; null of any other, such as javascript:. */
export function safeAddress(address) {
  try {
    return ["http:", "https:"].includes(new URL(address).protocol) ? address : null;
  } catch {
    return null;
  }
}

/** A link to somewhere else, or a plain text where the address is none that is safe. */
export function leadTo(address, text) {
  const safe = safeAddress(address);
  return safe ? make("a", { href: safe, rel: "noopener noreferrer", target: "_blank" }, text) : make("span", {}, text);
}

/** A label in its color. */
export function tag(label, hue) {
  const element = make("span", { class: "tag" }, label);
  element.style.setProperty("--hue", hue);
  return element;
}

/** A score with a bar that is as long; nothing where there is none. */
export function meter(score) {
  if (score === null) return make("span", { class: "score none" }, "–");
  const bar = make("span", { class: "bar", "aria-hidden": "true" });
  bar.style.setProperty("--share", score);
  return make("span", { class: "score" }, bar, score.toFixed(3));
}

export const oneLine = (text) => text.split(/\s+/).filter(Boolean).join(" ");
export const number = (n) => n.toLocaleString("en");
export const counted = (n, one, many = `${one}s`) => `${number(n)} ${n === 1 ? one : many}`;

/** A table that grows by a button. rows: of functions that make a <tr>, so that only what is seen is made. */
export function growingTable(caption, header, rows, step) {
  const body = make("tbody");
  const more = make("button", { type: "button", class: "more" });
  let shown = 0;
  const grow = () => {
    body.append(...rows.slice(shown, shown + step).map((row) => row()));
    shown = Math.min(shown + step, rows.length);
    more.hidden = shown === rows.length;
    more.textContent = `Show more (${number(rows.length - shown)})`;
  };
  more.addEventListener("click", grow);
  grow();
  const head = make("thead", {}, make("tr", {}, header));
  return [make("table", {}, make("caption", { class: "hidden" }, caption), head, body), more];
}

export const LABEL_SIZE = 11.5; // pixels of a relation's label, as in page.css
const pens = new Map();

/** Pixels that a line of text takes in the page's font, which is the reader's, in a size. */
export function widthOf(text, size) {
  if (!pens.has(size)) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${size}px ${getComputedStyle(document.body).fontFamily}`;
    pens.set(size, pen);
  }
  return pens.get(size).measureText(text).width;
}
