// What sets two parties or two groups apart, as bars with intervals.
const differsTable = byId("differs-table");
if (differsTable && margins) {
  const [firstMenu, secondMenu] = [byId("differs-first"), byId("differs-second")];
  const more = byId("differs-more"), changed = byId("differs-changed");
  const tooFew = "Nothing can be said: a side has too few people, or its people have many more item groups than count in full. armslength explain says which, and what helps.";
  const unexplained = margins.unexplained;
  const [fewestLines, mostLines] = [10, 25]; // before all are shown
  const groupDistances = floats(margins.apart);
  // The two sides are of one kind, and different; anything but itself can be compared with the typical party.
  const fits = (first, second) => first === typical || (isGroup(first) === isGroup(second) && first !== second);
  function show(all = false) {
    const [first, second] = [firstMenu, secondMenu].map((menu) => Number(menu.value));
    for (const option of secondMenu.options) option.disabled = !fits(first, Number(option.value));
    const rows = differences(first, second);
    byId("differs-a").replaceChildren(sideName(first));
    for (const place of ["differs-b", "differs-axis"]) byId(place).replaceChildren(sideName(second));
    const name = sideName(first), begin = typeof name === "string" ? name[0].toUpperCase() + name.slice(1) : name;
    byId("differs-text").replaceChildren(begin, " and ", sideName(second), ": ", apartText(first, second), ...(rows ? verdictOf(rows, first, second) : [tooFew]));
    byId("differs-scroll").hidden = !rows;
    const few = rows ? Math.min(mostLines, Math.max(fewestLines, rows.filter((row) => row.word).length)) : 0;
    const shown = rows ? rows.slice(0, all ? rows.length : few) : [];
    more.hidden = !rows || shown.length === rows.length;
    if (!more.hidden) more.replaceChildren(`${(rows.length - shown.length).toLocaleString("en-US")} more: show all`);
    const widest = Math.max(...shown.map((row) => Math.max(-row.lower, row.upper)));
    differsTable.tBodies[0].replaceChildren(...shown.map((row) => {
      const [a, b] = [row.a, row.b].map((share) => `${(100 * share).toFixed(1)} %`), ends = `${points(row.lower)} to ${points(row.upper)}`;
      const heading = make("th", "", make("bdi", "", row.name), make("span", "narrow", `${a} → ${b} (${ends})`));
      heading.scope = "row";
      const cells = [["numeric", points(row.difference)], ["interval", ends], ["numeric share", a], ["numeric share", b]];
      return make("tr", "", heading, make("td", "wide-bar", barAround(row, widest)), ...cells.map(([kind, cell]) => make("td", kind, cell)));
    }));
  }
  function apartText(first, second) {
    if (first === typical) return "";
    const pair = isGroup(first) ? 0 : pairOf(first, second), [i, j] = [first - count, second - count];
    const [value, lower, upper] = isGroup(first) ? [0, 1, 2].map((kind) => groupDistances[(kind * margins.groups + i) * margins.groups + j]) : [distanceOf(pair), lowers[pair], uppers[pair]];
    const state = isGroup(first) ? (lower > 0 ? "told apart" : "not resolved") : stateOf(pair);
    return `distance ${written(value)} (${written(lower)} to ${written(upper)}), ${state}. `;
  }
  function verdictOf(rows, first, second) {
    const rest = rows.filter((row) => !row.word);
    const most = (100 * Math.max(...rest.map((row) => Math.max(-row.lower, row.upper)))).toFixed(1);
    const number = (value) => value.toLocaleString("en-US");
    if (rest.length === rows.length && most > 50) return [`Too few people to say: noise could hide differences of up to ${most} points.`];
    if (rest.length === rows.length && margins.choices > 1)
      return [`No difference is large enough to be sure of among all ${number(margins.choices)} choices of this page; none is larger than ${most} points. ${unexplained} For these two alone: `, make("code", "", commandOf(first, second)), "."];
    if (rest.length === rows.length) return [`No difference found: none of ${number(rows.length)} item groups differs by more than ${most} points. ${unexplained}`];
    const begin = `${number(rows.length - rest.length)} of ${number(rows.length)} item groups differ.`;
    return [rest.length ? `${begin} In the others no difference is larger than ${most} points.` : begin];
  }
  function commandOf(first, second) {
    const quoted = (label) => (/^[\w@%+=:,./-]+$/.test(label) ? label : `'${label.replaceAll("'", `'"'"'`)}'`);
    if (isGroup(first) || isGroup(second)) return `armslength explain … --with … ${first === typical ? "" : "--against …"}`.trim();
    return ["armslength explain …", ...[first, second].filter((side) => side !== typical).map((side) => quoted(labels[side]))].join(" ");
  }
  function barAround(row, widest) {
    const at = (value) => `${(50 + (48 * value) / widest).toFixed(2)}%`;
    const bar = drawn("svg", { class: row.word ? "bars" : "bars unsure", "aria-hidden": "true" });
    bar.append(
      drawn("line", { class: "zero", x1: "50%", x2: "50%", y1: 0, y2: 16 }),
      drawn("line", { class: "bar-line", x1: "50%", x2: at(row.difference), y1: 8, y2: 8 }),
      drawn("line", { class: "ends", x1: at(row.lower), x2: at(row.upper), y1: 8, y2: 8 }),
    );
    return bar;
  }
  function compare(first, second) {
    (firstMenu.value = String(first)), (secondMenu.value = String(second));
    changed.replaceChildren();
    show();
  }
  firstMenu.addEventListener("change", () => {
    const first = Number(firstMenu.value), second = Number(secondMenu.value);
    changed.replaceChildren();
    if (!fits(first, second)) {
      secondMenu.value = [...secondMenu.options].find((option) => fits(first, Number(option.value))).value;
      const kind = isGroup(first) ? "A group can be compared with another group" : "A party can be compared with another party";
      changed.replaceChildren(`${kind}: now with `, sideName(Number(secondMenu.value)), ".");
    }
    show();
  });
  secondMenu.addEventListener("change", () => (changed.replaceChildren(), show()));
  more.addEventListener("click", () => show(true));
  document.addEventListener("click", (event) => {
    const line = event.target.closest("a.reasons[data-pair]");
    if (line) compare(...line.dataset.pair.split(" ").map(Number));
  });
  whenPaired.push((i, j) => {
    compare(i, j);
    const link = make("a", "", "“What sets them apart”");
    link.href = "#differs";
    byId("heat-shown").replaceChildren(link, " below now shows ", named(i), " and ", named(j), ".");
  });
  compare(...margins.first);
}
