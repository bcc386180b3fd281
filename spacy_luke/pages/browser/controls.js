// What filters, searches and exports: the bar above the text.

import { make, number } from "./elements.js";
import { answersAsCsv, entitiesAsCsv, relationsAsCsv, save } from "./files.js";

const WAIT = 120; // milliseconds after a key or a move of the slider
const byId = (id) => document.getElementById(id);

/** Labels that can be switched off, each with its color and how often it is there. */
export function showLabels(findings, filters) {
  fill("labels", findings.labels, filters, "hidden", findings.hues);
  fill("relation-labels", findings.relationLabels, filters, "hiddenRelations", null);
}

function fill(id, labels, filters, key, hues) {
  const field = byId(id);
  field.hidden = labels.length === 0;
  const chips = labels.map(([label, count]) => {
    const chip = make("button", { type: "button", class: "chip", "aria-pressed": "true" }, label, " ", make("span", { class: "count" }, number(count)));
    if (hues) chip.style.setProperty("--hue", hues.get(label));
    chip.addEventListener("click", () => {
      const hidden = new Set(filters[key]);
      if (!hidden.delete(label)) hidden.add(label);
      filters.change({ [key]: hidden });
    });
    chip.label = label;
    return chip;
  });
  const all = make("button", { type: "button", class: "quiet" }, "all");
  all.addEventListener("click", () => filters.change({ [key]: new Set(filters[key].size ? [] : labels.map(([label]) => label)) }));
  const press = () => {
    for (const chip of chips) chip.setAttribute("aria-pressed", !filters[key].has(chip.label));
    all.textContent = filters[key].size ? "all" : "none";
  };
  filters.chips = { ...filters.chips, [id]: press };
  press();
  field.replaceChildren(field.querySelector("legend"), ...chips, ...(labels.length > 1 ? [all] : []));
}

/** Says how much of what was found is shown. */
export function tellFiltered(findings, filters) {
  Object.values(filters.chips ?? {}).forEach((press) => press());
  const mentions = findings.mentions.filter((x) => filters.shows(x)).length;
  const relations = findings.relations.filter((x) => filters.showsRelation(x)).length;
  const all = [`${number(mentions)} of ${number(findings.mentions.length)} entities`];
  if (findings.relations.length) all.push(`${number(relations)} of ${number(findings.relations.length)} relations`);
  byId("filtered").textContent = `${all.join(", ")} shown`;
  byId("status").textContent = `${all.join(", ")} are shown`;
}

/** The slider. */
export function startSlider(filters) {
  const slider = byId("least");
  slider.addEventListener("input", () => {
    byId("least-shown").textContent = Number(slider.value).toFixed(2);
    clearTimeout(slider.timer);
    slider.timer = setTimeout(() => filters.change({ least: Number(slider.value) }), WAIT);
  });
}

/** The search: in the text at once, in the lists as a filter. text: the `TextView`. */
export function startSearch(filters, text, toText) {
  const [input, told] = [byId("query"), byId("matches")];
  const buttons = [byId("before"), byId("next")];
  const tell = (at, n) => {
    told.textContent = !input.value.trim() ? "" : n ? `${at ? `${number(at)} of ` : ""}${number(n)}` : "none";
    for (const button of buttons) button.hidden = !n;
  };
  const run = () => {
    const n = text.search(input.value);
    tell(0, n);
    filters.change({ query: input.value });
  };
  const step = (by) => {
    toText();
    tell(text.goToMatch(by), text.matches.length);
  };
  input.addEventListener("input", () => {
    clearTimeout(input.timer);
    input.timer = setTimeout(run, WAIT);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault();
    step(event.shiftKey ? -1 : 1);
  });
  buttons.forEach((button, i) => button.addEventListener("click", () => step(i ? 1 : -1)));
}

/** The menu of files. current: gives the findings. */
export function startExport(current, filters, title) {
  const menu = byId("export");
  const stem = title.replace(/\.\w{1,5}$/, "").replace(/[^\p{L}\p{N}._-]+/gu, "_") || "annotations";
  const files = {
    json: (x) => save(`${stem}.json`, "application/json", `${JSON.stringify(x.form, null, 1)}\n`),
    entities: (x) => save(`${stem}.entities.csv`, "text/csv", entitiesAsCsv(x, filters)),
    relations: (x) => save(`${stem}.relations.csv`, "text/csv", relationsAsCsv(x, filters)),
    answers: (x) => save(`${stem}.answers.csv`, "text/csv", answersAsCsv(x)),
  };
  for (const button of menu.querySelectorAll("button")) {
    button.addEventListener("click", () => {
      files[button.dataset.export](current());
      menu.open = false;
    });
  }
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
  document.addEventListener("pointerdown", (event) => menu.contains(event.target) || (menu.open = false));
}

/** Light, dark, or as the system is. */
export function startTheme() {
  const button = byId("theme");
  const themes = ["system", "light", "dark"];
  button.addEventListener("click", () => {
    const theme = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "system") + 1) % themes.length];
    document.documentElement.dataset.theme = theme;
    button.textContent = `Colors: ${theme}`;
  });
}
