// The map is drawn by Python; here it answers to the pointer.
function details(party) {
  const clear = given.clear.includes(party) ? " (IN CLEAR, not private)" : "";
  const line = given.lines[party] ? `against the typical party: ${given.lines[party]}` : count === 2 ? textOf(0) : "";
  return [make("strong", "", named(party), clear), make("span", "", line)];
}

const plane = byId("plane");
if (plane) {
  const marks = [...plane.querySelectorAll(".mark-party")];
  let near = null;
  // The mark that is nearest to the pointer, within a finger's breadth: points may be small and close together.
  const markNear = (event) => {
    const box = plane.getBoundingClientRect();
    let best = null, least = 22 * 22;
    for (const mark of marks) {
      const x = box.left + (parseFloat(mark.dataset.x) / 100) * box.width - event.clientX;
      const y = box.top + (parseFloat(mark.dataset.y) / 100) * box.height - event.clientY;
      if (x * x + y * y < least) (least = x * x + y * y), (best = mark);
    }
    return best;
  };
  const leave = () => {
    if (near) near.classList.remove("is-near");
    near = null;
    hideTip();
  };
  plane.addEventListener("pointermove", (event) => {
    const mark = markNear(event);
    if (mark !== near) leave();
    if (!mark) return;
    near = mark;
    near.classList.add("is-near");
    showTip(event, ...details(Number(mark.dataset.party)));
  });
  plane.addEventListener("pointerleave", leave);
  plane.addEventListener("click", (event) => {
    const mark = markNear(event);
    choose(mark ? Number(mark.dataset.party) : -1);
  });
  whenChosen.push((party) => {
    const mark = party >= 0 && marks.find((each) => Number(each.dataset.party) === party);
    if (mark) mark.parentElement.append(mark); // the last one drawn lies on top
  });
}
