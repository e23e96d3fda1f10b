// The heat map: a canvas of all pairs. Inconclusive pairs are hatched.
function heatMap() {
  const canvas = byId("heat-canvas");
  const reading = byId("heat-reading");
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
  const channels = (color) => color.match(/[0-9a-f]{2}/gi).map((part) => parseInt(part, 16));
  // 256 colors from near to far, between the nine of the theme.
  function ramp() {
    const stops = Array.from({ length: 9 }, (_, step) => channels(token(`ramp-${step}`)));
    return Array.from({ length: 256 }, (_, shade) => {
      const at = (shade / 255) * 8, first = Math.min(7, Math.floor(at));
      return stops[first].map((part, channel) => part + (at - first) * (stops[first + 1][channel] - part));
    });
  }
  // One pixel for each pair; inconclusive pairs are left out, so that the hatching below shows.
  function cells() {
    const image = new ImageData(count, count);
    const colors = ramp(), itself = channels(token("paper"));
    const scale = given.high > given.low ? 255 / (given.high - given.low) : 0;
    for (let row = 0; row < count; row++) {
      for (let column = 0; column < count; column++) {
        const pair = row === column ? -1 : pairOf(order[row], order[column]);
        if (pair >= 0 && !isKnown(pair)) continue;
        const shade = Math.min(255, Math.max(0, Math.round((pair < 0 ? 0 : farnessOf(pair) - given.low) * scale)));
        const [red, green, blue] = pair < 0 ? itself : colors[shade];
        image.data.set([red, green, blue, 255], 4 * (row * count + column));
      }
    }
    const page = document.createElement("canvas");
    page.width = page.height = count;
    page.getContext("2d").putImageData(image, 0, 0);
    return page;
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
  // Everything but highlights, on a separate canvas, so that moving the cursor is cheap.
  function drawBase(available, ratio) {
    const page = document.createElement("canvas");
    const context = page.getContext("2d");
    const font = (pixels) => (context.font = `${pixels}px ${getComputedStyle(document.body).fontFamily}`);
    font(12.5);
    const widest = Math.max(...labels.slice(0, 60).map((label) => context.measureText(label).width));
    const beside = Math.ceil(Math.min(widest + 14, available * 0.27));
    const named = (available - beside) / count >= 11 || count <= 48;
    left = named ? beside : 0;
    // Few parties need no huge cells, and where they are named the map scrolls rather than lose its names.
    const width = Math.min(Math.max(available, named ? left + 1 + 15.5 * count : 0), left + 1 + 72 * count);
    cell = (width - left - 1) / count;
    const namedAbove = named && cell >= 15;
    top = namedAbove ? Math.ceil(Math.min(widest + 14, 150)) : 0;
    size = cell * count;
    page.width = Math.round(width * ratio);
    page.height = Math.round((size + top + 1) * ratio);
    context.scale(ratio, ratio);
    font(Math.min(12.5, Math.max(9, cell - 3)));
    const edge = (rank) => rank * cell;
    context.save();
    context.translate(left, top);
    context.fillStyle = hatching(context, ratio);
    context.fillRect(0, 0, size, size);
    context.imageSmoothingEnabled = false;
    context.drawImage(cells(), 0, 0, size, size);
    if (cell >= 7) {
      context.strokeStyle = token("paper");
      context.lineWidth = cell >= 14 ? 1.5 : 1;
      context.beginPath();
      for (let rank = 0; rank <= count; rank++) {
        context.moveTo(edge(rank), 0), context.lineTo(edge(rank), size);
        context.moveTo(0, edge(rank)), context.lineTo(size, edge(rank));
      }
      context.stroke();
    }
    context.restore();
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
    const available = canvas.parentElement.clientWidth;
    if (!available) return; // hidden, as on paper where the drawing without a script takes its place
    const ratio = Math.min(3, window.devicePixelRatio || 1);
    base = drawBase(available, ratio);
    canvas.width = base.width;
    canvas.height = base.height;
    canvas.style.width = `${base.width / ratio}px`;
    canvas.style.height = `${base.height / ratio}px`;
    canvas.dataset.side = size;
    mark();
  }
  function mark() {
    if (!base) return;
    const context = canvas.getContext("2d");
    const ratio = canvas.width / (left + size + 1);
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
      reading.replaceChildren(make("span", "pair", named(i)), "A party and itself: there is nothing to estimate.");
      return;
    }
    const pair = pairOf(i, j);
    reading.replaceChildren(
      make("span", "pair", named(i), " and ", named(j)), badgeOf(pair), make("br"),
      `${kind} `, make("strong", "", textOf(pair)), make("br"),
      make("span", "note", given.similar ? `distance ${written(distanceOf(pair))}` : values[pair] < 0 ? "The squared estimate is below 0, and is shown as 0." : ""),
    );
    const rows = margins && differences(i, j);
    const reasons = rows && reasonsOf(rows);
    if (reasons) reading.append(make("span", "reasons", named(j), ` has ${reasons}`));
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
  function pick() {
    const [i, j] = cursor.map((rank) => order[rank]);
    choose(i);
    if (i !== j) for (const listener of whenPaired) listener(i, j);
  }
  canvas.addEventListener("click", () => cursor && pick());
  canvas.addEventListener("focus", () => cursor || moveTo(0, Math.min(1, count - 1)));
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -count], End: [0, count], PageUp: [-10, 0], PageDown: [10, 0] };
    if (event.key === "Enter" || event.key === " ") pick();
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
