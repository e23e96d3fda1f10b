// The numbers from Python: labels, an order, and the upper triangle of distances with their intervals.
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
const values = floats(given.value); // a negative one is −√ of the size of a negative squared estimate
const lowers = floats(given.lower);
const uppers = floats(given.upper);
const lefts = new Uint16Array(pairCount);
const rights = new Uint16Array(pairCount);
for (let i = 0, at = 0; i < count; i++) for (let j = i + 1; j < count; j++, at++) (lefts[at] = i), (rights[at] = j);

function pairOf(i, j) {
  const a = Math.min(i, j), b = Math.max(i, j);
  return a * count - (a * (a + 1)) / 2 + (b - a - 1);
}
const distanceOf = (pair) => Math.max(0, values[pair]);
const isResolved = (pair) => lowers[pair] > 0;

function written(value) {
  if (value === Infinity) return "∞";
  if (given.decimals === null) return value === 0 ? "0" : value.toExponential(2).replace(/e([+-])(\d)$/, "e$10$2");
  return value.toLocaleString("en-US", { minimumFractionDigits: given.decimals, maximumFractionDigits: given.decimals });
}
const intervalOf = (pair) => `${written(lowers[pair])} to ${written(uppers[pair])}`;
const isAlike = (pair) => given.alike[pair] === "1";
const stateOf = (pair) => (isResolved(pair) ? "told apart" : isAlike(pair) ? "alike" : "not resolved");

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

// The interval as a bar; `longest` is the distance at its right end.
function barOf(pair, longest) {
  const at = (value) => `${(100 * Math.min(1, value / longest) * 0.96 + 2).toFixed(2)}%`;
  const bar = drawn("svg", { class: isResolved(pair) ? "bars" : "bars unsure", "aria-hidden": "true" });
  bar.append(
    drawn("line", { class: "zero", x1: at(0), x2: at(0), y1: 0, y2: 16 }),
    drawn("line", { class: "span", x1: at(lowers[pair]), x2: at(uppers[pair]), y1: 8, y2: 8 }),
    drawn("circle", { class: "value", cx: at(distanceOf(pair)), cy: 8, r: 4 }),
  );
  return bar;
}
function badgeOf(pair) {
  return make("span", isResolved(pair) || isAlike(pair) ? "state sure" : "state unsure", stateOf(pair));
}
