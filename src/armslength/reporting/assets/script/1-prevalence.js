// How many of every 100 people have an item of each item group: parties, then groups, and the difference of two (as Python has it).
const margins = given.margins;
const prevalences = margins ? floats(margins.sides) : null;
const sideName = (side) => (side < count ? named(side) : `group ${String.fromCharCode(65 + side - count)}`);

// The clearest difference first; null where people are too few to say.
function differences(first, second) {
  const size = margins.names.length;
  const of = (side, group) => [0, 1, 2].map((kind) => prevalences[(3 * side + kind) * size + group]);
  const clip = (value, low) => Math.min(1, Math.max(low, value));
  if (Number.isNaN(of(first, 0)[0]) || Number.isNaN(of(second, 0)[0])) return null;
  const rows = margins.names.map((name, group) => {
    const a = of(first, group), b = of(second, group), value = b[0] - a[0];
    const lower = value - Math.hypot(b[0] - b[1], a[2] - a[0]), upper = value + Math.hypot(b[2] - b[0], a[0] - a[1]);
    const row = { name, a: clip(a[0], 0), b: clip(b[0], 0), lower: clip(lower, -1), upper: clip(upper, -1) };
    row.difference = Math.min(row.upper, Math.max(row.lower, row.b - row.a));
    row.evidence = Math.abs(value) / (value > 0 ? value - lower : upper - value);
    row.word = row.lower > 0 ? "more" : row.upper < 0 ? "fewer" : "";
    return row;
  });
  return rows.sort((one, other) => other.evidence - one.evidence);
}
const points = (share) => `${share < 0 && (-100 * share).toFixed(1) !== "0.0" ? "−" : "+"}${Math.abs(100 * share).toFixed(1)}`;
const roundPoints = (share) => `${share < 0 ? "−" : "+"}${Math.abs(100 * share).toFixed(Math.abs(100 * share) >= 9.95 ? 0 : 1)}`;
function reasonsOf(rows) {
  const clearest = rows.filter((row) => row.word).slice(0, 3);
  return clearest.map((row, place) => `${row.word} ${row.name} (${roundPoints(row.difference)}${place ? "" : " points"})`).join(", ");
}
