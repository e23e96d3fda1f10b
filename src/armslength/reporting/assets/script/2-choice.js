// One party can be chosen in any view; every view shows it.
let chosen = -1;
const whenChosen = [];
const whenPaired = [];

function choose(party, { quietly = false } = {}) {
  chosen = party;
  for (const element of document.querySelectorAll(".is-chosen")) element.classList.remove("is-chosen");
  if (party >= 0) for (const element of document.querySelectorAll(`[data-party="${party}"]`)) element.classList.add("is-chosen");
  const folded = document.querySelector("details .is-chosen");
  if (folded) folded.closest("details").open = true;
  for (const listener of whenChosen) listener(party);
  if (!quietly) say(party < 0 ? "No party is highlighted." : `${labels[party]} is highlighted in all views.`);
}
function say(text) {
  byId("said").textContent = text;
}

const tip = byId("tip");
function showTip(event, ...lines) {
  tip.replaceChildren(...lines.flatMap((line, number) => (number ? [make("br"), line] : [line])));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
  const above = event.clientY - box.height - 12;
  tip.style.transform = `translate(${Math.max(8, left)}px, ${above < 8 ? event.clientY + 18 : above}px)`;
}
function hideTip() {
  tip.hidden = true;
}

const search = byId("search");
if (search) {
  const known = new Map(labels.map((label, party) => [label.toLowerCase(), party]));
  const find = (loose) => {
    const text = search.value.trim().toLowerCase();
    if (text === "") return -1;
    if (known.has(text)) return known.get(text);
    return loose ? labels.findIndex((label) => label.toLowerCase().includes(text)) : -1;
  };
  search.addEventListener("input", () => {
    const party = find(false);
    if (party >= 0 || search.value === "") choose(party);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Escape") (search.value = ""), choose(-1);
    if (event.key !== "Enter") return;
    const party = find(true);
    if (party < 0) say("No party has such a name.");
    else (search.value = labels[party]), choose(party);
  });
  whenChosen.push((party) => {
    if (document.activeElement !== search) search.value = party < 0 ? "" : labels[party];
  });
}
document.addEventListener("click", (event) => {
  const button = event.target.closest("button.party");
  if (button) choose(Number(button.dataset.chooses));
});
