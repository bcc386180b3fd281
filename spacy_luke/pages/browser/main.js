// The page: reads the data, and joins the views.

import { ArcsView } from "./arcs.js";
import { Card } from "./card.js";
import { showLabels, startExport, startSearch, startSlider, startTheme, tellFiltered } from "./controls.js";
import { counted, make } from "./elements.js";
import { Filters, readFindings } from "./findings.js";
import { GraphView } from "./graph.js";
import { startLive } from "./live.js";
import { showAnswers, showEntities, showRelations } from "./tables.js";
import { Tabs } from "./tabs.js";
import { TextView } from "./text.js";

const byId = (id) => document.getElementById(id);
const data = (id) => JSON.parse(byId(id).textContent);
const page = data("page");
const filters = new Filters();
let findings = null;

const text = new TextView(byId("text"), filters, (mention, element, why) => card.tell(mention, element, why));
const goTo = (mention, withCard = false) => {
  tabs.toText();
  text.choose(mention.entity);
  card.quiet = !withCard; // it would lie on the list that was pressed
  if (filters.shows(mention)) text.go(mention);
  card.quiet = false;
  history.replaceState(null, "", `#m${mention.id}`);
};
const goToPlace = (place) => {
  tabs.toText();
  text.goTo(place, "answer");
};
const card = new Card(byId("card"), (mention) => goTo(mention, true));
const arcs = new ArcsView(byId("arcs"), filters, goTo);
const graph = new GraphView(byId("graph"), filters, (entity) => goTo(entity.mentions.find((x) => filters.shows(x)) ?? entity.mentions[0]));
const tabs = new Tabs((name) => {
  card.close();
  if (findings && name === "graph") graph.show(findings);
});

/** Show what was found in a text: all views anew. */
function show(form, { labels, right, direction }) {
  findings = readFindings(form, { labels, right });
  byId("text").setAttribute("lang", form.language || "und");
  byId("text").setAttribute("dir", direction);
  byId("counts").textContent = told(findings).join(" · ");
  showLabels(findings, filters);
  card.show(findings);
  text.show(findings);
  const there = { entities: true, relations: findings.relations.length, graph: findings.relations.length, answers: findings.answers.length };
  tabs.show(Object.keys(there).filter((name) => there[name]));
  if (findings.answers.length) tabs.open(tabs.wide.matches ? "answers" : "text");
  showAnswers(byId("answers"), findings, goToPlace);
  byId("export").querySelectorAll("[data-export]").forEach((x) => (x.hidden = x.dataset.export !== "json" && !there[x.dataset.export]));
  lists();
}

function lists() {
  showEntities(byId("entities"), findings, filters, goTo);
  showRelations(byId("relation-table"), findings, filters, goTo);
  arcs.show(findings);
  graph.show(findings);
  tellFiltered(findings, filters);
}

function told({ form, mentions, relations, answers }) {
  const linked = mentions.filter((x) => x.link).length;
  return [
    counted(form.words, "word"),
    counted(mentions.length, "entity", "entities"),
    linked && counted(linked, "link"),
    relations.length && counted(relations.length, "relation"),
    answers.length && counted(answers.length, "question"),
    form.pipeline && `by ${form.pipeline}`,
  ].filter(Boolean);
}

filters.listeners.push(() => {
  card.close();
  text.refresh();
  lists();
});
startSlider(filters);
startSearch(filters, text, () => tabs.toText());
startExport(() => findings, filters, page.title);
startTheme();
new ResizeObserver(([bar]) => document.documentElement.style.setProperty("--bar-height", `${bar.borderBoxSize[0].blockSize}px`)).observe(byId("bar"));
byId("filters").open = tabs.wide.matches;
if (page.verdict.length) {
  byId("verdict").hidden = false;
  byId("verdict").replaceChildren(...page.verdict.flatMap(([name, words]) => [make("dt", {}, name), make("dd", {}, words)]));
}
show(data("annotations"), page);
startLive(page, (form) => show(form, { ...page, right: null }));

function goToHash() {
  const mention = findings.mentions[Number(/^#m(\d+)$/.exec(location.hash)?.[1] ?? NaN)];
  if (mention) goTo(mention);
}
window.addEventListener("hashchange", goToHash);
goToHash();
