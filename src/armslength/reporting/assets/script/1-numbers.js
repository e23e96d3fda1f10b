// The numbers from Python: labels, an order, and the upper triangle of verdicts and numbers with their intervals.
document.documentElement.classList.remove("still");
const given = JSON.parse(document.getElementById("numbers").textContent);
const labels = given.labels;
const count = labels.length;
const pairCount = (count * (count - 1)) / 2;

function floats(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const view = new DataView(bytes.buffer);
  return Float32Array.from({ length: bytes.length / 4 }, (_, at) => view.getFloat32(4 * at, true));
}
const values = floats(given.value); // similarities, or distances: a negative one is −√ of the size of a negative squared estimate
const lowers = floats(given.lower);
const uppers = floats(given.upper);
const distances = given.distance === null ? values : floats(given.distance);
const lefts = new Uint16Array(pairCount);
const rights = new Uint16Array(pairCount);
for (let i = 0, at = 0; i < count; i++) for (let j = i + 1; j < count; j++, at++) (lefts[at] = i), (rights[at] = j);

function pairOf(i, j) {
  const a = Math.min(i, j), b = Math.max(i, j);
  return a * count - (a * (a + 1)) / 2 + (b - a - 1);
}
const WORDS = { d: "differ", a: "alike", A: "alike", i: "inconclusive" };
const verdictOf = (pair) => WORDS[given.verdicts[pair]];
const isKnown = (pair) => given.verdicts[pair] !== "i";
const detailOf = (pair) => (given.verdicts[pair] === "A" ? "not identical" : "");
const distanceOf = (pair) => Math.max(0, distances[pair]);
const numberOf = (pair) => (given.similar ? values[pair] : distanceOf(pair));
// How far apart two parties look: what the colors show.
const middleOf = (pair) => (Number.isNaN(values[pair]) ? (lowers[pair] + uppers[pair]) / 2 : values[pair]);
const farnessOf = (pair) => (given.similar ? 1 - middleOf(pair) : distanceOf(pair));

function written(value) {
  if (value === Infinity) return "∞";
  if (given.decimals === null) return value === 0 ? "0" : value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  return value.toLocaleString("en-US", { minimumFractionDigits: given.decimals, maximumFractionDigits: given.decimals });
}
// With as many digits as the interval supports, as `results.similarity_text` and `results.distance_text` have them.
function similarityText(value, lower, upper) {
  if (Number.isNaN(value) || (lower <= 0 && upper >= 1)) return `unknown (${Math.max(lower, 0).toFixed(2)} to ${upper.toFixed(2)})`;
  const digits = Math.min(4, Math.max(2, Math.ceil(-Math.log10(Math.max(upper - lower, 1e-4)))));
  const end = (number) => (Number.isInteger(number) ? String(number) : number.toFixed(digits));
  return `${value.toFixed(digits)} (${end(lower)} to ${end(upper)})`;
}
function distanceText(value, lower, upper) {
  const three = (number) => Number(number.toPrecision(3)).toLocaleString("en-US", { maximumSignificantDigits: 3 });
  if (!Number.isFinite(upper) || upper <= lower) return `${three(value)} (${three(lower)} to ${upper === Infinity ? "no limit" : three(upper)})`;
  const digits = 1 - Math.floor(Math.log10(upper - lower)), shown = Math.min(100, Math.max(0, digits)), step = 10 ** -digits;
  const end = (number) => (digits < 0 ? Math.round(number / step) * step : number).toLocaleString("en-US", { minimumFractionDigits: shown, maximumFractionDigits: shown });
  return `${end(value)} (${end(lower)} to ${end(upper)})`.replaceAll("-0 ", "0 ");
}
const textOf = (pair) => (given.similar ? similarityText : distanceText)(numberOf(pair), lowers[pair], uppers[pair]);
const kind = given.similar ? "similarity" : "distance";

const byId = (id) => document.getElementById(id);
// Labels only ever become text, never markup.
function make(tag, classes, ...children) {
  const element = document.createElement(tag);
  if (classes) element.className = classes;
  element.append(...children);
  return element;
}
const named = (party) => make("bdi", "", labels[party]);
function partyButton(party) {
  const button = make("button", "party", named(party));
  button.type = "button";
  button.dataset.chooses = party;
  return button;
}
const alphabetical = Array.from(labels, (_, party) => party).sort((a, b) => labels[a].localeCompare(labels[b], "en", { numeric: true }));
function drawn(tag, attributes) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

// The interval as a bar on the axis of all pairs.
function barOf(pair) {
  const at = (value) => `${(2 + 96 * Math.min(1, Math.max(0, (value - given.axis[0]) / (given.axis[1] - given.axis[0])))).toFixed(2)}%`;
  const bar = drawn("svg", { class: isKnown(pair) ? "bars" : "bars unsure", "aria-hidden": "true" });
  bar.append(
    drawn("line", { class: "zero", x1: at(given.axis[0]), x2: at(given.axis[1]), y1: 8, y2: 8 }),
    drawn("line", { class: "span", x1: at(lowers[pair]), x2: at(uppers[pair]), y1: 8, y2: 8 }),
  );
  if (!Number.isNaN(numberOf(pair))) bar.append(drawn("circle", { class: "value", cx: at(numberOf(pair)), cy: 8, r: 4 }));
  return bar;
}
function badgeOf(pair) {
  return make("span", `state ${verdictOf(pair)}`, verdictOf(pair), detailOf(pair) && make("small", "", `, ${detailOf(pair)}`));
}
