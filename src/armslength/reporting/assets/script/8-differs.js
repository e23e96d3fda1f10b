// What sets two parties apart, as bars with intervals.
const differsTable = byId("differs-table");
if (differsTable && margins) {
  const [firstMenu, secondMenu] = [byId("differs-first"), byId("differs-second")];
  const more = byId("differs-more");
  const nothing = "Of item groups nothing can be said: a side has none, too few people, or people with many more item groups than count in full. armslength explain says which, and what helps.";
  const [fewestLines, mostLines] = [10, 25]; // before all are shown
  const fits = (first, second) => first !== second;
  function show(all = false) {
    const [first, second] = [firstMenu, secondMenu].map((menu) => Number(menu.value));
    for (const option of secondMenu.options) option.disabled = !fits(first, Number(option.value));
    const rows = differences(first, second);
    byId("differs-a").replaceChildren(sideName(first));
    for (const place of ["differs-b", "differs-axis"]) byId(place).replaceChildren(sideName(second));
    const who = first === typical ? [named(second), " against the typical party"] : [named(first), " and ", named(second)];
    byId("differs-text").replaceChildren(...who, `: ${apartText(first, second)}. `, ...(rows ? foundText(rows, first, second) : [nothing]));
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
    if (first === typical) return given.lines[second];
    const pair = pairOf(first, second), detail = detailOf(pair);
    return `${verdictOf(pair)}, ${kind} ${textOf(pair)}${detail && `, ${detail}`}`;
  }
  const isFar = (first, second) => (first === typical ? given.lines[second].startsWith("differ") : verdictOf(pairOf(first, second)) === "differ");
  function foundText(rows, first, second) {
    const rest = rows.filter((row) => !row.word), found = rows.length - rest.length;
    const most = (100 * Math.max(...rest.map((row) => Math.max(-row.lower, row.upper)))).toFixed(1);
    if (found) return [`${found} of ${rows.length} item groups ${found === 1 ? "differs" : "differ"}${rest.length ? `; the others are inconclusive, and none differs by more than ${most} points` : ""}.`];
    const text = [most > 50 ? `Item groups are inconclusive: noise could hide differences of up to ${most} points. ` : `No item group was found to differ; none differs by more than ${most} points. `];
    if (most <= 50 && isFar(first, second)) text.push(`${margins.unexplained[0].toUpperCase()}${margins.unexplained.slice(1)}: `, make("code", "", `${commandOf(first, second)} --items codes.txt`), ". ");
    if (first !== typical && margins.choices > 1) text.push("Intervals of these two alone are narrower: ", make("code", "", commandOf(first, second)), ".");
    return text;
  }
  function commandOf(first, second) {
    const quoted = (label) => (/^[\w@%+=:,./-]+$/.test(label) ? label : `'${label.replaceAll("'", `'"'"'`)}'`);
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
    show();
  }
  firstMenu.addEventListener("change", () => {
    const first = Number(firstMenu.value);
    if (!fits(first, Number(secondMenu.value))) secondMenu.value = [...secondMenu.options].find((option) => fits(first, Number(option.value))).value;
    show();
  });
  secondMenu.addEventListener("change", () => show());
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
