// The list of what waits, next to the picture: by priority and age, and equal reasons once.

const SHOWN_LINES = 40;
const NAMED = 3;

/** Runs of groups that wait, with the same priority for the same reason: ``[[group, ...], ...]``. */
function waitingRuns() {
  const runs = new Map();
  for (const group of waitingGroups[state.when]) {
    const key = JSON.stringify([data.groups.priority[group], whyIn(group)]);
    runs.set(key, [...(runs.get(key) || []), group]);
  }
  return [...runs.values()];
}

function waitingList() {
  const runs = waitingRuns();
  const left = runs.slice(SHOWN_LINES).reduce((sum, run) => sum + run.length, 0);
  return [
    make("h3", {}, `Waiting: ${counted(waitingGroups[state.when].length, "group")}`),
    make("p", { class: "hint" }, "By priority, the oldest first."),
    make("ol", { class: "waiting" }, runs.slice(0, SHOWN_LINES).map((run) => make("li", {}, run.length > NAMED ? lineOfMany(run) : run.map(lineOfOne), whyOf(run)))),
    left ? make("p", {}, `and ${counted(left, "group")}: the table of groups has all`) : null,
  ];
}

/** ``ml/train``, and what it asks for. */
function lineOfOne(group) {
  return make("div", { class: "one" }, linkTo("group", group, groupName(group)), make("span", { class: "hint" }, ` ${askedBy([group])}`));
}

/** ``34 groups``, what they ask for together, and their names when opened. */
function lineOfMany(run) {
  const names = run.slice(0, LISTED).map((group) => make("li", {}, linkTo("group", group, groupName(group))));
  if (run.length > LISTED) names.push(make("li", {}, `and ${run.length - LISTED} others`));
  return make("details", {}, make("summary", {}, make("strong", {}, counted(run.length, "group")), make("span", { class: "hint" }, ` ${askedBy(run)}`)), make("ul", { class: "flow" }, names));
}

/** Priority, pods, GPUs and age of groups of one priority. */
function askedBy(run) {
  const pods = run.flatMap((group) => waitingPods[state.when][group]);
  const amount = measuredOf(pods);
  const since = run.map((group) => data.groups.created[group]).filter((each) => each !== null);
  const age = since.length ? ageText(Math.min(...since)) : "";
  return [
    data.groups.priority.some(Boolean) ? `priority ${data.groups.priority[run[0]].toLocaleString("en")}` : "",
    counted(pods.length, "pod"),
    amount ? `${measuredText(amount)} ${amount === 1 ? measuredName.slice(0, -1) : measuredName}` : "",
    run.length > 1 && age ? `oldest ${age}` : age,
  ].filter(Boolean).join(" · ");
}

/** The reason that groups share, in a few words; whole messages are one click away. */
function whyOf(run) {
  const words = whyIn(run[0]);
  return words ? make("p", { class: "why" }, words) : null;
}

/** Why a group waits, in a few words. A Placement that was read says of room only that others got it. */
function whyIn(group) {
  const { code, words, evicted, priority, new: added } = data.groups;
  if (state.when === BEFORE && data.decided) return "";
  if (!data.decided && code[group] === "NotDecided") return "it would fit by itself";
  if (!code[group]) return evicted[group] ? "evicted by this plan" : "";
  if (code[group] !== "Outcompeted") return words[group];
  return added.every((count, other) => !count || priority[other] > priority[group]) ? "the room went to higher priorities" : words[group];
}
