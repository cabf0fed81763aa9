// What is known of one group, node or domain: beside the picture, with links to all that it names.

const LISTED = 24; // nodes or pods of one thing; the table of pods has all
const panel = make("aside", { id: "details", "aria-label": "Details", tabindex: "-1" });

/** Choose a thing, show the details of it, and where asked for bring both into view. */
function select(kind, index, reveal) {
  state.selected = { kind, index };
  state.cursor = state.selected;
  showPanel();
  if (reveal) {
    zoom(kind === "domain" ? index : kind === "node" ? placeOfNode[index] : rootOfGroup(index));
    document.getElementById("picture").scrollIntoView({ block: "nearest" });
    panel.focus({ preventScroll: true });
  }
  draw();
}

/** Choose nothing: the whole cluster, and next to it the list of what waits. */
function goHome() {
  state.selected = null;
  state.cursor = null;
  showPanel();
  zoom(0);
}

function showPanel() {
  const { selected } = state;
  if (selected === null) {
    clear(panel, waitingGroups[state.when].length ? waitingList() : [make("h3", {}, "Nothing waits"), detailsOf("domain", 0)]);
    return;
  }
  const back = make("a", { class: "link back", href: HOME, onclick: (event) => {
    event.preventDefault();
    note(HOME);
    goHome();
  } }, waitingGroups[state.when].length ? "‹ All that waits" : "‹ The whole cluster");
  clear(panel, make("p", {}, back), detailsOf(selected.kind, selected.index));
  panel.scrollTop = 0;
}

/** The lowest place that holds all of a group. */
function rootOfGroup(group) {
  const positions = podsOfGroup[group]
    .map((pod) => data.pods[state.when === AFTER ? "after" : "before"][pod])
    .filter((node) => node !== NOTHING)
    .map((node) => positionOf[node]);
  if (!positions.length) return 0;
  const [first, last] = positions.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [nodeCount, 0]);
  let place = places[0];
  for (let next = place; next; next = place.children.map((index) => places[index]).find((child) => child.start <= first && last < child.end)) {
    place = next;
  }
  return place.index;
}

function detailsOf(kind, index) {
  if (kind === "group") return detailsOfGroup(index);
  return kind === "node" ? detailsOfNode(index) : detailsOfPlace(places[index]);
}

/** Terms with what is said of them; those of which nothing is said are left out. */
function facts(pairs) {
  return make("dl", {}, pairs
    .filter(([, said]) => said !== null && said !== "" && said !== undefined)
    .map(([term, said]) => make("div", {}, make("dt", {}, term), make("dd", {}, said))));
}

function detailsOfGroup(group) {
  const { code, message, least, tier, asked, queue, priority, before, new: added, moved, evicted, waiting: left, kind } = data.groups;
  const reason = code[group];
  return [
    make("h3", {}, `${kind[group]} `, nameOf(groupName(group))),
    facts([
      ["State", stateOfGroup(group)],
      ["Why it waits", reason ? [make("strong", {}, reason), ": ", prose(message[group])] : null],
      ["What to do", reason && data.codes[reason] ? prose(data.codes[reason].remedy) : null],
      ["That means", reason && data.codes[reason] ? prose(data.codes[reason].meaning) : null],
      ["Pods", [
        before[group] ? `${before[group]} ran before` : "", evicted[group] ? `${evicted[group]} evicted` : "", moved[group] ? `${moved[group]} moved` : "",
        added[group] ? `${added[group]} placed now` : "", left[group] ? `${left[group]} waiting` : "",
      ].filter(Boolean).join(", ") + (least[group] ? `; at least ${least[group]} together` : "")],
      ["Each asks for", requestsOf(podsOfGroup[group])],
      ["Where", whereIs(group)],
      ["Tier", tier[group] === null ? null : String(tier[group])],
      ["Leaf switches", data.groups.leaves[group] === null ? null : String(data.groups.leaves[group])],
      ["Asked for", asked[group]],
      ["Queue", queue[group]],
      ["Priority", priority[group].toLocaleString("en")],
      ["Age", ageText(data.groups.created[group])],
      ["Others would", othersOf(group)],
    ]),
    nodesOf(group),
    subGroupsOf(group),
  ];
}

/** What pods ask for, each kind of them once. */
function requestsOf(pods) {
  const kinds = new Map();
  for (const pod of pods) kinds.set(data.pods.requests[pod], (kinds.get(data.pods.requests[pod]) || 0) + 1);
  const said = [...kinds].slice(0, 3).map(([vector, count]) => `${requestText(vector)}${kinds.size > 1 ? ` (${count} pods)` : ""}`);
  return said.join("; ") + (kinds.size > 3 ? "; and others" : "");
}

function whereIs(group) {
  const { domain, nodes, before } = data.groups;
  if (!nodes[group]) return before[group] ? "nowhere now" : "nowhere yet";
  const place = domain[group] === null ? null : places.find((each) => each.index && each.name === domain[group]);
  const on = `on ${counted(nodes[group], "node")}`;
  if (place) return [linkTo("domain", place.index, place.name), `, ${on}`];
  return data.domains.kind === "HyperNode" ? `${on}, under no common domain` : on;
}

/** What the policies of a comparison make of a group; null where there is no comparison. */
function othersOf(group) {
  if (!data.comparison) return null;
  const { index, columns, fates } = data.comparison.groups;
  const { asked } = data.groups;
  const row = index.indexOf(group);
  if (row === -1) return asked[group] ? "do the same with it" : "place as many of its pods (it asks for no domain, so where is not compared)";
  return make("ul", {}, columns.map((column, place) => make("li", {}, `${column}: ${fateText(fates[row][place])}`)));
}

/** What becomes of a group under a policy. */
function fateText(fate) {
  if (fate === null) return "not known";
  const [admitted, placed, tier, domain] = fate;
  if (!placed) return "waits";
  const where = domain !== null ? ` in ${domain}` : "";
  const near = tier !== null ? ` (tier ${tier})` : "";
  return `${counted(placed, "pod")}${where}${near}${admitted ? "" : ", not ready"}`;
}

function nodesOf(group) {
  const counts = new Map();
  for (const pod of podsOfGroup[group]) {
    const node = data.pods[state.when === AFTER ? "after" : "before"][pod];
    if (node !== NOTHING) counts.set(node, (counts.get(node) || 0) + 1);
  }
  if (!counts.size) return null;
  return list("Its nodes", [...counts], ([node, count]) => [linkTo("node", node, data.nodes.name[node]), ` ${counted(count, "pod")}`]);
}

function subGroupsOf(group) {
  const parts = data.groups.subGroups[group];
  if (!parts.length) return null;
  return list("Its subgroups", parts, ([name, placed, tier, domain]) => {
    const where = domain === null ? "" : ` in ${domain}`;
    return [nameOf(name), ` ${counted(placed, "pod")}${where}${tier === null ? "" : ` (tier ${tier})`}`];
  });
}

function list(title, items, told) {
  const more = items.length > LISTED ? `and ${counted(items.length - LISTED, "other")}: the tables have all` : null;
  return [
    make("h4", {}, title),
    make("ul", { class: "flow" }, items.slice(0, LISTED).map((item) => make("li", {}, told(item))), more ? make("li", {}, more) : null),
  ];
}

function detailsOfNode(node) {
  const { resource, share } = fillOfNode(node, state.when);
  const pods = [...podsOfNode(node, state.when)];
  const place = places[placeOfNode[node]];
  return [
    make("h3", {}, "Node ", nameOf(data.nodes.name[node])),
    facts([
      ["Taken", resource === NOTHING ? "nothing" : `${percent(share)} of ${resourceName(resource)}, its scarcest resource`],
      ["In", place.index ? linkTo("domain", place.index, place.name) : null],
      ["Note", data.nodes.notes[node] || null],
    ]),
    amountsTable(
      amounts[data.nodes.allocatable[node]],
      amounts[held[state.when][node]],
      resources.map((_, resource) => freeOfNode(node, resource, state.when)),
    ),
    zonesOf(node),
    pods.length ? list("Its pods", pods, (pod) => [
      data.pods.group[pod] === NOTHING ? nameOf(podName(pod)) : linkTo("group", data.pods.group[pod], podName(pod)),
      changeText(pod),
      data.pods.zones[pod] ? ` in ${data.pods.zones[pod].join(", ")}` : "",
    ]) : make("p", {}, "No pod is on it."),
  ];
}

/** What changes with a pod on a node, as it stands behind its name. */
function changeText(pod) {
  const fate = fateOf(pod);
  const { before, after } = data.pods;
  if (fate === MOVED) return state.when === AFTER ? ` (moved from ${data.nodes.name[before[pod]]})` : ` (moves to ${data.nodes.name[after[pod]]})`;
  if (state.when === BEFORE && fate) return fate === LOST ? " (lost with the node)" : " (is evicted)";
  return data.decided && state.when === AFTER && hasChanged(pod) ? " (new)" : "";
}

/** What is left on nodes that take no pods; nothing is said where there is none. */
function closedOf(place) {
  const left = place.sums.closed[state.when];
  const told = countedResources.filter((resource) => left[resource]).map((resource) => `${resourceName(resource)} ${amountText(resource, left[resource])}`);
  return told.length ? make("p", {}, `Not free, because their nodes take no pods: ${told.join(", ")}`) : null;
}

function amountsTable(has, taken, free) {
  const head = ["Resource", "In all", "Taken", "Free"].map((text, index) => make("th", { scope: "col", class: index ? "number" : null }, text));
  const rows = countedResources.filter((resource) => has[resource] || taken[resource]).map((resource) => make(
    "tr",
    {},
    make("th", { scope: "row" }, resources[resource].name),
    [has[resource], taken[resource], free[resource]]
      .map((amount) => make("td", { class: "number" }, amountText(resource, amount))),
  ));
  return make("table", { class: "small", "aria-label": "Amounts in all, taken and free" }, make("thead", {}, make("tr", {}, head)), make("tbody", {}, rows));
}

function zonesOf(node) {
  const numa = data.nodes.zones[node];
  if (!numa) return null;
  return list(`NUMA zones (${numa.policy}, scope ${numa.scope}), free`, numa.zones, (zone) => {
    const free = amounts[zone[1 + state.when]];
    const told = amounts[zone[3]].map((most, resource) => (most ? `${resourceName(resource)} ${amountText(resource, free[resource])}` : "")).filter(Boolean);
    return [nameOf(zone[0]), `: ${told.join(", ")}`];
  });
}

function detailsOfPlace(place) {
  const { resource, share } = fillOfPlace(place, state.when);
  const above = place.parent === NOTHING ? null : places[place.parent];
  const inside = place.children.map((index) => places[index]);
  return [
    make("h3", {}, place.index ? `${data.domains.kind} ` : "", nameOf(place.name)),
    facts([
      ["Tier", tierText(place).replace(/^ \((.*)\)$/, "$1")],
      ["In", above ? linkTo("domain", above.index, above.name) : null],
      ["Nodes", (place.end - place.start).toLocaleString("en")],
      ["Taken", resource === NOTHING ? "nothing" : `${percent(share)} of ${resourceName(resource)}, its scarcest resource`],
    ]),
    amountsTable(place.sums.has, place.sums.held[state.when], place.sums.free[state.when]),
    closedOf(place),
    inside.length ? list("In it", inside, (each) => [linkTo("domain", each.index, each.name), ` ${percent(fillOfPlace(each, state.when).share)}`]) : null,
    place.direct.length ? list("Its nodes", place.direct, (node) => [linkTo("node", node, data.nodes.name[node]), ` ${percent(fillOfNode(node, state.when).share)}`]) : null,
  ];
}
