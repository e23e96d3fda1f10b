// One party against all others, nearest first, with error bars.
const onePanel = byId("one-party");
if (onePanel) {
  const body = byId("one-table").tBodies[0];
  const more = byId("one-more");
  const few = 15;
  let wanted = few;
  const show = (party) => {
    const subject = party < 0 ? given.first : party;
    byId("one-select").value = String(subject);
    byId("one-caption").replaceChildren(named(subject), " and the others, nearest first");
    const others = Array.from(labels, (_, other) => other).filter((other) => other !== subject);
    others.sort((a, b) => values[pairOf(subject, a)] - values[pairOf(subject, b)] || a - b);
    const farthest = others[Math.min(wanted, others.length) - 1];
    const ends = others.slice(0, wanted).map((other) => uppers[pairOf(subject, other)]).filter(Number.isFinite);
    const longest = Math.max(distanceOf(pairOf(subject, farthest)), ...ends) || 1;
    body.replaceChildren(...others.slice(0, wanted).map((other) => {
      const pair = pairOf(subject, other);
      const heading = make("th", "", partyButton(other));
      heading.scope = "row";
      return make("tr", "", heading, make("td", "", badgeOf(pair)), make("td", "wide-bar", barOf(pair, longest)), make("td", "numeric", written(distanceOf(pair))), make("td", "interval", intervalOf(pair)));
    }));
    more.hidden = others.length <= few;
    more.textContent = wanted === few ? `Show all ${others.length.toLocaleString("en-US")}` : `Show the nearest ${few}`;
  };
  more.addEventListener("click", () => {
    wanted = wanted === few ? count : few;
    show(chosen);
  });
  byId("one-select").addEventListener("change", (event) => choose(Number(event.target.value)));
  whenChosen.push(show);
  show(-1);
}
