// The lists beside the text: entities, relations, answers. What is pressed in them is shown in the text.

import { growingTable, leadTo, make, meter, number, oneLine, tag } from "./elements.js";

const STEP = 150; // rows

const column = (name, kind) => make("th", { scope: "col", class: kind }, name);

/** goTo: called with a mention; each press leads to the next mention of the entity. */
export function showEntities(root, findings, filters, goTo) {
  const rows = [];
  for (const entity of findings.entities) {
    const shown = entity.mentions.filter((x) => filters.shows(x));
    const { link } = entity;
    if (shown.length && filters.matches(...entity.names, link?.title ?? "", link?.description ?? "", link?.id ?? "")) {
      rows.push(() => entityRow(entity, shown, findings, goTo));
    }
  }
  const header = [column("Entity"), column("Times", "number"), column("Score", "number")];
  root.replaceChildren(...(rows.length ? growingTable("Entities", header, rows, STEP) : nothing(findings.entities, "entities")));
  return rows.length;
}

function entityRow(entity, shown, findings, goTo) {
  const scores = shown.map((x) => x.score).filter((x) => x !== null);
  let next = 0;
  const press = () => goTo(shown[next++ % shown.length]);
  const { link, label } = entity;
  const known = link && [
    make("span", { class: "link" }, link.title && link.title !== link.id ? `${link.title} ` : "", leadTo(link.url, link.id)),
    link.description && make("span", { class: "about" }, link.description),
  ];
  const wrong = shown.some((x) => x.right === false);
  return make(
    "tr",
    { "data-entity": entity.number },
    make(
      "td",
      {},
      make("button", { type: "button", class: "to", onclick: press }, entity.name),
      " ",
      label && tag(label, findings.hues.get(label)),
      wrong && make("span", { class: "no" }, shown.every((x) => x.right === false) ? " not right" : " not always right"),
      known,
    ),
    make("td", { class: "number" }, shown.length),
    make("td", { class: "number" }, meter(scores.length ? Math.max(...scores) : null)),
  );
}

/** Rows of relations with the same words, the most probable first. */
export function showRelations(root, findings, filters, goTo) {
  const groups = new Map();
  for (const x of findings.relations) {
    if (!filters.showsRelation(x) || !filters.matches(x.head.text, x.label, x.tail.text)) continue;
    const key = JSON.stringify([oneLine(x.head.text), x.label, oneLine(x.tail.text)]);
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(x);
  }
  const sorted = [...groups.values()].map((x) => x.sort((a, b) => b.score - a.score)).sort((a, b) => b[0].score - a[0].score);
  const header = [column("Head"), column("Relation"), column("Tail"), column("Score", "number")];
  const rows = sorted.map((some) => () => relationRow(some, goTo));
  root.replaceChildren(...(rows.length ? growingTable("Relations", header, rows, STEP) : nothing(findings.relations, "relations")));
  return rows.length;
}

function relationRow(some, goTo) {
  const [best] = some;
  const name = (x) => {
    const words = oneLine(x.text);
    return x.mention ? make("button", { type: "button", class: "to", onclick: () => goTo(x.mention) }, words) : words;
  };
  return make(
    "tr",
    {},
    make("td", {}, name(best.head)),
    make("td", {}, best.label, best.property && make("span", { class: "soft" }, ` ${best.property}`), some.length > 1 && make("span", { class: "soft" }, ` × ${some.length}`), best.right === false && make("span", { class: "no" }, " not right")),
    make("td", {}, name(best.tail)),
    make("td", { class: "number" }, meter(best.score)),
  );
}

/** goTo: called with a place of the text. */
export function showAnswers(root, findings, goTo) {
  root.replaceChildren(...findings.answers.map((answer) => answerOf(answer, findings, goTo)));
}

function answerOf(answer, findings, goTo) {
  const [best, ...others] = answer.places;
  const said = best
    ? best.start === null
      ? [make("em", {}, "The text does not say. "), meter(best.score)]
      : [...inContext(best, findings), " ", meter(best.score)]
    : [make("em", {}, "There is nothing to choose from.")];
  const named = others.slice(0, 3).map((x) => `${oneLine(x.text) || "no answer"} (${x.score.toFixed(2)})`);
  const show = best && best.start !== null;
  return make(
    "article",
    { class: "answer" },
    make("h2", {}, answer.question),
    make("p", {}, ...said),
    show && make("button", { type: "button", class: "to", onclick: () => goTo(best) }, "Show in the text"),
    named.length > 0 && make("p", { class: "soft" }, `or: ${named.join("; ")}`),
  );
}

/** The sentences that an answer is in, or what stands around it. */
function inContext(place, { text, sentences }) {
  const around = sentences.filter((x) => x.start < place.end && place.start < x.end);
  const start = around.length ? around[0].start : Math.max(0, place.start - 150);
  const end = around.length ? around.at(-1).end : Math.min(text.length, place.end + 150);
  return [text.slice(start, place.start).trimStart(), make("mark", { class: "best" }, text.slice(place.start, place.end)), text.slice(place.end, end).trimEnd()];
}

function nothing(all, name) {
  const why = all.length ? `No ${name} are as you filter.` : `There are no ${name}.`;
  return [make("p", { class: "soft" }, why)];
}
