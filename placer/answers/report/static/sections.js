// The sections of the page: the answer, large numbers, the picture, and every fact of it in tables.

/** A column of a resource: what is free of it. */
function freeColumn(resource, free) {
  return {
    label: `Free ${resourceName(resource)}`,
    numeric: true,
    value: (row) => free(row, resource),
    cell: (row) => amountText(resource, free(row, resource)),
  };
}

function fillColumn(fill) {
  return {
    label: "Taken",
    numeric: true,
    value: (row) => fill(row).share,
    cell: (row) => make("span", { class: "barred" }, bar(fill(row).share), make("span", { class: "said" }, percent(fill(row).share))),
  };
}

function scarcestColumn(fill) {
  return { label: "Scarcest", value: (row) => (fill(row).resource === NOTHING ? "" : resourceName(fill(row).resource)) };
}

const tiles = make("dl", { class: "tiles" });

function overviewSection() {
  const invalid = data.verdict.word === "INVALID";
  drawTiles();
  return make(
    "section",
    { id: "overview", "aria-label": "The answer" },
    make("p", { class: invalid ? "headline bad" : "headline" }, data.headline),
    tiles,
  );
}

/** The large numbers, each with a bar and a line below it. */
function drawTiles() {
  const numbers = numbersAt(state.when);
  const waits = waitingGroups[state.when];
  const pods = waits.reduce((sum, group) => sum + waitingPods[state.when][group].length, 0);
  const fits = (data.counts.find(([term]) => term === "still fits") || ["", ""])[1];
  const since = waits.map((group) => data.groups.created[group]).filter((each) => each !== null);
  const share = (amount) => (numbers.all ? amount / numbers.all : 0);
  const whole = data.decided && state.when === BEFORE ? "" : largestFit(fits);
  const all = new Set([...waitingGroups[BEFORE], ...waitingGroups[AFTER]]).size;
  const row = (name, amount, part, kind, hint) => make(
    "div",
    {},
    make("dt", {}, name),
    make("dd", {}, make("strong", {}, amount), make("span", { class: "hint" }, ` ${hint}`), bar(part, null, kind)),
  );
  clear(
    tiles,
    row(`${measuredName} used`, measuredText(numbers.used), share(numbers.used), "ran", `of ${measuredText(numbers.all)}, ${percent(share(numbers.used))}`),
    row(`${measuredName} free`, measuredText(numbers.free), share(numbers.free), "good", whole),
    row(`${measuredName} stranded`, numbers.isCounted ? measuredText(numbers.stranded) : "?", share(numbers.stranded), "stranded", numbers.isCounted ? "free, but of no use" : "not counted in time"),
    row(`${measuredName} waiting`, measuredText(numbers.waiting), share(numbers.waiting), "waits", `for ${counted(pods, "pod")}`),
    row("Groups waiting", waits.length.toLocaleString("en"), all ? waits.length / all : 0, "waits", waits.length && since.length && data.moment !== null ? `oldest ${ageText(Math.min(...since))}` : ""),
  );
}

/** ``2 pods of 4 fit`` of ``1/2/4/8-GPU pods: 8/4/2/0``: the largest pods that still have room. */
function largestFit(text) {
  const found = /^([\d/]+)-GPU pods: ([\d,/]+)$/.exec(text);
  if (!found) return "";
  const [sizes, counts] = [found[1].split("/"), found[2].split("/")];
  const place = counts.findLastIndex((count) => count !== "0");
  return place < 0 ? "no pod fits" : `${counts[place]} ${counts[place] === "1" ? "pod" : "pods"} of ${sizes[place]} fit${counts[place] === "1" ? "s" : ""}`;
}

/** Everything that a solver says of its placement, last and folded. */
function valuesSection() {
  const { word, sentence, stopped } = data.verdict;
  return section("overall", "Values and proofs", make(
    "details",
    {},
    make("summary", {}, "How good this placement is, and how much of that is proved"),
    make("p", { class: "verdict" }, make("strong", { class: `word ${word.toLowerCase().replace(" ", "-")}` }, word), ` ${sentence}`),
    stopped ? make("p", {}, stopped) : null,
    make("dl", { class: "counts" }, data.counts.map(([term, said]) => make("div", {}, make("dt", {}, term), make("dd", {}, said)))),
    data.values.length ? valuesTable() : null,
  ));
}

const BETTER = { true: "no", false: "perhaps", null: "not known" };

function valuesTable() {
  const row = (index) => data.values[index];
  return new Table({
    id: "values",
    caption: "Values, in the order in which they are compared: the first that differs decides which placement is better",
    count: data.values.length,
    columns: [
      { label: "Order", numeric: true, value: (index) => index + 1 },
      { label: "Value", value: (index) => row(index).name },
      { label: "Here", whole: true, value: (index) => row(index).number },
      { label: "Is better possible?", value: (index) => BETTER[row(index).best] },
      { label: "Proof", wide: true, value: (index) => row(index).proved },
      { label: "Meaning", wide: true, value: (index) => row(index).meaning },
    ],
  }).element;
}

// ------------------------------------------------------------------------------------------------------------- picture

function pictureSection() {
  const frame = make("div", { id: "frame" }, canvas);
  const shown = make("div", { class: "shown" }, trail, frame, spoken, legend());
  const heading = make("h2", { id: "picture-title" }, "The cluster");
  return make("section", { id: "picture", "aria-labelledby": "picture-title" }, make("div", { class: "switches" }, heading, whenSwitch(), colourSwitch()), make("div", { class: "beside" }, shown, panel));
}

/** Buttons of which one is pressed. */
function choice(label, options, chosen, choose) {
  const buttons = options.map((text, index) => make("button", {
    type: "button",
    "aria-pressed": String(index === chosen),
    onclick: () => {
      buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === index)));
      choose(index);
    },
  }, text));
  return make("div", { class: "choice", role: "group", "aria-label": label }, buttons);
}

function whenSwitch() {
  if (!data.decided) return null;
  return choice("When", ["Before", "After", "Changes"], 1, (index) => {
    state.when = index === 0 ? BEFORE : AFTER;
    state.changes = index === 2;
    showPanel();
    drawTiles();
    draw();
    for (const table of tables) table.refresh();
  });
}

const modeSelect = make("select", { id: "colours", onchange: () => {
  state.mode = modeSelect.value;
  draw();
} });

function colourSwitch() {
  refreshModes();
  return make("label", { class: "colours" }, "Colour by ", modeSelect);
}

/** The modes that there are here, and the one that holds. */
function refreshModes() {
  clear(modeSelect, modes.map((mode) => make("option", { value: mode.id, disabled: mode.id === BY_GROUP && !showsGroups() }, mode.label)));
  modeSelect.value = modeNow().id;
}

const keyList = make("p", { id: "legend" });
let keysDrawn = "";

/** The meaning of the colours that are in the picture now. */
function drawLegend() {
  const mode = modeNow();
  const fates = new Set(data.disturbed.pods.what);
  const strays = closed.size > 0 || data.nodes.name.some((_, node) => fillOfNode(node, state.when).share > 1);
  const found = [
    ...mode.keys(),
    ...(mode.id === BY_FILL ? [] : [["free", "free"]]),
    ...(WITHOUT_VALUES.includes(mode.id) && waitingGroups[state.when].length ? [["waits", "waits"]] : []),
    ...(strays ? [["bad", "cordoned, not Ready or over-full"]] : []),
    ...(fates.has(EVICTED) || fates.has(LOST) ? [["evicted", "evicted or lost; a corner: from this node"]] : []),
    ...(fates.has(MOVED) ? [["moved", "moved; a corner: away from this node"]] : []),
    ...(state.changes ? [["faded", "pale: as before"]] : []),
  ];
  const drawn = JSON.stringify(found);
  if (drawn === keysDrawn) return;
  keysDrawn = drawn;
  clear(keyList, found.map(([style, text]) => make("span", { class: "key" }, make("span", { class: `swatch ${style}`, "aria-hidden": "true" }), text)));
}

function legend() {
  return [keyList, make("p", { class: "hint" }, "A node is as full as its scarcest resource. Bands are domains: click one to open it, the uppermost to go out.")];
}

// -------------------------------------------------------------------------------------------------------------- tables

const FATES = { [EVICTED]: "is evicted", [MOVED]: "is moved", [LOST]: "is lost with its node" };

/** What is evicted and moved, in the command's own words and pod by pod. */
function disturbedSection() {
  const { lines, pods } = data.disturbed;
  if (!lines.length) return null;
  const nodeOf = (column) => (row) => data.nodes.name[column[pods.pod[row]]] || "";
  const cellOf = (column) => (row) => (column[pods.pod[row]] === NOTHING ? "waits" : linkTo("node", column[pods.pod[row]], nodeOf(column)(row)));
  return section("disturbed", "Evicted and moved pods", make("div", { class: "lines" }, lines.map((line) => make("p", {}, line))), pods.pod.length ? new Table({
    id: "disturbed",
    caption: "Running pods that leave their nodes, and the step of the plan in which they go",
    count: pods.pod.length,
    columns: [
      { label: "Pod", value: (row) => podName(pods.pod[row]), cell: (row) => nameOf(podName(pods.pod[row])) },
      { label: "Fate", value: (row) => FATES[pods.what[row]] },
      { label: "From", value: nodeOf(data.pods.before), cell: cellOf(data.pods.before) },
      { label: "To", value: nodeOf(data.pods.after), cell: cellOf(data.pods.after) },
      { label: "Goes together as", value: (row) => pods.unit[row], cell: (row) => nameOf(pods.unit[row]) },
      { label: "Priority", numeric: true, value: (row) => pods.priority[row] },
      { label: "Step", numeric: true, value: (row) => pods.step[row] || null },
    ],
  }).element : null);
}

function groupsSection() {
  if (!groupCount) return section("groups", "Groups", make("p", {}, "There is no group."));
  const groups = data.groups;
  const domainOf = new Map(places.filter((place) => place.index).map((place) => [place.name, place.index]));
  const shownDomain = (row) => {
    if (groups.domain[row] !== null) return groups.domain[row];
    return groups.tier[row] === null ? "" : "several";
  };
  const gpusOf = podsOfGroup.map((pods) => measuredOf(pods));
  const isGang = (row) => Number(groups.kind[row] === "PodGroup");
  const order = (one, other) => (groups.waiting[one] === 0) - (groups.waiting[other] === 0) || (groups.waiting[one] ? 0 : isGang(other) - isGang(one)) || byUrgency(one, other);
  const table = new Table({
    id: "groups",
    caption: "Groups: gangs, and single pods that wait. Those that wait come first, by priority and age",
    count: groupCount,
    order: [...groups.waiting.keys()].sort(order),
    columns: [
      { label: "Group", value: groupName, cell: (row) => linkTo("group", row, groupName(row)) },
      { label: "State", value: stateOfGroup },
      ...(groups.priority.some(Boolean) ? [{ label: "Priority", numeric: true, value: (row) => groups.priority[row] }] : []),
      ...(groups.queue.some(Boolean) ? [{ label: "Queue", value: (row) => groups.queue[row] || "" }] : []),
      ...(measured.length ? [{ label: measuredName, numeric: true, value: (row) => gpusOf[row], cell: (row) => measuredText(gpusOf[row]) }] : []),
      ...(groups.created.some(Boolean) ? [{ label: data.moment === null ? "Since" : "Age", numeric: true, value: (row) => (groups.created[row] === null ? null : -groups.created[row]), cell: (row) => ageText(groups.created[row]) }] : []),
      { label: "Waiting", numeric: true, value: (row) => groups.waiting[row] },
      ...(data.decided ? [{ label: "Placed now", numeric: true, value: (row) => groups.new[row] }] : []),
      { label: "Ran before", numeric: true, value: (row) => groups.before[row] },
      ...(groups.evicted.some(Boolean) ? [{ label: "Evicted", numeric: true, value: (row) => groups.evicted[row] }] : []),
      ...(groups.moved.some(Boolean) ? [{ label: "Moved", numeric: true, value: (row) => groups.moved[row] }] : []),
      ...(groups.code.some(Boolean) ? [{ label: "Reason", wide: true, value: (row) => (groups.code[row] ? `${groups.code[row]}: ${groups.message[row]}` : ""), cell: (row) => (groups.code[row] ? make("div", { class: "clamped" }, make("strong", {}, groups.code[row]), ": ", prose(groups.message[row])) : null) }] : []),
      ...(data.domains.kind === "HyperNode" ? [
        { label: "Domain", value: shownDomain, cell: (row) => (domainOf.has(groups.domain[row]) ? linkTo("domain", domainOf.get(groups.domain[row]), groups.domain[row]) : shownDomain(row)) },
        { label: "Tier", numeric: true, value: (row) => groups.tier[row] },
        { label: "Asked for", whole: true, value: (row) => groups.asked[row] },
      ] : []),
      { label: "Nodes", numeric: true, value: (row) => groups.nodes[row] },
    ],
  });
  const codes = [...new Set(groups.code.filter(Boolean))];
  return section("groups", "Groups", table.element, codes.length ? reasonsList(codes) : null);
}

/** The meaning of the reasons that some group has. */
function reasonsList(codes) {
  return make("details", {}, make("summary", {}, "The meaning of the reasons, and the remedies"), facts(
    codes.filter((code) => data.codes[code]).map((code) => [code, [prose(data.codes[code].meaning), " ", prose(data.codes[code].remedy)]]),
  ));
}

function domainsSection() {
  const rows = places.filter((place) => place.index);
  if (!rows.length) return null;
  const fill = (row) => fillOfPlace(rows[row], state.when);
  return section("domains", "Domains", new Table({
    id: "domains",
    caption: `Domains (${data.domains.kind === "HyperNode" ? "HyperNodes" : "regions and zones"}) and the free amounts under each, added up over its nodes that take pods`,
    count: rows.length,
    columns: [
      { label: "Domain", value: (row) => rows[row].name, cell: (row) => linkTo("domain", rows[row].index, rows[row].name) },
      { label: "Tier", value: (row) => tierText(rows[row]).replace(/^ \((.*)\)$/, "$1") },
      { label: "In", value: (row) => (rows[row].parent ? places[rows[row].parent].name : "") },
      { label: "Nodes", numeric: true, value: (row) => rows[row].end - rows[row].start },
      fillColumn(fill),
      scarcestColumn(fill),
      ...countedResources.map((resource) => freeColumn(resource, (row) => freeOfPlace(rows[row], resource, state.when))),
    ],
  }).element);
}

function nodesSection() {
  const fills = [BEFORE, AFTER].map((when) => data.nodes.name.map((_, node) => fillOfNode(node, when)));
  const fill = (node) => fills[state.when][node];
  const inDomain = (node) => (placeOfNode[node] ? places[placeOfNode[node]].name : "");
  return section("nodes", "Nodes", new Table({
    id: "nodes",
    caption: "Nodes and the free amounts on each",
    count: nodeCount,
    columns: [
      { label: "Node", value: (node) => data.nodes.name[node], cell: (node) => linkTo("node", node, data.nodes.name[node]) },
      ...(places.length > 1 ? [{ label: "Domain", value: inDomain }] : []),
      fillColumn(fill),
      scarcestColumn(fill),
      ...countedResources.map((resource) => freeColumn(resource, (node) => freeOfNode(node, resource, state.when))),
      { label: "Pods", numeric: true, value: (node) => podsOfNode(node, state.when).length },
      { label: "Note", value: (node) => data.nodes.notes[node] || "" },
    ],
  }).element);
}

const POD_STATES = { p: "pending", b: "bound", t: "terminating", n: "nominated" };

function podsSection() {
  const { group, application, before, after, requests, state: states, zones } = data.pods;
  const nodeName = (node) => (node === NOTHING ? "" : data.nodes.name[node]);
  const nodeCell = (node) => (node === NOTHING ? "" : linkTo("node", node, data.nodes.name[node]));
  const stateOf = (row) => fateOf(row) || (states[row] === "p" && after[row] !== NOTHING ? "placed now" : POD_STATES[states[row]]);
  const withZones = Object.keys(zones).length > 0;
  return section("pods", "Pods", podCount ? new Table({
    id: "pods",
    caption: "Pods and their nodes",
    count: podCount,
    columns: [
      { label: "Pod", value: podName, cell: (row) => nameOf(podName(row)) },
      { label: "Group", value: (row) => (group[row] === NOTHING ? "" : groupName(group[row])), cell: (row) => (group[row] === NOTHING ? "" : linkTo("group", group[row], groupName(group[row]))) },
      ...(data.applications.length ? [{ label: "Application", value: (row) => data.applications[application[row]] || "" }] : []),
      { label: "State", value: stateOf },
      { label: data.decided ? "Node before" : "Node", value: (row) => nodeName(before[row]), cell: (row) => nodeCell(before[row]) },
      ...(data.decided ? [{ label: "Node after", value: (row) => nodeName(after[row]), cell: (row) => nodeCell(after[row]) }] : []),
      ...(withZones ? [{ label: "NUMA zones", value: (row) => (zones[row] || []).join(", ") }] : []),
      { label: "Asks for", value: (row) => requestText(requests[row]) },
    ],
  }).element : make("p", {}, "There is no pod."));
}

function queuesSection() {
  if (!data.queues.length) return null;
  const rows = data.queues.flatMap((queue) => {
    const limited = Object.keys(queue.capability);
    return (limited.length ? limited : [null]).map((resource) => ({ queue, resource }));
  });
  const index = new Map(resources.map((resource, place) => [resource.name, place]));
  const amount = ({ queue, resource }, what) => {
    if (resource === null) return null;
    return what === "most" ? queue.capability[resource] : queue[state.when === AFTER ? "after" : "before"][resource] || 0;
  };
  const text = (row, number) => {
    if (number === null) return "no limit";
    return index.has(row.resource) ? amountText(index.get(row.resource), number) : number.toLocaleString("en");
  };
  const column = (label, value) => ({ label, numeric: true, value: (place) => value(rows[place]), cell: (place) => text(rows[place], value(rows[place])) });
  return section("queues", "Queues", new Table({
    id: "queues",
    caption: "Queues: the amounts that their pods hold, and their limits (capability), queues below them included",
    count: rows.length,
    columns: [
      { label: "Queue", value: (row) => rows[row].queue.name, cell: (row) => nameOf(rows[row].queue.name) },
      { label: "Parent", value: (row) => rows[row].queue.parent || "" },
      { label: "Takes new pods", value: (row) => (rows[row].queue.open ? "yes" : "no, closed") },
      { label: "Pods that wait", numeric: true, value: (row) => rows[row].queue.waiting },
      { label: "Resource", value: (row) => rows[row].resource || "" },
      column("At most", (row) => amount(row, "most")),
      { ...column("Held", (row) => amount(row, "held")), cell: (place) => (rows[place].resource === null ? "" : text(rows[place], amount(rows[place], "held"))) },
      { ...column("Left", (row) => (row.resource === null ? null : amount(row, "most") - amount(row, "held"))) },
    ],
  }).element);
}

function strandedSection() {
  const rows = data.decided ? data.stranded.after : data.stranded.before;
  const place = new Map(resources.map((resource, index) => [resource.name, index]));
  const head = "Free amounts on nodes that no pod of this cluster could use there. Running and waiting pods are tried one by one.";
  if (rows === null) return section("stranded", "Stranded", make("p", {}, `${head} They were not counted in time (--time-limit).`));
  if (!rows.length) return section("stranded", "Stranded", make("p", {}, `${head} Nothing is stranded.`));
  const amount = (row) => amountText(place.get(rows[row].resource), rows[row].amount);
  return section("stranded", "Stranded", make("p", {}, head), new Table({
    id: "stranded",
    caption: `Free and of no use${data.decided ? ", after the placement" : ""}`,
    count: rows.length,
    columns: [
      { label: "Resource", value: (row) => rows[row].resource },
      { label: "Amount", numeric: true, value: (row) => rows[row].amount, cell: amount },
      { label: "Why", wide: true, value: (row) => rows[row].reason },
      { label: "Nodes", numeric: true, value: (row) => rows[row].nodes.length },
      { label: "Which", wide: true, value: (row) => rows[row].nodes.map((node) => data.nodes.name[node]).join(" "), cell: (row) => whichNodes(rows[row].nodes) },
    ],
  }).element);
}

function whichNodes(nodes) {
  const links = nodes.slice(0, 4).flatMap((node) => [linkTo("node", node, data.nodes.name[node]), " "]);
  return nodes.length > 4 ? [...links, `and ${(nodes.length - 4).toLocaleString("en")} more`] : links;
}

function violationsSection() {
  if (!data.violations.length) return null;
  return section("violations", "Broken rules", new Table({
    id: "violations",
    caption: "Rules that the placement breaks",
    count: data.violations.length,
    columns: [
      { label: "Rule", value: (row) => data.violations[row].rule },
      { label: "Of", value: (row) => data.violations[row].subjects.join(", ") },
      { label: "Message", wide: true, value: (row) => data.violations[row].message },
    ],
  }).element);
}

function findingsSection() {
  if (!data.findings.length) return null;
  const remedy = (row) => (data.codes[data.findings[row].code] || { remedy: "" }).remedy;
  return section("findings", "Findings", new Table({
    id: "findings",
    caption: "Faults of the input",
    count: data.findings.length,
    columns: [
      { label: "Finding", value: (row) => data.findings[row].code },
      { label: "Of", value: (row) => data.findings[row].object },
      { label: "Message", wide: true, value: (row) => data.findings[row].message, cell: (row) => prose(data.findings[row].message) },
      { label: "Remedy", wide: true, value: remedy, cell: (row) => prose(remedy(row)) },
    ],
  }).element);
}

// ---------------------------------------------------------------------------------------------------------- comparison

function comparisonSection() {
  if (!data.comparison) return null;
  const { policies, values, groups } = data.comparison;
  const told = (number) => (number === null ? "" : number.toLocaleString("en"));
  const most = Math.max(1, ...policies.flatMap((each) => [each.weight || 0, each.weightBound || 0]));
  const withGpus = policies.some((each) => each.gpus);
  const table = new Table({
    id: "policies",
    caption: "Pods that each would bind now. The line across a bar is a proved limit of valid placements that are as good in the order of the values",
    count: policies.length,
    columns: [
      { label: "Policy", value: (row) => policies[row].name, cell: (row) => nameOf(policies[row].name) },
      { label: "Amount placed", numeric: true, value: (row) => policies[row].weight, cell: (row) => barOf(policies[row].weight, policies[row].weightBound, most, policies[row].weightText) },
      { label: "Pods", numeric: true, value: (row) => policies[row].pods, cell: (row) => told(policies[row].pods) },
      { label: "Groups", numeric: true, value: (row) => policies[row].groups, cell: (row) => told(policies[row].groups) },
      ...(withGpus ? [{ label: "GPUs", numeric: true, value: (row) => policies[row].gpus, cell: (row) => told(policies[row].gpus) }] : []),
      ...(policies.some((each) => each.onlyThere !== null) ? [
        { label: "Ready only there", numeric: true, value: (row) => policies[row].onlyThere, cell: (row) => told(policies[row].onlyThere) },
        { label: "Ready only here", numeric: true, value: (row) => policies[row].onlyHere, cell: (row) => told(policies[row].onlyHere) },
      ] : []),
      { label: "Breaks rules", value: (row) => policies[row].breaks || (policies[row].error ? "" : "none") },
      { label: "Seconds", numeric: true, value: (row) => policies[row].seconds, cell: (row) => told(policies[row].seconds) },
      ...(policies.some((each) => each.error) ? [{ label: "Error", wide: true, value: (row) => policies[row].error || "" }] : []),
    ],
  });
  return section("comparison", "Compared with others", table.element, valuesBeside(policies, values), groupsBeside(groups));
}

function barOf(number, bound, most, text) {
  if (number === null) return "";
  return make("span", { class: "barred" }, bar(number / most, bound === null ? null : bound / most), make("span", { class: "said" }, text));
}

/** A row for each value, with a bar for each policy, as long as the value beside the others of the row. */
function valuesBeside(policies, values) {
  const most = values.map((value) => Math.max(1, ...value.numbers, ...value.bounds));
  const proved = values.map(({ boundTexts }) => boundTexts.find((text) => text !== null) || "not proved");
  return new Table({
    id: "compared",
    caption: "Values of each, in the order in which they are compared: the first that differs decides. A line is a proved limit of placements that are as good in the values above",
    count: values.length,
    columns: [
      { label: "Value", value: (row) => values[row].name },
      { label: "Better is", value: (row) => (values[row].more ? "more" : "less") },
      { label: "Proved", numeric: true, value: (row) => proved[row] },
      ...policies.map((policy, place) => ({
        label: policy.name,
        numeric: true,
        value: (row) => values[row].numbers[place],
        cell: (row) => barOf(values[row].numbers[place], values[row].bounds[place], most[row], values[row].texts[place]),
      })),
    ],
  }).element;
}

function groupsBeside({ columns, names, index, fates, compared }) {
  if (!names.length) return make("p", {}, `All ${compared} groups fare alike.`);
  return new Table({
    id: "fates",
    caption: `Groups that fare differently (${names.length.toLocaleString("en")} of ${compared.toLocaleString("en")}): pods with a node, and the domain of those that ask for one`,
    count: names.length,
    columns: [
      { label: "Group", value: (row) => names[row], cell: (row) => (index[row] === NOTHING ? nameOf(names[row]) : linkTo("group", index[row], names[row])) },
      ...columns.map((column, place) => ({ label: column, value: (row) => fateText(fates[row][place]) })),
    ],
  }).element;
}
