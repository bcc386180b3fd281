// Places in a text. The data count code points, as Python does; JavaScript counts UTF-16 units.

/** A function from a place in code points to one in units; both have places from 0 to the length of the text. */
export function unitsOf(text) {
  if (!/[\uD800-\uDBFF]/.test(text)) return (place) => place;
  const units = [];
  let at = 0;
  for (const character of text) {
    units.push(at);
    at += character.length;
  }
  units.push(at);
  return (place) => units[place];
}

/** Pieces [start, end) of a text of about `size` units, cut behind blank lines and sentences, never in a span.
 * spans: [start, end) in order of their starts; sentences: their ends, in order. */
export function cutInBlocks(text, spans, sentences, size) {
  const good = [];
  for (const found of text.matchAll(/\n[^\S\n]*\n+/g)) good.push(found.index + found[0].length);
  const blocks = [];
  let start = 0;
  let span = 0;
  let reached = 0; // the end of all spans that begin before a place
  const inSpan = (place) => {
    while (span < spans.length && spans[span].start < place) reached = Math.max(reached, spans[span++].end);
    return place < reached;
  };
  const ends = mergeSorted(good, sentences);
  const paragraphs = new Set(good);
  for (const place of ends) {
    if (place <= start || place >= text.length) continue;
    const full = place - start >= (paragraphs.has(place) ? size / 8 : size);
    if (full && !inSpan(place)) {
      blocks.push({ start, end: place });
      start = place;
    }
  }
  if (start < text.length || !blocks.length) blocks.push({ start, end: text.length });
  return blocks;
}

function mergeSorted(a, b) {
  return [...new Set([...a, ...b])].sort((x, y) => x - y);
}

/** Nested pieces of the spans of a block, for marks: [{span, start, end, first, last, inside: [...]}]. Of two spans that
 * overlap and do not lie in each other, the later is in two pieces. spans: sorted by start, then the longest first. */
export function nest(spans, block) {
  const root = { start: block.start, end: block.end, inside: [] };
  for (const span of spans) place(root, span, Math.max(span.start, block.start), Math.min(span.end, block.end));
  return root.inside;
}

function place(parent, span, start, end) {
  let at = start;
  for (const piece of [...parent.inside]) {
    if (piece.end <= at || piece.start >= end) continue;
    if (piece.start > at) add(parent, span, at, Math.min(piece.start, end));
    place(piece, span, Math.max(at, piece.start), Math.min(end, piece.end));
    at = Math.min(end, piece.end);
  }
  if (at < end) add(parent, span, at, end);
}

function add(parent, span, start, end) {
  parent.inside.push({ span, start, end, first: start === span.start, last: end === span.end, inside: [] });
  parent.inside.sort((a, b) => a.start - b.start);
}

/** Places [start, end) where a text has the words of a query, in any case; at most `most`. */
export function search(text, query, most) {
  const wanted = query.trim().replace(/[.*+?^${}()|[\]\\/]/g, "\\$&").replace(/\s+/g, "\\s+");
  if (!wanted) return [];
  const found = [];
  for (const match of text.matchAll(new RegExp(wanted, "giu"))) {
    found.push({ start: match.index, end: match.index + match[0].length });
    if (found.length === most) break;
  }
  return found;
}
