// Views: beside the text on a wide screen, one at a time on a narrow one.

const NAMES = ["text", "entities", "relations", "graph", "answers"];

export class Tabs {
  /** changed: called with the name of the view that is shown now. */
  constructor(changed) {
    this.changed = changed;
    this.wide = window.matchMedia("(min-width: 64rem)");
    this.wide.addEventListener("change", () => this.open(this.wide.matches && this.view === "text" ? this.side : this.view));
    this.tabs = NAMES.map((name) => document.getElementById(`tab-${name}`));
    this.tabs.forEach((tab, i) => tab.addEventListener("click", () => this.open(NAMES[i])));
    document.getElementById("tabs").addEventListener("keydown", (event) => this.#key(event));
  }

  /** there: names of views that have something to show. */
  show(there) {
    this.there = new Set(["text", ...there]);
    this.tabs.forEach((tab, i) => (tab.hidden = !this.there.has(NAMES[i])));
    this.side = NAMES.find((name) => name !== "text" && this.there.has(name)) ?? "entities";
    this.open(this.wide.matches ? this.side : "text");
  }

  open(name) {
    this.view = name;
    if (name !== "text") this.side = name;
    document.body.dataset.view = name;
    this.tabs.forEach((tab, i) => {
      const on = NAMES[i] === name;
      tab.setAttribute("aria-selected", on);
      tab.tabIndex = on ? 0 : -1;
      if (i) document.getElementById(NAMES[i]).hidden = NAMES[i] !== (this.wide.matches ? this.side : name);
    });
    this.changed(name);
  }

  /** Show the text where it is not shown. */
  toText() {
    if (!this.wide.matches) this.open("text");
  }

  #key(event) {
    const steps = { ArrowRight: 1, ArrowLeft: -1 };
    if (!(event.key in steps)) return;
    const shown = this.tabs.filter((tab) => tab.offsetParent !== null);
    const at = shown.indexOf(document.activeElement);
    const next = shown[(at + steps[event.key] + shown.length) % shown.length];
    event.preventDefault();
    next.click();
    next.focus();
  }
}
