// Relations as arcs over their sentences. A sentence is wrapped by the browser as any text; an arc between two lines goes
// to the end of the one and comes in at the beginning of the other, so that every drawing is as wide as there is room.

import { LABEL_SIZE, draw, make, oneLine, widthOf } from "./elements.js";

const NEAR = 4; // words around a mention that are kept of a long sentence
const LEVEL = 19; // pixels from one arc to the next above it
const TEXT = 32; // pixels above the base line of a line that text and the tips of arcs take
const STEP = 24; // drawings

/** The drawings of all sentences that have relations which are shown. choose: called with a mention that is pressed. */
export class ArcsView {
  constructor(root, filters, choose) {
    Object.assign(this, { root, filters, choose });
    this.drawings = new Map();
    this.seen = new IntersectionObserver((entries) => {
      for (const x of entries) if (x.isIntersecting) this.#draw(x.target);
    });
    this.sizes = new ResizeObserver((entries) => entries.forEach((x) => this.#draw(x.target)));
  }

  show(findings) {
    this.seen.disconnect();
    this.sizes.disconnect();
    this.drawings.clear();
    const groups = stretches(findings, this.filters);
    const more = make("button", { type: "button", class: "more" });
    let shown = 0;
    const grow = () => {
      const figures = groups.slice(shown, shown + STEP).map((x) => this.#figure(findings, x));
      more.before(...figures);
      figures.forEach((x) => this.seen.observe(x));
      shown += figures.length;
      more.hidden = shown === groups.length;
      more.textContent = `Show more (${groups.length - shown})`;
    };
    more.addEventListener("click", grow);
    this.root.replaceChildren(more);
    grow();
  }

  #figure(findings, { relations, pieces }) {
    const told = relations.map((x) => `${oneLine(x.head.text)}, ${x.label}, ${oneLine(x.tail.text)}: ${x.score.toFixed(2)}`);
    const svg = draw("svg", { "aria-hidden": "true" });
    const boxes = new Map();
    const words = pieces.map((piece) => {
      if (!piece.end) return piece.text;
      const element = make("span", { class: "word-box", onclick: () => piece.mention && this.choose(piece.mention) }, make("span", { class: "strut" }), make("span", {}, oneLine(piece.text)));
      if (piece.mention?.label) {
        element.dataset.label = piece.mention.label;
        element.style.setProperty("--hue", findings.hues.get(piece.mention.label));
      }
      boxes.set(piece, element);
      return element;
    });
    const figure = make("figure", { class: "arcs", role: "img", "aria-label": told.join("; ") }, svg, make("p", {}, ...words));
    this.drawings.set(figure, { relations, boxes, svg });
    return figure;
  }

  #draw(figure) {
    const { relations, boxes, svg } = this.drawings.get(figure) ?? {};
    if (!svg || !figure.clientWidth) return;
    this.sizes.unobserve(figure);
    for (const box of boxes.values()) box.firstChild.style.height = "0";
    const lines = measure(figure, boxes);
    const width = figure.clientWidth;
    const parts = lay(relations, (x) => boxAt(lines, boxes, x), width);
    const levels = lines.tops.map((_, line) => Math.max(0, ...parts.filter((x) => x.line === line).map((x) => x.level + 1)));
    for (const [piece, box] of boxes) {
      const level = levels[lines.places.get(piece).line];
      box.firstChild.style.height = level ? `${level * LEVEL + TEXT}px` : "0";
    }
    const now = measure(figure, boxes);
    svg.setAttribute("viewBox", `0 0 ${width} ${figure.clientHeight}`);
    svg.replaceChildren(...parts.flatMap((part) => drawPart(part, now.tops[part.line])));
    this.sizes.observe(figure);
  }
}

/** Where boxes are in their figure: lines from the top, and of each box its line and its sides. */
function measure(figure, boxes) {
  const frame = figure.getBoundingClientRect();
  const places = new Map();
  const tops = [];
  for (const [piece, element] of boxes) {
    const rect = element.lastChild.getClientRects()[0];
    const top = rect.top - frame.top;
    let line = tops.findIndex((x) => Math.abs(x - top) < 6);
    if (line < 0) line = tops.push(top) - 1;
    places.set(piece, { line, left: rect.left - frame.left, right: rect.right - frame.left });
  }
  return { tops, places };
}

function boxAt(lines, boxes, end) {
  for (const piece of boxes.keys()) if (piece.start < end.end && end.start < piece.end) return lines.places.get(piece);
  return null;
}

/** Parts of arcs, one for each line that a relation touches, with levels so that none lie on each other. */
function lay(relations, where, width) {
  const parts = [];
  for (const relation of relations) {
    const [head, tail] = [where(relation.head), where(relation.tail)];
    if (!head || !tail || head === tail) continue;
    const middle = (x) => (x.left + x.right) / 2;
    const part = (line, from, to, ends) => parts.push({ relation, line, from, to, ...ends });
    if (head.line === tail.line) part(head.line, middle(head), middle(tail), { head: true, tail: true, label: true });
    else {
      const down = head.line < tail.line;
      part(head.line, middle(head), down ? width : 0, { head: true, label: true });
      part(tail.line, down ? 0 : width, middle(tail), { tail: true });
    }
  }
  for (const part of parts) {
    const told = shortened(part.relation, width);
    const room = widthOf(told, LABEL_SIZE) + 10;
    const text = part.label || Math.abs(part.from - part.to) > room + 20 ? told : "";
    part.text = text;
    part.low = Math.min(part.from, part.to);
    part.high = Math.max(part.from, part.to);
    part.middle = Math.min(Math.max((part.low + part.high) / 2, room / 2), Math.max(width - room / 2, room / 2));
    part.taken = text ? [Math.min(part.low, part.middle - room / 2), Math.max(part.high, part.middle + room / 2)] : [part.low, part.high];
  }
  parts.sort((a, b) => a.high - a.low - (b.high - b.low));
  parts.forEach((part, i) => {
    const others = parts.slice(0, i).filter((x) => x.line === part.line && x.taken[0] < part.taken[1] && part.taken[0] < x.taken[1]);
    part.level = 0;
    while (others.some((x) => x.level === part.level)) part.level++;
  });
  spread(parts);
  return parts;
}

/** The label of an arc, which is cut where the whole drawing has no room for it. */
function shortened({ label, score }, width) {
  const told = (letters) => `${letters < label.length ? `${label.slice(0, letters - 1)}…` : label} ${score.toFixed(2)}`;
  let letters = label.length;
  while (letters > 8 && widthOf(told(letters), LABEL_SIZE) > width - 20) letters--;
  return told(letters);
}

/** Ends of arcs at one mention stand beside each other. */
function spread(parts) {
  const ends = new Map();
  for (const part of parts) {
    for (const [kind, side] of [["head", "from"], ["tail", "to"]]) {
      if (!part[kind]) continue;
      const key = `${part.line} ${part[side].toFixed(0)}`;
      if (!ends.has(key)) ends.set(key, []);
      ends.get(key).push({ part, side, other: side === "from" ? part.to : part.from });
    }
  }
  for (const some of ends.values()) {
    some.sort((a, b) => a.other - b.other);
    some.forEach(({ part, side }, i) => (part[side] += (i - (some.length - 1) / 2) * Math.min(9, 44 / some.length)));
  }
}

function drawPart(part, top) {
  const { from, to, level, relation } = part;
  const height = top - 5 - level * LEVEL - 12;
  const side = Math.sign(to - from) || 1;
  const bend = Math.min(8, Math.abs(to - from) / 2);
  const start = part.head ? `M${from},${top - 3} V${height + bend} Q${from},${height} ${from + side * bend},${height}` : `M${from},${height}`;
  const end = part.tail ? `H${to - side * bend} Q${to},${height} ${to},${height + bend} V${top - 4}` : `H${to}`;
  const kind = relation.right === false ? "arc wrong" : "arc";
  const shapes = [draw("path", { class: kind, d: `${start} ${end}`, "stroke-opacity": 0.35 + 0.65 * relation.score })];
  if (part.tail) shapes.push(draw("path", { class: "tip", d: `M${to - 4},${top - 9} L${to + 4},${top - 9} L${to},${top - 2} Z` }));
  if (part.text) {
    shapes.push(draw("text", { x: part.middle, y: height + 4, class: "arc-label", "text-anchor": "middle" }, part.text));
  }
  return shapes;
}

/** Sentences that have relations: [{relations, pieces}], pieces being mentions (with start and end) and words between. */
function stretches(findings, filters) {
  const groups = new Map();
  for (const relation of findings.relations) {
    if (!filters.showsRelation(relation) || !filters.matches(relation.head.text, relation.label, relation.tail.text)) continue;
    const low = Math.min(relation.head.start, relation.tail.start);
    const high = Math.max(relation.head.end, relation.tail.end);
    const [start, end] = around(findings, low, high);
    const key = `${start} ${end}`;
    if (!groups.has(key)) groups.set(key, { start, end, relations: [] });
    groups.get(key).relations.push(relation);
  }
  const sorted = [...groups.values()].sort((a, b) => a.start - b.start);
  return sorted.map((x) => ({ relations: x.relations, pieces: piecesOf(findings.text, x) }));
}

function around({ sentences, text }, low, high) {
  if (!sentences.length) return [0, text.length];
  const last = (test) => {
    let [a, b] = [0, sentences.length - 1];
    while (a < b) {
      const middle = (a + b + 1) >> 1;
      if (test(sentences[middle])) a = middle;
      else b = middle - 1;
    }
    return sentences[a];
  };
  return [last((x) => x.start <= low).start, last((x) => x.start < high).end];
}

/** Mentions of the relations, of two that overlap the longer one, and the words near them. */
function piecesOf(text, { start, end, relations }) {
  const ends = relations.flatMap((x) => [x.head, x.tail]).sort((a, b) => b.end - b.start - (a.end - a.start));
  const kept = [];
  for (const x of ends) if (!kept.some((y) => y.start < x.end && x.start < y.end)) kept.push(x);
  kept.sort((a, b) => a.start - b.start);
  const pieces = [];
  let at = start;
  kept.forEach((x, i) => {
    pieces.push({ text: shorten(text.slice(at, x.start), i > 0, true) });
    pieces.push({ text: text.slice(x.start, x.end), start: x.start, end: x.end, mention: x.mention });
    at = x.end;
  });
  pieces.push({ text: shorten(text.slice(at, end), true, false) });
  return pieces.filter((x) => x.text);
}

function shorten(text, before, behind) {
  const words = text.split(/\s+/).filter(Boolean);
  const most = NEAR * (Number(before) + Number(behind));
  const kept = words.length <= most + 1 ? words : [...(before ? words.slice(0, NEAR) : []), "…", ...(behind ? words.slice(-NEAR) : [])];
  return `${/^\s/.test(text) ? " " : ""}${kept.join(" ")}${kept.length && /\s$/.test(text) ? " " : ""}`;
}
