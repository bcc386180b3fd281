// What was found in a text, as the views need it: entities with their mentions, relations between them, filters.

import { oneLine } from "./elements.js";
import { unitsOf } from "./places.js";

const HUES = [250, 145, 30, 310, 85, 195, 350, 120, 280, 55];

/** form: as the schema of annotations says; page: labels in the order of their colors, what is right. */
export function readFindings(form, page) {
  const units = unitsOf(form.text);
  const place = (x) => ({ ...x, start: units(x.start), end: units(x.end) });
  const mentions = form.entities.map((x) => ({ ...place(x), places: x, right: page.right?.mentions[x.id] ?? null }));
  const entities = group(mentions);
  const relations = form.relations.map((x, i) => ({
    id: i,
    label: x.label,
    property: x.property,
    score: x.score,
    head: end(x.head, place, mentions),
    tail: end(x.tail, place, mentions),
    right: page.right?.relations[i] ?? null,
  }));
  for (const relation of relations) {
    relation.head.mention?.relations.push(relation);
    if (relation.tail.mention !== relation.head.mention) relation.tail.mention?.relations.push(relation);
  }
  const labels = [...new Set([...page.labels, ...mentions.map((x) => x.label)])];
  return {
    form,
    text: form.text,
    mentions,
    entities,
    relations,
    answers: form.answers.map((x) => ({ ...x, places: x.places.map((y) => (y.start === null ? y : place(y))) })),
    sentences: form.sentences?.map(([start, end]) => ({ start: units(start), end: units(end) })) ?? [],
    hues: new Map(labels.map((label, i) => [label, HUES[i % HUES.length]])),
    labels: tally(mentions, labels),
    relationLabels: tally(relations, []),
  };
}

function end(given, place, mentions) {
  const mention = given.entity === null ? null : mentions[given.entity];
  return { ...place(given), mention };
}

/** [label, how often] of those that there are: in a given order, the others after them by how often. */
function tally(items, order) {
  const counts = new Map(order.map((label) => [label, 0]));
  for (const { label } of items) counts.set(label, (counts.get(label) ?? 0) + 1);
  const found = [...counts].filter(([label, n]) => n && label !== "");
  return order.length ? found : found.sort((a, b) => b[1] - a[1]);
}

/** Mentions of one entity: those with one link, or without any and with the same words and label. A mention without a
 * link is of the entity that all others with its words and label are linked to. */
function group(mentions) {
  const words = (x) => JSON.stringify([oneLine(x.text), x.label]);
  const links = new Map();
  for (const x of mentions) {
    if (!links.has(words(x))) links.set(words(x), new Set());
    if (x.link) links.get(words(x)).add(x.link.id);
  }
  const entities = new Map();
  for (const mention of mentions) {
    const ids = links.get(words(mention));
    const id = mention.link?.id ?? (ids.size === 1 ? [...ids][0] : null);
    const key = id === null ? words(mention) : JSON.stringify([id]);
    if (!entities.has(key)) entities.set(key, { number: entities.size, mentions: [] });
    mention.entity = entities.get(key);
    mention.entity.mentions.push(mention);
    mention.relations = [];
  }
  return [...entities.values()].map((entity) => Object.assign(entity, summary(entity.mentions)));
}

function summary(mentions) {
  const names = [...new Set(mentions.map((x) => oneLine(x.text)))].sort((a, b) => b.length - a.length);
  const labels = tally(mentions, []);
  const linked = mentions.filter((x) => x.link).sort((a, b) => (b.link.score ?? 0) - (a.link.score ?? 0));
  return { name: names[0], names, label: labels.length ? labels[0][0] : "", link: linked[0]?.link ?? null };
}

/** The filters, and who wants to know when they change. */
export class Filters {
  constructor() {
    this.hidden = new Set(); // labels of entities
    this.hiddenRelations = new Set();
    this.least = 0;
    this.query = "";
    this.listeners = [];
  }

  change(what) {
    Object.assign(this, what);
    for (const listener of this.listeners) listener();
  }

  /** Whether a mention is shown; one without a score always is, as far as the score goes. */
  shows(mention) {
    return !this.hidden.has(mention.label) && (mention.score ?? 1) >= this.least;
  }

  /** A relation is shown where both of its mentions are. */
  showsRelation(relation) {
    const shown = [relation.head, relation.tail].every((x) => x.mention === null || this.shows(x.mention));
    return shown && !this.hiddenRelations.has(relation.label) && relation.score >= this.least;
  }

  /** Whether texts have the words that are searched, "" has all. */
  matches(...texts) {
    const wanted = oneLine(this.query).toLowerCase();
    return !wanted || texts.some((text) => oneLine(text).toLowerCase().includes(wanted));
  }
}
