// Tables that sort by their headings and filter by a word; all pairs come in pages.
function sortable(table, sortBy) {
  for (const heading of table.querySelectorAll("thead th[aria-sort]")) {
    heading.querySelector("button").addEventListener("click", () => {
      const next = heading.getAttribute("aria-sort") === "ascending" ? "descending" : "ascending";
      for (const other of table.querySelectorAll("thead th[aria-sort]")) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", next);
      sortBy(heading.dataset.key, next === "ascending" ? 1 : -1);
      say(`Sorted by ${heading.textContent}, ${next}.`);
    });
  }
}
const alphabeticRank = new Uint16Array(count);
alphabetical.forEach((party, rank) => (alphabeticRank[party] = rank));
const rankOf = (pair) => ["differ", "inconclusive", "alike"].indexOf(verdictOf(pair));
const holds = (word) => {
  const looked = word.trim().toLowerCase();
  return Uint8Array.from(labels, (label) => label.toLowerCase().includes(looked));
};

const pairsTable = byId("pairs-table");
if (pairsTable) {
  const perPage = pairCount <= 300 ? 300 : 100;
  const body = pairsTable.tBodies[0];
  const all = Uint32Array.from({ length: pairCount }, (_, pair) => pair);
  const farthest = all.reduce((most, pair) => Math.max(most, farnessOf(pair)), 0) * 1.001 || 1;
  const keys = { left: (pair) => alphabeticRank[lefts[pair]], right: (pair) => alphabeticRank[rights[pair]], number: farnessOf, distance: distanceOf, state: (pair) => rankOf(pair) - farnessOf(pair) / farthest };
  let sorted = all, kept = all, page = 0, key = "state", sign = 1;
  function rowOf(pair) {
    return make("tr", lefts[pair] === chosen || rights[pair] === chosen ? "is-chosen" : "",
      make("td", "name", partyButton(lefts[pair])), make("td", "name other", partyButton(rights[pair])), make("td", "verdicts", badgeOf(pair)),
      make("td", "bar-cell", barOf(pair)), make("td", "interval", textOf(pair)), ...(given.similar ? [make("td", "numeric second", written(distanceOf(pair)))] : []));
  }
  function show() {
    const pages = Math.max(1, Math.ceil(kept.length / perPage));
    page = Math.min(Math.max(0, page), pages - 1);
    body.replaceChildren(...Array.from(kept.subarray(page * perPage, (page + 1) * perPage), rowOf));
    const first = kept.length ? page * perPage + 1 : 0;
    byId("pairs-count").textContent = `${first.toLocaleString("en-US")} to ${Math.min(kept.length, (page + 1) * perPage).toLocaleString("en-US")} of ${kept.length.toLocaleString("en-US")} pairs`;
    byId("pairs-back").disabled = page === 0;
    byId("pairs-next").disabled = page === pages - 1;
    byId("pairs-turn").hidden = pages === 1;
  }
  function sort() {
    const weights = Float64Array.from(all, keys[key]);
    sorted = Uint32Array.from(all).sort((a, b) => sign * (weights[a] - weights[b]) || a - b);
    filter();
  }
  function filter() {
    const one = holds(byId("pairs-filter").value), other = holds(byId("pairs-other").value);
    const state = byId("pairs-state").value;
    const fits = (pair) => (one[lefts[pair]] && other[rights[pair]]) || (other[lefts[pair]] && one[rights[pair]]);
    kept = sorted.filter((pair) => (state === "all" || verdictOf(pair) === state) && fits(pair));
    page = 0;
    show();
  }
  sortable(pairsTable, (nextKey, nextSign) => ((key = nextKey), (sign = nextSign), sort()));
  for (const box of ["pairs-filter", "pairs-other"]) byId(box).addEventListener("input", filter);
  byId("pairs-state").addEventListener("change", filter);
  byId("pairs-back").addEventListener("click", () => (page--, show()));
  byId("pairs-next").addEventListener("click", () => (page++, show()));
  whenChosen.push(show);
  sort();
}
