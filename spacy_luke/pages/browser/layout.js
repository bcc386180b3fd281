// Places of a graph's nodes: components by stress majorization (Gansner, Koren, North 2004), then beside each other in
// rows. Nothing is drawn by lot: one graph has one picture.

const GAP = 28; // pixels between components, and least between nodes
const LABEL_GAP = 44; // least above each other with a label and an arrow between
const UPRIGHT = 0.6; // of a way that goes down: names are wide and low

/** Places nodes (with width and height) in a frame as wide as `room`: sets x and y, their middles. Returns {width,
 * height} of all. edges: [a, b, wish, label], numbers of nodes, how far from each other their middles shall be, and how
 * wide a label must find room between them (0: none must). */
export function layOut(nodes, edges, room) {
  const near = nodes.map(() => new Map()); // of each node the others, with the wish
  const labels = nodes.map(() => new Map()); // and with the width of the label
  const widen = (known, a, b, value) => {
    known[a].set(b, Math.max(value, known[a].get(b) ?? 0));
    known[b].set(a, known[a].get(b));
  };
  for (const [a, b, wish, label] of edges) {
    if (a === b) continue;
    widen(near, a, b, wish);
    if (label) widen(labels, a, b, label);
  }
  const frames = components(near).map((members) => {
    const distances = members.map((x) => distancesFrom(x, near));
    stress(nodes, members, distances);
    turn(nodes, members, room);
    part(nodes, members, labels);
    return frame(nodes, members);
  });
  frames.sort((a, b) => b.members.length - a.members.length || b.height - a.height);
  return pack(frames, nodes, room);
}

function components(near) {
  const found = [];
  const seen = new Set();
  near.forEach((_, start) => {
    if (seen.has(start)) return;
    const members = [start];
    seen.add(start);
    for (let i = 0; i < members.length; i++) {
      for (const x of near[members[i]].keys()) {
        if (!seen.has(x)) {
          seen.add(x);
          members.push(x);
        }
      }
    }
    found.push(members);
  });
  return found;
}

/** Of all nodes that can be reached how long the shortest way is (Dijkstra). */
function distancesFrom(start, near) {
  const known = new Map();
  const open = new Map([[start, 0]]);
  while (open.size) {
    let [node, length] = [null, Infinity];
    for (const [x, way] of open) if (way < length) [node, length] = [x, way];
    open.delete(node);
    known.set(node, length);
    for (const [x, wish] of near[node]) {
      if (!known.has(x)) open.set(x, Math.min(length + wish, open.get(x) ?? Infinity));
    }
  }
  return known;
}

function stress(nodes, members, distances) {
  const n = members.length;
  members.forEach((x, i) => {
    const angle = 2.399963 * i; // the golden angle: no two nodes on one line
    Object.assign(nodes[x], { x: Math.sqrt(i) * 80 * Math.cos(angle), y: Math.sqrt(i) * 60 * Math.sin(angle) });
  });
  const rounds = Math.max(30, Math.min(220, Math.round(400000 / (n * n + 1))));
  for (let round = 0; round < rounds; round++) {
    members.forEach((a, i) => {
      let [x, y, sum] = [0, 0, 0];
      for (const b of members) {
        if (a === b) continue;
        const wanted = distances[i].get(b);
        const [dx, dy] = [nodes[a].x - nodes[b].x, nodes[a].y - nodes[b].y];
        const length = Math.hypot(dx, dy) || 1e-6;
        const weight = 1 / (wanted * wanted);
        x += weight * (nodes[b].x + (wanted * dx) / length);
        y += weight * (nodes[b].y + (wanted * dy) / length);
        sum += weight;
      }
      if (sum) Object.assign(nodes[a], { x: x / sum, y: y / sum });
    });
  }
  for (const x of members) nodes[x].y *= 0.72; // names are wide and low
}

/** What is wider than the room, and wider than high, stands upright. */
function turn(nodes, members, room) {
  const span = (axis) => Math.max(...members.map((x) => nodes[x][axis])) - Math.min(...members.map((x) => nodes[x][axis]));
  const widest = Math.max(...members.map((x) => nodes[x].width));
  if (span("x") + widest + 2 * GAP <= room || span("x") <= span("y")) return;
  for (const x of members) [nodes[x].x, nodes[x].y] = [nodes[x].y, nodes[x].x * UPRIGHT];
}

/** Push boxes that lie on each other apart, along the way that is shorter; so those with too little room for the label
 * and the arrow between them. */
function part(nodes, members, labels) {
  for (let round = 0; round < 60; round++) {
    let moved = false;
    for (let i = 0; i < members.length; i++) {
      for (let j = i + 1; j < members.length; j++) {
        const [a, b] = [nodes[members[i]], nodes[members[j]]];
        const label = labels[members[i]].get(members[j]);
        const wide = (a.width + b.width) / 2 + GAP + (label ?? 0) - Math.abs(a.x - b.x);
        const high = (a.height + b.height) / 2 + (label ? LABEL_GAP : GAP) - Math.abs(a.y - b.y);
        if (wide <= 0 || high <= 0) continue;
        moved = true;
        if (wide < high) {
          const push = (wide / 2) * (a.x <= b.x ? 1 : -1);
          a.x -= push;
          b.x += push;
        } else {
          const push = (high / 2) * (a.y <= b.y ? 1 : -1);
          a.y -= push;
          b.y += push;
        }
      }
    }
    if (!moved) return;
  }
}

function frame(nodes, members) {
  const some = members.map((x) => nodes[x]);
  const left = Math.min(...some.map((x) => x.x - x.width / 2));
  const top = Math.min(...some.map((x) => x.y - x.height / 2));
  const right = Math.max(...some.map((x) => x.x + x.width / 2));
  const bottom = Math.max(...some.map((x) => x.y + x.height / 2));
  return { members, left, top, width: right - left, height: bottom - top };
}

/** Components in rows. A component that is wider than the room makes the picture wider. */
function pack(frames, nodes, room) {
  const width = Math.max(room, ...frames.map((x) => x.width + 2 * GAP));
  let [x, y, height] = [GAP, GAP, 0];
  for (const one of frames) {
    if (x > GAP && x + one.width + GAP > width) {
      x = GAP;
      y += height + 2 * GAP;
      height = 0;
    }
    for (const member of one.members) {
      nodes[member].x += x - one.left;
      nodes[member].y += y - one.top;
    }
    x += one.width + 2 * GAP;
    height = Math.max(height, one.height);
  }
  return { width, height: y + height + GAP };
}
