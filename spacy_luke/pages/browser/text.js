// The text with its mentions marked. Blocks get their marks when they are about to be seen; until then, and where
// nothing is marked, they are plain text, so that the browser's own search finds everything.

import { make } from "./elements.js";
import { cutInBlocks, nest, search } from "./places.js";

const BLOCK = 1600; // UTF-16 units
const AT_ONCE = 12; // blocks that are drawn without waiting
const MOST_MATCHES = 5000;
const UNCERTAIN = 0.5;

export class TextView {
  /** open: called with a mention and why ("hover", "focus", "press", "leave"). */
  constructor(root, filters, open) {
    this.root = root;
    this.filters = filters;
    this.open = open;
    this.blocks = [];
    this.seen = new IntersectionObserver((entries) => this.#see(entries), { rootMargin: "1200px" });
    root.addEventListener("keydown", (event) => this.#key(event));
    root.addEventListener("click", (event) => this.#tell(event, "press"));
    root.addEventListener("focusin", (event) => this.#tell(event, "focus"));
    root.addEventListener("pointerover", (event) => event.pointerType === "mouse" && this.#tell(event, "hover"));
    root.addEventListener("pointerout", (event) => event.pointerType === "mouse" && this.#tell(event, "leave"));
    window.addEventListener("beforeprint", () => this.blocks.forEach((block) => this.#draw(block)));
  }

  show(findings) {
    this.findings = findings;
    this.matches = [];
    this.current = null;
    this.answer = null;
    this.seen.disconnect();
    const sentences = findings.sentences.map((x) => x.end);
    this.blocks = cutInBlocks(findings.text, findings.mentions, sentences, BLOCK);
    let first = 0;
    for (const block of this.blocks) {
      while (first < findings.mentions.length && findings.mentions[first].start < block.start) first++;
      let last = first;
      while (last < findings.mentions.length && findings.mentions[last].start < block.end) last++;
      block.mentions = findings.mentions.slice(first, last);
      block.element = make("div", { class: "block" }, findings.text.slice(block.start, block.end));
      block.drawn = false;
    }
    this.root.replaceChildren(...this.blocks.map((x) => x.element));
    this.blocks.forEach((block, i) => (i < AT_ONCE ? this.#draw(block) : this.seen.observe(block.element)));
    this.#rove(findings.mentions.find((x) => this.filters.shows(x)) ?? null);
    CSS.highlights?.clear();
  }

  /** Marks as the filters say; blocks that nobody sees wait until they are seen. */
  refresh() {
    for (const block of this.blocks) {
      const was = block.drawn;
      block.drawn = false;
      if (was) this.#near(block.element) ? this.#draw(block) : this.#forget(block);
    }
    if (!this.current || !this.filters.shows(this.current)) {
      this.#rove(this.findings.mentions.find((x) => this.filters.shows(x)) ?? null);
    } else this.#rove(this.current);
    this.#paint();
  }

  /** Bring a mention into view and give it the focus. */
  go(mention, { focus = true } = {}) {
    const element = this.markOf(mention);
    if (!element) return null;
    this.#rove(mention);
    const low = window.matchMedia("(max-width: 40rem)").matches; // there the card lies at the bottom
    element.scrollIntoView({ block: low ? "start" : "center", behavior: "instant" });
    if (focus) element.focus({ preventScroll: true });
    return element;
  }

  /** Bring a place of the text into view; name: of its highlight. */
  goTo(place, name) {
    const block = this.#blockAt(place.start);
    this.#draw(block);
    if (name === "answer") this.answer = place;
    this.#paint();
    const range = this.#range(block, place);
    const box = range.getBoundingClientRect();
    window.scrollBy({ top: box.top - window.innerHeight / 2, behavior: "instant" });
  }

  /** The element of a mention, drawn where it was not; null where it is not shown. */
  markOf(mention) {
    const block = this.#blockAt(mention.start);
    this.#draw(block);
    return block.element.querySelector(`[data-mention="${mention.id}"]`);
  }

  /** Highlight all mentions of an entity, and no others; null: none. */
  choose(entity) {
    this.chosen = entity;
    for (const mark of this.root.querySelectorAll("mark.chosen")) mark.classList.remove("chosen");
    for (const mention of entity?.mentions ?? []) {
      for (const mark of this.root.querySelectorAll(`[data-mention="${mention.id}"]`)) mark.classList.add("chosen");
    }
  }

  /** Find words in the text; returns how often they are there. */
  search(query) {
    this.matches = search(this.findings.text, query, MOST_MATCHES);
    this.match = -1;
    this.#paint();
    return this.matches.length;
  }

  /** Go to the next match (step 1) or the one before (-1); returns its number from 1, 0 where there is none. */
  goToMatch(step) {
    const n = this.matches.length;
    if (!n) return 0;
    this.match = this.match < 0 ? (step > 0 ? 0 : n - 1) : (this.match + step + n) % n;
    this.goTo(this.matches[this.match]);
    return this.match + 1;
  }

  #see(entries) {
    let drew = false;
    for (const entry of entries) {
      const block = entry.isIntersecting && this.blocks.find((x) => x.element === entry.target);
      if (block && !block.drawn) {
        this.#draw(block);
        drew = true;
      }
    }
    if (drew && (this.matches.length || this.answer)) this.#paint();
  }

  #near(element) {
    const box = element.getBoundingClientRect();
    return box.bottom > -1200 && box.top < window.innerHeight + 1200;
  }

  #forget(block) {
    block.element.replaceChildren(this.findings.text.slice(block.start, block.end));
    this.seen.observe(block.element);
  }

  #draw(block) {
    if (block.drawn) return;
    block.drawn = true;
    this.seen.unobserve(block.element);
    const shown = block.mentions.filter((x) => this.filters.shows(x));
    block.element.replaceChildren(...this.#inside(nest(shown, block), block.start, block.end));
    block.element.classList.toggle("nested", block.element.querySelector("mark mark") !== null);
  }

  #inside(pieces, start, end) {
    const nodes = [];
    let at = start;
    for (const piece of pieces) {
      if (piece.start > at) nodes.push(this.findings.text.slice(at, piece.start));
      nodes.push(this.#mark(piece));
      at = piece.end;
    }
    if (end > at) nodes.push(this.findings.text.slice(at, end));
    return nodes;
  }

  #mark({ span, start, end, first, last, inside }) {
    const kinds = [
      !first && "goes-on",
      !last && "to-be-continued",
      span.score !== null && span.score < UNCERTAIN && "uncertain",
      span.right === false && "wrong",
      span.link && "linked",
      span.entity === this.chosen && "chosen",
    ];
    const types = span.types.map((x) => x.label).join(", ");
    const mark = make(
      "mark",
      {
        class: kinds.filter(Boolean).join(" ") || null,
        "data-mention": span.id,
        "data-label": last ? [span.label, types].filter(Boolean).join(" · ") || null : null,
        id: first ? `m${span.id}` : null,
        tabindex: first ? (span === this.current ? 0 : -1) : null,
      },
      ...this.#inside(inside, start, end),
    );
    mark.style.setProperty("--hue", this.findings.hues.get(span.label));
    return mark;
  }

  #blockAt(place) {
    let low = 0;
    for (let high = this.blocks.length - 1; low < high; ) {
      const middle = (low + high + 1) >> 1;
      if (this.blocks[middle].start <= place) low = middle;
      else high = middle - 1;
    }
    return this.blocks[low];
  }

  #tell(event, why) {
    const mark = event.target.closest("mark[data-mention]");
    if (!mark) return;
    const mention = this.findings.mentions[Number(mark.dataset.mention)];
    if (why === "focus" || why === "press") this.#rove(mention);
    this.open(mention, mark, why);
  }

  /** One mention of all can be reached with the tab key; arrows lead to the others. */
  #rove(mention) {
    const set = (x, value) => this.root.querySelector(`#m${x.id}`)?.setAttribute("tabindex", value);
    if (this.current) set(this.current, -1);
    this.current = mention;
    if (mention) set(mention, 0);
  }

  #key(event) {
    const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    const shown = () => this.findings.mentions.filter((x) => this.filters.shows(x));
    if (event.altKey || event.ctrlKey || event.metaKey || !this.current) return;
    let next = null;
    if (event.key in steps) {
      const all = shown();
      next = all[all.indexOf(this.current) + steps[event.key]];
    } else if (event.key === "Home") next = shown()[0];
    else if (event.key === "End") next = shown().at(-1);
    else if (event.key === "Enter" || event.key === " ") this.#tell(event, "press");
    else return;
    event.preventDefault();
    if (next) this.go(next);
  }

  /** Color the matches of the search and the answer, in blocks that are drawn. */
  #paint() {
    if (!CSS.highlights) return;
    const ranges = (places) =>
      places.flatMap((place) => {
        const block = this.#blockAt(place.start);
        return block.drawn ? [this.#range(block, place)] : [];
      });
    CSS.highlights.set("match", new Highlight(...ranges(this.matches)));
    const current = this.matches[this.match];
    CSS.highlights.set("match-now", new Highlight(...ranges(current ? [current] : [])));
    CSS.highlights.set("answer", new Highlight(...ranges(this.answer ? [this.answer] : [])));
  }

  #range(block, place) {
    const range = new Range();
    const walker = document.createTreeWalker(block.element, NodeFilter.SHOW_TEXT);
    let at = block.start;
    let begun = false;
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const end = at + node.length;
      if (!begun && place.start < end) {
        range.setStart(node, place.start - at);
        begun = true;
      }
      range.setEnd(node, Math.min(Math.max(place.end - at, 0), node.length));
      if (place.end <= end) break;
      at = end;
    }
    return range;
  }
}
