// The map and the tree are drawn by Python; here they answer to the pointer.
function details(party) {
  let nearest = -1;
  for (let other = 0; other < count; other++) {
    if (other !== party && (nearest < 0 || values[pairOf(party, other)] < values[pairOf(party, nearest)])) nearest = other;
  }
  const pair = pairOf(party, nearest);
  const clear = given.clear.includes(party) ? " (IN CLEAR, not private)" : "";
  return [make("strong", "", named(party), clear), make("span", "", "nearest: ", named(nearest), `, ${written(distanceOf(pair))} (${intervalOf(pair)}), ${stateOf(pair)}`)];
}
const partyOf = (event) => {
  const element = event.target.closest("[data-party]");
  return element ? Number(element.dataset.party) : -1;
};

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

const tree = byId("tree");
if (tree) {
  const leafAt = (event) => {
    const direct = partyOf(event);
    if (direct >= 0) return direct;
    const box = tree.querySelector("svg.branches").getBoundingClientRect();
    const rank = Math.floor(((event.clientY - box.top) / box.height) * count);
    return rank >= 0 && rank < count ? given.order[rank] : -1;
  };
  tree.addEventListener("pointermove", (event) => {
    const party = leafAt(event);
    const merge = event.target.closest("[data-merge]");
    if (merge) showTip(event, merge.dataset.merge);
    else if (party >= 0) showTip(event, ...details(party));
    else hideTip();
  });
  tree.addEventListener("pointerleave", hideTip);
  tree.addEventListener("click", (event) => choose(leafAt(event)));
}
