// The heat map: a canvas of all pairs. Pairs that are not resolved are hatched, in whatever size the cells have.
function heatMap() {
  const canvas = byId("heat-canvas");
  const reading = byId("heat-reading");
  const alphabetical = Array.from(labels, (_, party) => party).sort((a, b) => labels[a].localeCompare(labels[b], "en", { numeric: true }));
  const rankOf = new Uint16Array(count);
  let order = given.order;
  let cursor = null; // [row, column] of ranks
  let size = 0, left = 0, top = 0, cell = 0, base = null;

  function setOrder(next) {
    order = next;
    order.forEach((party, rank) => (rankOf[party] = rank));
    cursor = null;
    draw();
    readNothing();
  }
  function ramp() {
    const stops = Array.from({ length: 9 }, (_, step) => token(`ramp-${step}`).match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16)));
    return (value) => {
      const share = given.high > given.low ? (value - given.low) / (given.high - given.low) : 0;
      const at = Math.min(7.9999, Math.max(0, share) * 8), first = Math.floor(at);
      return stops[first].map((part, channel) => Math.round(part + (at - first) * (stops[first + 1][channel] - part)));
    };
  }
  function hatching(context, ratio) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = Math.round(6 * ratio);
    const pen = tile.getContext("2d");
    pen.scale(tile.width / 6, tile.width / 6);
    pen.fillStyle = token("hatch-ground");
    pen.fillRect(0, 0, 6, 6);
    pen.strokeStyle = token("hatch");
    pen.lineWidth = 1.2;
    for (const shift of [-6, 0, 6]) pen.beginPath(), pen.moveTo(shift, 6), pen.lineTo(shift + 6, 0), pen.stroke();
    return context.createPattern(tile, "repeat");
  }
  function fitted(context, text, width) {
    if (context.measureText(text).width <= width) return text;
    const letters = Array.from(text);
    while (letters.length > 1 && context.measureText(`${letters.join("")}…`).width > width) letters.pop();
    return `${letters.join("")}…`;
  }
  // Everything but highlights, on a canvas of its own, so that moving the cursor costs nothing.
  function drawBase(width, ratio) {
    const page = document.createElement("canvas");
    const context = page.getContext("2d");
    const font = (pixels) => (context.font = `${pixels}px ${getComputedStyle(document.body).fontFamily}`);
    font(12);
    const widest = Math.max(...labels.slice(0, 60).map((label) => context.measureText(label).width));
    const named = (width - Math.min(widest + 10, width * 0.27)) / count >= 11;
    left = named ? Math.ceil(Math.min(widest + 10, width * 0.27)) : 0;
    cell = (width - left - 1) / count;
    const namedAbove = named && cell >= 15;
    top = namedAbove ? Math.ceil(Math.min(widest + 10, 120)) : 0;
    size = cell * count;
    page.width = Math.round(width * ratio);
    page.height = Math.round((size + top + 1) * ratio);
    context.scale(ratio, ratio);
    font(Math.min(12.5, Math.max(9, cell - 3)));
    const color = ramp();
    const edges = Array.from({ length: count + 1 }, (_, at) => Math.round((left + at * cell) * ratio) / ratio);
    const rows = edges.map((edge) => edge - left + top);
    context.fillStyle = hatching(context, ratio);
    context.fillRect(edges[0], rows[0], edges[count] - edges[0], rows[count] - rows[0]);
    for (let row = 0; row < count; row++) {
      for (let column = 0; column < count; column++) {
        const pair = row === column ? -1 : pairOf(order[row], order[column]);
        if (pair >= 0 && !isResolved(pair)) continue;
        context.fillStyle = pair < 0 ? token("paper") : `rgb(${color(distanceOf(pair)).join()})`;
        context.fillRect(edges[column], rows[row], edges[column + 1] - edges[column], rows[row + 1] - rows[row]);
      }
    }
    if (cell >= 7) {
      context.strokeStyle = token("paper");
      context.lineWidth = cell >= 14 ? 1.5 : 1;
      context.beginPath();
      for (let at = 0; at <= count; at++) {
        context.moveTo(edges[at], rows[0]), context.lineTo(edges[at], rows[count]);
        context.moveTo(edges[0], rows[at]), context.lineTo(edges[count], rows[at]);
      }
      context.stroke();
    }
    context.fillStyle = token("ink");
    context.textBaseline = "middle";
    for (let rank = 0; named && rank < count; rank++) {
      context.textAlign = "right";
      context.fillText(fitted(context, labels[order[rank]], left - 8), left - 6, top + (rank + 0.5) * cell);
      if (!namedAbove) continue;
      context.save();
      context.translate(left + (rank + 0.5) * cell, top - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(fitted(context, labels[order[rank]], top - 8), 0, 0);
      context.restore();
    }
    return page;
  }
  function draw() {
    const width = canvas.parentElement.clientWidth;
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    base = drawBase(width, ratio);
    canvas.width = base.width;
    canvas.height = base.height;
    canvas.style.aspectRatio = `${base.width} / ${base.height}`;
    mark();
  }
  function mark() {
    const context = canvas.getContext("2d");
    const ratio = canvas.width / canvas.parentElement.clientWidth;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.drawImage(base, 0, 0);
    context.scale(ratio, ratio);
    const strip = Math.max(cell, 3);
    if (chosen >= 0) {
      const at = (rankOf[chosen] + 0.5) * cell - strip / 2;
      context.strokeStyle = token("chosen");
      context.lineWidth = 2;
      context.strokeRect(left + 1, top + at, size - 2, strip);
      context.strokeRect(left + at, top + 1, strip, size - 2);
    }
    if (!cursor) return;
    const [row, column] = cursor.map((rank) => (rank + 0.5) * cell - strip / 2);
    context.lineWidth = 4;
    context.strokeStyle = token("surface");
    context.strokeRect(left + column, top + row, strip, strip);
    context.lineWidth = 2;
    context.strokeStyle = token("ink");
    context.strokeRect(left + column, top + row, strip, strip);
  }
  function readNothing() {
    reading.replaceChildren(reading.dataset.empty);
  }
  function read() {
    const [i, j] = cursor.map((rank) => order[rank]);
    if (i === j) {
      reading.replaceChildren(make("span", "pair", named(i)), "A party beside itself: there is nothing to estimate.");
      return;
    }
    const pair = pairOf(i, j);
    const words = isResolved(pair)
      ? "Told apart: the interval leaves out 0."
      : "Not resolved: the noise is as large as the distance. They may be alike or not.";
    reading.replaceChildren(
      make("span", "pair", named(i), " and ", named(j)),
      make("span", "number", written(distanceOf(pair))),
      make("span", "", `between ${written(lowers[pair])} and ${written(uppers[pair])}`, make("br")),
      badgeOf(pair), " ", make("span", "note", words),
    );
    if (values[pair] < 0) reading.append(make("span", "note", " The squared estimate is below 0, and is shown as 0."));
  }
  function moveTo(row, column) {
    cursor = [row, column];
    mark();
    read();
  }
  canvas.addEventListener("pointermove", (event) => {
    const box = canvas.getBoundingClientRect();
    const [column, row] = [event.clientX - box.left - left, event.clientY - box.top - top].map((at) => Math.floor(at / cell));
    if (row >= 0 && column >= 0 && row < count && column < count) moveTo(row, column);
  });
  canvas.addEventListener("click", () => cursor && choose(order[cursor[0]]));
  canvas.addEventListener("focus", () => cursor || moveTo(0, Math.min(1, count - 1)));
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -count], End: [0, count], PageUp: [-10, 0], PageDown: [10, 0] };
    if (event.key === "Enter" || event.key === " ") choose(order[cursor[0]]);
    else if (steps[event.key]) moveTo(...cursor.map((rank, axis) => Math.min(count - 1, Math.max(0, rank + steps[event.key][axis]))));
    else return;
    event.preventDefault();
  });
  for (const button of document.querySelectorAll("#heat-order button")) {
    button.addEventListener("click", () => {
      for (const other of document.querySelectorAll("#heat-order button")) other.setAttribute("aria-pressed", String(other === button));
      setOrder(button.value === "clusters" ? given.order : alphabetical);
      say(`The heat map is in ${button.value === "clusters" ? "the order of the clusters" : "alphabetical order"}.`);
    });
  }
  whenChosen.push(mark);
  whenRecolored.push(draw);
  let lastWidth = 0;
  new ResizeObserver(() => {
    const width = canvas.parentElement.clientWidth;
    if (width > 0 && width !== lastWidth) (lastWidth = width), draw();
  }).observe(canvas.parentElement);
  setOrder(order);
}
if (byId("heat-canvas")) heatMap();
