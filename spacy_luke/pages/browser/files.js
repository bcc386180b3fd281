// What was found as files: all of it as JSON, and what is shown as CSV.

import { oneLine } from "./elements.js";

/** Lines of CSV. A text that a spreadsheet would compute (=, +, -, @ in front) gets an apostrophe. */
export function toCsv(header, rows) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [header, ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** places are those of the data: code points. */
export function entitiesAsCsv(findings, filters) {
  const header = ["id", "start", "end", "text", "label", "score", "types", "link", "title", "description", "url", "link_score"];
  const rows = findings.mentions
    .filter((x) => filters.shows(x))
    .map((x) => {
      const types = x.types.map((y) => `${y.label} ${y.score}`).join("; ");
      const link = x.link ? [x.link.id, x.link.title, x.link.description, x.link.url, x.link.score] : [null, null, null, null, null];
      return [x.id, x.places.start, x.places.end, x.text, x.label, x.score, types, ...link];
    });
  return toCsv(header, rows);
}

export function relationsAsCsv(findings, filters) {
  const header = ["head", "head_start", "head_end", "head_link", "relation", "property", "tail", "tail_start", "tail_end", "tail_link", "score"];
  const rows = findings.relations
    .filter((x) => filters.showsRelation(x))
    .map((x) => {
      const given = findings.form.relations[x.id];
      const end = (name) => [given[name].text, given[name].start, given[name].end, x[name].mention?.link?.id];
      return [...end("head"), x.label, x.property, ...end("tail"), x.score];
    });
  return toCsv(header, rows);
}

export function answersAsCsv(findings) {
  const rows = findings.form.answers.flatMap((x) => x.places.map((y, i) => [x.id, oneLine(x.question), i + 1, y.start, y.end, y.text, y.score]));
  return toCsv(["id", "question", "rank", "start", "end", "answer", "score"], rows);
}

/** Let the browser save a text as a file. */
export function save(name, kind, text) {
  const address = URL.createObjectURL(new Blob([text], { type: `${kind};charset=utf-8` }));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
