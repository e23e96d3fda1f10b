// How many of every 100 people have an item of each item group, and the difference of two parties.
const margins = given.margins;
const prevalences = margins ? floats(margins.sides) : null, missing = margins ? floats(margins.missing) : null;
const typical = count; // as the first of two sides
const sideName = (side) => (side === typical ? "the typical party" : named(side));

// Those that differ first, the clearest first; then the others, the largest difference first. Null where people are too few to say.
function differences(first, second) {
  const size = margins.names.length;
  // A party among all pairs; or a party, and what is typical for it.
  const [from, to] = first === typical ? [2, 1] : [0, 0];
  // The value, the ends, and how much may be missing in the value.
  const of = (block, side, group) => [...[0, 1, 2].map((kind) => prevalences[(3 * (block * count + side) + kind) * size + group]), missing[block * count + side]];
  const sideA = (group) => of(from, first === typical ? second : first, group), sideB = (group) => of(to, second, group);
  const clip = (value, low) => Math.min(1, Math.max(low, value));
  if (Number.isNaN(sideA(0)[0]) || Number.isNaN(sideB(0)[0])) return null;
  const rows = margins.names.map((name, group) => {
    const a = sideA(group), b = sideB(group), value = b[0] - a[0];
    const lower = value - a[3] - Math.hypot(b[0] - b[1], a[2] - a[0] - a[3]), upper = value + b[3] + Math.hypot(b[2] - b[0] - b[3], a[0] - a[1]);
    const row = { name, a: clip(a[0], 0), b: clip(b[0], 0), lower: clip(lower, -1), upper: clip(upper, -1) };
    row.difference = Math.min(row.upper, Math.max(row.lower, row.b - row.a));
    row.word = row.lower > 0 ? "more" : row.upper < 0 ? "fewer" : "";
    row.rank = row.word ? 3 + Math.abs(value) / (value > 0 ? value - lower : upper - value) : Math.abs(row.difference);
    return row;
  });
  return rows.sort((one, other) => other.rank - one.rank);
}
const points = (share) => `${share < 0 && (-100 * share).toFixed(1) !== "0.0" ? "−" : "+"}${Math.abs(100 * share).toFixed(1)}`;
function reasonsOf(rows) {
  const clearest = rows.filter((row) => row.word).slice(0, 3);
  return clearest.map((row) => `${row.word} with ${row.name} (${points(row.difference)} points)`).join(", ");
}
