// The graph of the document: its entities, and the relations that hold between them.

import { LABEL_SIZE, counted, draw, make, number, oneLine, widthOf } from "./elements.js";
import { layOut } from "./layout.js";

const MOST = 120; // nodes in a picture
const NAME_SIZE = 13; // pixels of names, as in page.css
const LONGEST = 26; // characters of a name
const FEW = 25; // edges of a picture where each label is seen
const ZOOM = 1.3;

export class GraphView {
  /** choose: called with an entity that is pressed, or null. */
  constructor(root, filters, choose) {
    Object.assign(this, { root, filters, choose, scale: 1 });
    this.width = 0;
    new ResizeObserver(() => Math.abs(root.clientWidth - this.width) > 40 && this.findings && this.show(this.findings)).observe(root);
  }

  /** Draws nothing where nobody sees it; it is drawn when its room has a width. */
  show(findings) {
    this.findings = findings;
    this.width = this.root.clientWidth;
    if (!this.width) return;
    const edges = edgesOf(findings, this.filters);
    const nodes = nodesOf(edges);
    if (!edges.length) {
      const why = findings.relations.length ? "No relations are as you filter." : "There are no relations between entities.";
      this.root.replaceChildren(make("p", { class: "soft" }, why));
      return;
    }
    const kept = nodes.slice(0, MOST);
    const at = new Map(kept.map((node, i) => [node.entity, i]));
    const drawn = edges.filter((x) => at.has(x.head) && at.has(x.tail));
    const crowded = drawn.length > FEW;
    this.size = layOut(kept, drawn.map((x) => this.#wish(x, at.get(x.head), at.get(x.tail), kept, crowded)), this.width);
    const lines = drawn.map((edge) => this.#edge(edge, kept[at.get(edge.head)], kept[at.get(edge.tail)], crowded));
    const boxes = kept.map((node) => this.#node(node));
    this.layers = { lines, boxes };
    this.svg = draw("svg", { role: "group", "aria-label": "Graph of the entities and their relations" }, ...lines.map((x) => x.shape), ...boxes);
    this.scale = 1;
    this.#zoom(1);
    const left = nodes.length > MOST ? ` The ${MOST} with most relations of ${number(nodes.length)} are drawn.` : "";
    this.root.replaceChildren(
      make("div", { class: "bar-of-buttons" },
        make("span", { class: "soft" }, `${counted(nodes.length, "entity", "entities")}, ${counted(edges.reduce((sum, x) => sum + x.labels.length, 0), "relation")}.${left}`),
        make("button", { type: "button", "aria-label": "Smaller", onclick: () => this.#zoom(1 / ZOOM) }, "−"),
        make("button", { type: "button", "aria-label": "Larger", onclick: () => this.#zoom(ZOOM) }, "+"),
      ),
      make("div", { class: "canvas" }, this.svg),
    );
    this.#drag(this.root.lastElementChild);
  }

  /** An edge with the room that its label needs between the names: all of it where there are few, where it is always
   * seen, less in a crowd. */
  #wish(edge, a, b, nodes, crowded) {
    const [widths, label] = [nodes[a].width + nodes[b].width, widthOf(labelOf(edge), LABEL_SIZE)];
    return [a, b, 34 + (crowded ? widths / 3 + 0.8 * label : widths / 2 + label), crowded ? 0 : label];
  }

  #zoom(by) {
    this.scale = Math.min(4, Math.max(1, this.scale * by));
    const { width, height } = this.size;
    this.center = this.scale === 1 ? { x: width / 2, y: height / 2 } : (this.center ?? { x: width / 2, y: height / 2 });
    this.#look();
  }

  #look() {
    const { width, height } = this.size;
    const [w, h] = [width / this.scale, height / this.scale];
    const x = Math.min(Math.max(this.center.x - w / 2, 0), width - w);
    const y = Math.min(Math.max(this.center.y - h / 2, 0), height - h);
    this.center = { x: x + w / 2, y: y + h / 2 };
    this.svg.setAttribute("viewBox", `${x} ${y} ${w} ${h}`);
  }

  #drag(canvas) {
    let last = null;
    canvas.addEventListener("pointerdown", (event) => this.scale > 1 && (last = event));
    canvas.addEventListener("pointermove", (event) => {
      if (!last) return;
      const perPixel = this.size.width / this.scale / this.svg.clientWidth;
      this.center = { x: this.center.x - (event.clientX - last.clientX) * perPixel, y: this.center.y - (event.clientY - last.clientY) * perPixel };
      last = event;
      this.#look();
    });
    for (const end of ["pointerup", "pointerleave", "pointercancel"]) canvas.addEventListener(end, () => (last = null));
  }

  #node({ entity, x, y, width, height, text, edges }) {
    const told = edges.map((e) => `${e.head === entity ? "" : `${e.head.name} `}${e.labels.map((l) => l.label).join(", ")}${e.head === entity ? ` ${e.tail.name}` : ""}`);
    const light = (on) => () => this.#light(on ? entity : null);
    const node = draw(
      "g",
      {
        class: "node",
        tabindex: 0,
        role: "button",
        "aria-label": `${entity.name}${entity.label ? `, ${entity.label}` : ""}: ${told.join("; ")}`,
        transform: `translate(${x - width / 2} ${y - height / 2})`,
        onpointerenter: light(true),
        onpointerleave: light(false),
        onfocus: light(true),
        onblur: light(false),
        onclick: () => this.choose(entity),
        onkeydown: (event) => {
          if (event.key !== "Enter" && event.key !== " ") return;
          event.preventDefault();
          this.choose(entity);
        },
      },
      draw("title", {}, entity.name),
      draw("rect", { width, height, rx: height / 2 }),
      draw("text", { x: width / 2, y: height / 2 + 5, "text-anchor": "middle" }, text),
    );
    node.style.setProperty("--hue", this.findings.hues.get(entity.label));
    node.entity = entity;
    return node;
  }

  #edge(edge, a, b, crowded) {
    const start = border(a, b);
    const end = border(b, a);
    const [dx, dy] = [end.x - start.x, end.y - start.y];
    const length = Math.hypot(dx, dy) || 1;
    const bend = edge.twin ? 36 : 0; // where another edge goes the other way
    const [mx, my] = [(start.x + end.x) / 2 - (dy / length) * bend, (start.y + end.y) / 2 + (dx / length) * bend];
    const angle = Math.atan2(end.y - my, end.x - mx);
    const tip = (side) => `${end.x - 8 * Math.cos(angle + side)},${end.y - 8 * Math.sin(angle + side)}`;
    const best = edge.labels[0];
    const label = labelOf(edge);
    const room = widthOf(label, LABEL_SIZE) * (Math.abs(dx) > Math.abs(dy) ? 1 : 0.3); // of the edge's length
    const long = length < (crowded ? room : room / 2);
    const shape = draw(
      "g",
      { class: edge.right === false ? "edge wrong" : "edge" },
      draw("title", {}, edge.labels.map((x) => `${x.label} ${x.score.toFixed(2)}`).join("\n")),
      draw("path", { class: "arc", d: `M${start.x},${start.y} Q${mx},${my} ${end.x},${end.y}`, "stroke-opacity": 0.35 + 0.65 * best.score }),
      draw("path", { class: "tip", d: `M${end.x},${end.y} L${tip(0.4)} L${tip(-0.4)} Z` }),
      draw("text", { x: (start.x + end.x) / 4 + mx / 2, y: (start.y + end.y) / 4 + my / 2 + 4, "text-anchor": "middle", class: long ? "edge-label long" : "edge-label" }, label),
    );
    return { shape, edge };
  }

  /** Only what is related to an entity stays strong; null: everything. */
  #light(entity) {
    const near = new Set([entity]);
    for (const { shape, edge } of this.layers.lines) {
      const on = entity === null || edge.head === entity || edge.tail === entity;
      if (on) near.add(edge.head).add(edge.tail);
      shape.classList.toggle("faint", !on);
      shape.classList.toggle("strong", on && entity !== null);
    }
    for (const box of this.layers.boxes) box.classList.toggle("faint", entity !== null && !near.has(box.entity));
  }
}

/** The most probable label, and how many there are besides. */
function labelOf({ labels }) {
  return labels.length > 1 ? `${labels[0].label} +${labels.length - 1}` : labels[0].label;
}

/** Edges between entities, with all labels from one to the other, the most probable first. */
function edgesOf(findings, filters) {
  const edges = new Map();
  for (const x of findings.relations) {
    const [head, tail] = [x.head.mention?.entity, x.tail.mention?.entity];
    if (!head || !tail || head === tail || !filters.showsRelation(x)) continue;
    if (!filters.matches(x.head.text, x.label, x.tail.text, head.name, tail.name)) continue;
    const key = `${head.number} ${tail.number}`;
    if (!edges.has(key)) edges.set(key, { head, tail, labels: [], right: null });
    const edge = edges.get(key);
    const known = edge.labels.find((y) => y.label === x.label);
    if (known) known.score = Math.max(known.score, x.score);
    else edge.labels.push({ label: x.label, score: x.score });
    if (x.right !== null) edge.right = edge.right || x.right;
  }
  for (const edge of edges.values()) {
    edge.labels.sort((a, b) => b.score - a.score);
    edge.twin = edges.has(`${edge.tail.number} ${edge.head.number}`);
  }
  return [...edges.values()];
}

/** The entities of edges, those with most edges first. */
function nodesOf(edges) {
  const nodes = new Map();
  for (const edge of edges) {
    for (const entity of [edge.head, edge.tail]) {
      if (!nodes.has(entity)) {
        const name = oneLine(entity.name);
        const text = name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name;
        nodes.set(entity, { entity, text, edges: [], width: widthOf(text, NAME_SIZE) + 22, height: 28 });
      }
      nodes.get(entity).edges.push(edge);
    }
  }
  return [...nodes.values()].sort((a, b) => b.edges.length - a.edges.length || a.entity.number - b.entity.number);
}

/** Where the line from the middle of a box to another leaves it. */
function border(a, b) {
  const [dx, dy] = [b.x - a.x, b.y - a.y];
  const share = Math.min((a.width / 2 + 3) / Math.abs(dx || 1e-6), (a.height / 2 + 3) / Math.abs(dy || 1e-6));
  return { x: a.x + dx * Math.min(share, 0.5), y: a.y + dy * Math.min(share, 0.5) };
}
