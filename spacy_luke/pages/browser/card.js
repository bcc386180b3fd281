// The card of a mention: label, score, types, link, relations. It comes by pointer, focus or tap, stays while the pointer
// is on it, and goes by Escape; what was pressed stays open, and can be walked through.

import { counted, leadTo, make, meter, oneLine, tag } from "./elements.js";

const WAIT = 140; // milliseconds before it comes, and before it goes

export class Card {
  /** goTo: called with a mention that shall be shown in the text. */
  constructor(root, goTo) {
    this.root = root;
    this.goTo = goTo;
    this.pinned = false;
    this.quiet = false; // while it is, a mention that gets the focus does not open it
    root.addEventListener("pointerenter", () => clearTimeout(this.timer));
    root.addEventListener("pointerleave", () => this.pinned || this.#later(() => this.close()));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.close({ back: true }));
    document.addEventListener("pointerdown", (event) => {
      if (!root.contains(event.target) && !event.target.closest("mark")) this.close();
    });
    window.addEventListener("resize", () => this.close());
  }

  show(findings) {
    this.findings = findings;
    this.close();
  }

  /** why: "hover", "focus", "press" or "leave". */
  tell(mention, element, why) {
    if (this.quiet) return undefined;
    if (why === "leave") return this.pinned || this.#later(() => this.close());
    if (why === "hover") return this.pinned || this.#later(() => this.open(mention, element, false));
    clearTimeout(this.timer);
    return this.open(mention, element, why === "press");
  }

  open(mention, element, pinned) {
    clearTimeout(this.timer);
    if (this.mention === mention && this.pinned && !pinned) return;
    this.element?.removeAttribute("aria-describedby");
    Object.assign(this, { mention, element, pinned });
    this.root.replaceChildren(...this.#content(mention));
    this.root.hidden = false;
    this.root.setAttribute("aria-label", `About ${oneLine(mention.text)}`);
    element.setAttribute("aria-describedby", this.root.id);
    this.#put(element);
    if (pinned) this.root.focus({ preventScroll: true });
  }

  close({ back = false } = {}) {
    clearTimeout(this.timer);
    if (this.root.hidden) return;
    const inside = this.root.contains(document.activeElement);
    this.root.hidden = true;
    this.element?.removeAttribute("aria-describedby");
    this.mention = null;
    this.pinned = false;
    if (back && inside) {
      this.quiet = true; // or the focus would open it again
      this.element?.focus({ preventScroll: true });
      this.quiet = false;
    }
  }

  #later(action) {
    clearTimeout(this.timer);
    this.timer = setTimeout(action, WAIT);
  }

  /** Below the mention, or above it where there is no room; on a phone the style sheet puts it at the bottom. */
  #put(element) {
    const mark = element.getClientRects()[0] ?? element.getBoundingClientRect();
    const width = document.documentElement.clientWidth;
    const { offsetWidth, offsetHeight } = this.root;
    const left = Math.max(8, Math.min(mark.left, width - offsetWidth - 8));
    const below = mark.bottom + 6;
    const above = mark.top - offsetHeight - 6;
    const top = below + offsetHeight > window.innerHeight && above > 0 ? above : below;
    this.root.style.setProperty("--left", `${left + window.scrollX}px`);
    this.root.style.setProperty("--top", `${top + window.scrollY}px`);
  }

  *#content(mention) {
    const { link, types, relations, entity } = mention;
    yield make("button", { type: "button", class: "close", "aria-label": "Close", onclick: () => this.close({ back: true }) }, "×");
    yield make("p", { class: "name" }, make("strong", {}, oneLine(mention.text)), " ", mention.label && tag(mention.label, this.findings.hues.get(mention.label)));
    yield make("dl", {}, ...this.#facts(mention));
    if (link) yield* this.#link(link);
    if (types.length) {
      yield make("h2", {}, "Types");
      yield make("ul", { class: "plain" }, types.map((x) => make("li", {}, make("span", {}, x.label), meter(x.score))));
    }
    const shown = relations.slice(0, 8);
    if (shown.length) {
      yield make("h2", {}, counted(relations.length, "relation"));
      yield make("ul", { class: "plain" }, shown.map((x) => this.#relation(x, mention)));
    }
    const at = entity.mentions.indexOf(mention);
    if (entity.mentions.length > 1) {
      const to = (step) => () => this.goTo(entity.mentions.at((at + step) % entity.mentions.length));
      yield make(
        "p",
        { class: "steps" },
        make("button", { type: "button", onclick: to(-1), "aria-label": "Mention before" }, "‹"),
        `mention ${at + 1} of ${entity.mentions.length}`,
        make("button", { type: "button", onclick: to(1), "aria-label": "Next mention" }, "›"),
      );
    }
  }

  *#facts(mention) {
    if (mention.score !== null) yield* [make("dt", {}, "score"), make("dd", {}, meter(mention.score))];
    if (mention.right === false) yield* [make("dt", {}, "by the key"), make("dd", { class: "no" }, "not right")];
    if (mention.right === true) yield* [make("dt", {}, "by the key"), make("dd", {}, "right")];
  }

  *#link(link) {
    yield make("h2", {}, link.title && link.title !== link.id ? link.title : "Link");
    if (link.description) yield make("p", { class: "about" }, link.description);
    const score = link.score === null ? [] : [make("dt", {}, "link score"), make("dd", {}, meter(link.score))];
    yield make("dl", {}, make("dt", {}, "id"), make("dd", {}, make("code", {}, link.id)), ...score);
    if (link.url) yield make("p", { class: "address" }, leadTo(link.url, link.url));
    const others = link.candidates.filter((x) => x.score >= 0.005).slice(0, 3);
    const named = others.map((x) => `${x.id === "NIL" ? "no known entity" : x.id} (${x.score.toFixed(2)})`).join(", ");
    if (named) yield make("p", { class: "soft" }, `also considered: ${named}`);
  }

  #relation(relation, mention) {
    const out = relation.head.mention === mention;
    const other = out ? relation.tail : relation.head;
    const words = oneLine(other.text);
    const name = other.mention
      ? make("button", { type: "button", class: "to", onclick: () => this.goTo(other.mention) }, words)
      : words;
    const label = make("span", { class: "relation" }, relation.label);
    return make("li", {}, make("span", {}, ...(out ? [label, " → ", name] : [name, " → ", label, " → this"])), meter(relation.score));
  }
}
