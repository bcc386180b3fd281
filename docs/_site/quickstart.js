// The form of docs/howto/init-config.md: the same config as `spacy luke init-config` writes, from the same facts.
// The twin of spacy_luke/quickstart/rules.py, by the same rules.json; tests/quickstart/test_widget.py runs both.
"use strict";

const TASKS = ["ner", "types", "relations", "questions", "cloze", "links"];
const COMPONENTS = {
  ner: "luke_ner", types: "luke_typer", relations: "luke_relation", questions: "luke_qa", cloze: "luke_cloze",
  links: "luke_linker",
};
const FEWEST_STEPS = 400, EVALUATIONS = 10, LEAST_WORDS = 250, SHORT_SPAN = 8, MOST_PIECES = 248, WIDEST = 512, GAP = 100;
const STEP_WORDS = { cpu: 1000, gpu: 2000 };

function factsOf(rules, wanted, shape) {
  const encoder = rules.encoders[wanted.encoder];
  const has = (task) => wanted.tasks.includes(task);
  const only = (...names) => wanted.tasks.every((task) => names.includes(task));
  const names = TASKS.filter(has).map((task) => COMPONENTS[task]);
  const sentencizer = has("ner") || has("relations");
  const shared = names.length > 1;
  const pipeline = [...(sentencizer ? ["sentencizer"] : []), ...(shared ? ["luke_encoder"] : []), ...names];
  const most = STEP_WORDS[wanted.machine];
  const mean = Math.ceil(shape.words / shape.documents);
  const batch = Math.max(
    LEAST_WORDS, 10 * Math.ceil(Math.min(2 * mean, most) / 10), Math.min(most, 50 * Math.floor(shape.words / 3000)),
  );
  const perEpoch = Math.max(1, Math.min(shape.documents, Math.ceil(shape.words / batch)));
  const epochs = Math.max(3, Math.min(20, Math.ceil(FEWEST_STEPS / perEpoch)));
  const steps = epochs * perEpoch;
  const spanPieces = Math.min(MOST_PIECES, 8 * Math.ceil((shape.longest_span * 2) / 8));
  const wide = has("ner") && shape.longest_span > SHORT_SPAN && encoder.window > 0
    && 2 * spanPieces + 4 > encoder.window;
  const reach = Math.max(GAP, 10 * Math.ceil(shape.longest_gap / 10));
  const far = has("relations") && shape.crossing && !shape.pairs && encoder.window > 0 && 3 * reach > encoder.window;
  const room = Math.max(wide ? 2 * spanPieces + 4 : 0, far ? 3 * reach : 0);
  return {
    ...shape,
    links: has("links"), ner: has("ner"), types: has("types"), cloze: has("cloze"),
    relations_task: has("relations"),
    questions_task: has("questions"),
    asked: has("questions") || has("cloze"),
    given_entities: has("relations") && !has("ner"),
    raw_dev: has("ner") && only("ner", "types", "relations") && !(has("relations") && shape.pairs),
    mixed: has("ner") && only("ner", "types"),
    sentencizer,
    shared,
    components: names.length,
    pipeline: JSON.stringify(pipeline),
    first: shared ? "luke_encoder" : names[0] || "",
    machine: wanted.machine,
    lang: wanted.lang,
    train: JSON.stringify(wanted.train),
    dev: JSON.stringify(wanted.dev),
    kb: JSON.stringify(wanted.kb),
    vectors: wanted.vectors,
    weights: JSON.stringify(wanted.weights || encoder.weights),
    about: encoder.about,
    rate: encoder.rate,
    window: room ? Math.min(WIDEST, 16 * Math.ceil(room / 16)) : encoder.window,
    wide,
    far,
    reach,
    plain: encoder.plain,
    span_pieces: spanPieces,
    overlap: 2 * spanPieces,
    batch_words: batch,
    epochs,
    steps,
    eval_frequency: Math.max(5, Math.ceil(steps / EVALUATIONS)),
  };
}

function fill(text, facts, shown) {
  return text.replace(/(\$?)\{(\w+)\}/g, (whole, dollar, name) => {
    if (dollar || !(name in facts)) return whole;
    const fact = facts[name];
    return shown && typeof fact === "number" ? fact.toLocaleString("en-US") : String(fact);
  });
}

function holds(fact, condition) {
  return typeof condition === "object" ? fact >= condition.min : fact === condition;
}

function draft(rules, wanted, shape) {
  const facts = factsOf(rules, wanted, shape);
  const lines = [], opened = new Set();
  for (const [where, setting, value, reason, when] of rules.entries) {
    if (!Object.entries(when).every(([name, condition]) => holds(facts[name], condition))) continue;
    const parts = fill(where, facts).split(".");
    for (let n = 1; n <= parts.length; n++) {
      const name = parts.slice(0, n).join(".");
      if (!opened.has(name)) lines.push("", `[${name}]`);
      opened.add(name);
    }
    if (reason) lines.push(`# ${fill(reason, facts, true)}`);
    lines.push(`${fill(setting, facts)} = ${fill(value, facts)}`);
  }
  return lines.slice(1).join("\n") + "\n";
}

// What the form asks for each task, besides the task itself: [name, label, value that is there at first].
const ASKED = {
  ner: [["mentions", "entities", 2000], ["ner_labels", "labels", 4], ["longest_span", "words of the longest", 6],
    ["nested", "some lie inside others", false]],
  types: [["typed", "mentions with types", 2000], ["type_labels", "types", 9]],
  relations: [["relations", "relations", 500], ["relation_labels", "labels of relations", 8],
    ["pairs", "given pairs (0: none)", 0], ["longest_gap", "most words between the two", 20],
    ["several", "a pair may have several", false], ["crossing", "some lead out of their sentence", false]],
  questions: [["questions", "questions", 500], ["unanswerable", "of them without an answer", 0]],
  cloze: [["queries", "queries", 500]],
  links: [["linked", "linked mentions", 2000], ["kb", "knowledge base", "kb"],
    ["vectors", "it has vectors", true]],
};
const GENERAL = [["documents", "documents", 500], ["words", "words in all", 60000]];

function emptyShape() {
  const shape = { spans_key: "sc" };
  for (const [name, , value] of [...GENERAL, ...Object.values(ASKED).flat()]) {
    if (name !== "kb" && name !== "vectors") shape[name] = typeof value === "number" ? 0 : value;
  }
  return shape;
}

// What is wrong with what was filled in, in a sentence; "" where nothing is.
function faultOf(wanted, shape) {
  if (!wanted.tasks.length) return "Choose a task.";
  if (wanted.tasks.includes("links") && wanted.tasks.length > 1) {
    return "links is trained by itself: it is given the mentions.";
  }
  const labels = Object.fromEntries([...GENERAL, ...Object.values(ASKED).flat()].map(([name, label]) => [name, label]));
  const numbers = Object.keys(shape).filter((x) => typeof shape[x] === "number");
  const wrong = numbers.find((x) => !Number.isInteger(shape[x]) || shape[x] < 0);
  if (wrong) return `"${labels[wrong]}" must be a whole number, 0 or more.`;
  if (!shape.documents || !shape.words) return "How many documents and words are there?";
  if (shape.words < shape.documents) return "There are more documents than words in all: is that so?";
  if (!/^[a-z]{2,3}$/.test(wanted.lang)) return "The language is a code such as en or de, or xx for any.";
  return "";
}

const LENGTH = "Training: {steps} steps, {epochs} times through the data, {read} words in all. On your machine"
  + " python -m spacy luke init-config times some steps and says how long that takes.";

function wire(root, rules) {
  const make = (tag, properties, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const inputs = {};
  const field = (name, label, value) => {
    const kind = typeof value === "boolean" ? "checkbox" : typeof value === "number" ? "number" : "text";
    const input = make("input", { type: kind, min: 0, name });
    if (kind === "checkbox") input.checked = value;
    else input.value = value;
    inputs[name] = input;
    return make("label", {}, input, ` ${label}`);
  };
  const choice = (name, options, titles = {}) => {
    inputs[name] = make("select", { name }, ...options.map((x) => make("option", { value: x }, titles[x] || x)));
    return inputs[name];
  };
  const row = (title, ...parts) => make("fieldset", {}, make("legend", {}, title), ...parts);
  const named = Object.keys(rules.encoders).filter((x) => x !== "other");
  const about = Object.fromEntries(named.map((x) => [x, `${x}: ${rules.encoders[x].about.split(";")[0]}`]));
  const groups = {};
  const form = make("form", { onsubmit: () => false },
    row("Tasks", ...TASKS.map((task) => field(`task_${task}`, task, task === "ner"))),
    row("Data", field("train", "training data", "corpus/train.spacy"), field("dev", "dev data", "corpus/dev.spacy"),
      field("lang", "language", "en"), ...GENERAL.map((x) => field(...x))),
    ...TASKS.map((task) => (groups[task] = row(task, ...ASKED[task].map((x) => field(...x))))),
    row("Encoder and machine", choice("encoder", named, about), choice("machine", ["cpu", "gpu"])),
  );
  const shown = make("code", {});
  const said = make("p", { role: "alert" });
  const update = () => {
    const tasks = TASKS.filter((task) => inputs[`task_${task}`].checked);
    for (const task of TASKS) groups[task].hidden = !tasks.includes(task);
    const shape = emptyShape();
    for (const [name] of [...GENERAL, ...tasks.flatMap((task) => ASKED[task])]) {
      if (name in shape) shape[name] = inputs[name].type === "checkbox" ? inputs[name].checked : +inputs[name].value;
    }
    const wanted = { tasks, weights: "" };
    for (const name of ["encoder", "machine", "lang", "train", "dev"]) wanted[name] = inputs[name].value;
    wanted.kb = tasks.includes("links") ? inputs.kb.value : "";
    wanted.vectors = inputs.vectors.checked;
    const fault = faultOf(wanted, shape);
    const facts = fault ? {} : factsOf(rules, wanted, shape);
    said.textContent = fault || fill(LENGTH, { ...facts, read: facts.epochs * facts.words }, true);
    shown.textContent = fault ? "" : draft(rules, wanted, shape);
  };
  form.oninput = update;
  root.append(form, said, make("pre", {}, shown));
  update();
}

if (typeof module !== "undefined") module.exports = { draft, factsOf, faultOf };
else wire(document.getElementById("quickstart"), RULES);
