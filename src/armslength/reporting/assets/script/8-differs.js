// What sets two parties or two groups apart, as bars with intervals.
const differsTable = byId("differs-table");
if (differsTable && margins) {
  const selects = [byId("differs-first"), byId("differs-second")];
  const kindOf = (side) => side >= count;
  function show() {
    const [first, second] = selects.map((select) => Number(select.value));
    const rows = differences(first, second);
    byId("differs-a").replaceChildren(sideName(first));
    for (const place of ["differs-b", "differs-axis"]) byId(place).replaceChildren(sideName(second));
    const text = [kindOf(first) ? "G" + sideName(first).slice(1) : sideName(first), " and ", sideName(second), ": ", kindOf(first) ? margins.apart[first - count][second - count] : `distance ${written(distanceOf(pairOf(first, second)))} (${intervalOf(pairOf(first, second))}), ${stateOf(pairOf(first, second))}`, ". "];
    byId("differs-text").replaceChildren(...text, rows ? verdictOf(rows) : "People are too few to say in what.");
    const shown = rows ? rows.slice(0, Math.min(margins.lines[1], Math.max(margins.lines[0], rows.filter((row) => row.word).length))) : [];
    const widest = Math.max(...shown.map((row) => Math.max(-row.lower, row.upper)));
    differsTable.tBodies[0].replaceChildren(...shown.map((row) => {
      const heading = make("th", "", make("bdi", "", row.name));
      heading.scope = "row";
      const cells = [["numeric", points(row.difference)], ["interval", `${points(row.lower)} to ${points(row.upper)}`], ["numeric", `${(100 * row.a).toFixed(1)} %`], ["numeric", `${(100 * row.b).toFixed(1)} %`]];
      return make("tr", "", heading, make("td", "wide-bar", barAround(row, widest)), ...cells.map(([kind, cell]) => make("td", kind, cell)));
    }));
  }
  function verdictOf(rows) {
    const rest = rows.filter((row) => !row.word);
    const most = (100 * Math.max(...rest.map((row) => Math.max(-row.lower, row.upper)))).toFixed(1);
    if (rest.length === rows.length) return `No difference found: in none of ${rows.length.toLocaleString("en-US")} item groups is it larger than ${most} points.`;
    const begin = `${(rows.length - rest.length).toLocaleString("en-US")} of ${rows.length.toLocaleString("en-US")} item groups differ.`;
    return rest.length ? `${begin} In the others no difference is larger than ${most} points.` : begin;
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
    (selects[0].value = String(first)), (selects[1].value = String(second));
    show();
  }
  selects.forEach((select, place) => select.addEventListener("change", () => {
    // The two sides are of one kind, and different.
    const mine = Number(select.value), other = Number(selects[1 - place].value);
    const start = kindOf(mine) ? count : 0;
    if (kindOf(other) !== kindOf(mine) || other === mine) selects[1 - place].value = String(mine === start ? start + 1 : start);
    show();
  }));
  whenPaired.push(compare);
  compare(...margins.first);
}
