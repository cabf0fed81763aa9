// The data of the page: the columns that placer wrote (placer/answers/report/inventory.py), and what follows from them.
// "When" is 0, before the placement, or 1, with it carried out; without a placement both are the same.

const data = JSON.parse(document.getElementById("data").textContent);
const NOTHING = -1;
const BEFORE = 0;
const AFTER = 1;

const resources = data.resources;
const amounts = data.amounts;
const nodeCount = data.nodes.name.length;
const groupCount = (data.groups.name || []).length;
const podCount = data.pods.name.length;
/** Nodes that take no pods, being cordoned or not Ready: what is left on them is not free to anyone. */
const closed = new Set(data.nodes.closed);
const held = [data.nodes.before, data.nodes.after];

/** Places of the picture from the top down: the whole cluster, its domains, and the nodes that are in none. */
const places = [];
/** Indexes of nodes as they lie beside each other: those of one place are neighbours. */
const nodeOrder = new Int32Array(nodeCount);
/** Node to its position in that order. */
const positionOf = new Int32Array(nodeCount);
/** Node to the place that holds it directly. */
const placeOfNode = new Int32Array(nodeCount);

function makePlaces() {
  const domains = data.domains;
  places.push(newPlace(0, "the cluster", null, "", NOTHING));
  domains.name.forEach((name, index) => {
    const above = domains.parent[index] + 1;
    places.push(newPlace(index + 1, name, domains.tier[index], domains.tierName[index], above));
    places[above].children.push(index + 1);
  });
  data.nodes.domain.forEach((domain, node) => places[domain + 1].direct.push(node));
  const root = places[0];
  if (root.children.length && root.direct.length) { // nodes in no domain stand apart, behind all domains
    const outside = newPlace(places.length, "in no domain", null, "", 0);
    outside.direct = root.direct;
    root.direct = [];
    root.children.push(outside.index);
    places.push(outside);
  }
  arrange(root, 0);
  for (const place of places) {
    place.direct.forEach((node) => { placeOfNode[node] = place.index; });
  }
}

function newPlace(index, name, tier, tierName, parent) {
  const sums = { has: zeros(), held: [zeros(), zeros()], free: [zeros(), zeros()], closed: [zeros(), zeros()] };
  return { index, name, short: name, tier, tierName, parent, children: [], direct: [], depth: 0, start: 0, end: 0, below: 0, sums };
}

function zeros() {
  return new Array(resources.length).fill(0);
}

/** Give a place and all below it their positions, depths and sums. The tree is as deep as it has tiers. */
function arrange(place, start) {
  place.start = start;
  let next = start;
  for (const node of place.direct) {
    nodeOrder[next] = node;
    positionOf[node] = next;
    next += 1;
    addTo(place.sums.has, amounts[data.nodes.allocatable[node]]);
    for (const when of [BEFORE, AFTER]) {
      addTo(place.sums.held[when], amounts[held[when][node]]);
      const left = resources.map((_, resource) => Math.max(0, freeOfNode(node, resource, when)));
      addTo(closed.has(node) ? place.sums.closed[when] : place.sums.free[when], left);
    }
  }
  for (const index of place.children) {
    const child = places[index];
    child.depth = place.depth + 1;
    next = arrange(child, next);
    place.below = Math.max(place.below, child.below + 1);
    addTo(place.sums.has, child.sums.has);
    for (const what of ["held", "free", "closed"]) {
      [BEFORE, AFTER].forEach((when) => addTo(place.sums[what][when], child.sums[what][when]));
    }
  }
  place.end = next;
  return next;
}

function addTo(sums, more) {
  for (let index = 0; index < sums.length; index += 1) sums[index] += more[index];
}

/** The scarcest resource: the one of which the largest share is taken. */
function scarcest(has, taken) {
  let found = { resource: NOTHING, share: 0 };
  for (let index = 0; index < has.length; index += 1) {
    const share = has[index] > 0 ? taken[index] / has[index] : taken[index] > 0 ? Infinity : 0;
    if (share > found.share) found = { resource: index, share };
  }
  return found;
}

function fillOfNode(node, when) {
  return scarcest(amounts[data.nodes.allocatable[node]], amounts[held[when][node]]);
}

function fillOfPlace(place, when) {
  return scarcest(place.sums.has, place.sums.held[when]);
}

function freeOfNode(node, resource, when) {
  return amounts[data.nodes.allocatable[node]][resource] - amounts[held[when][node]][resource];
}

/** What is left below a place on nodes that take pods; of an over-full node nothing (as `placer topology show`). */
function freeOfPlace(place, resource, when) {
  return place.sums.free[when][resource];
}

/** Pods by node: `start[node]` to `start[node + 1]` of `pods` are those on the node. */
function podsByNode(column) {
  const start = new Int32Array(nodeCount + 1);
  for (const node of column) if (node !== NOTHING) start[node + 1] += 1;
  for (let node = 0; node < nodeCount; node += 1) start[node + 1] += start[node];
  const next = start.slice();
  const pods = new Int32Array(start[nodeCount]);
  column.forEach((node, pod) => {
    if (node !== NOTHING) {
      pods[next[node]] = pod;
      next[node] += 1;
    }
  });
  return { start, pods };
}

const podsOn = [podsByNode(data.pods.before), podsByNode(data.pods.after)];

function podsOfNode(node, when) {
  const { start, pods } = podsOn[when];
  return pods.subarray(start[node], start[node + 1]);
}

/** Pods of each group, in the order of the pods. */
const podsOfGroup = Array.from({ length: groupCount }, () => []);
data.pods.group.forEach((group, pod) => {
  if (group !== NOTHING) podsOfGroup[group].push(pod);
});

/** Whether a pod is somewhere else than before, or has gone, or has come. */
function hasChanged(pod) {
  return data.pods.before[pod] !== data.pods.after[pod];
}

const EVICTED = "evicted";
const MOVED = "moved";
const LOST = "lost";

/** Row of `data.disturbed.pods` of each pod that is evicted or moved, or ran on a node that is lost. */
const disturbedRow = new Map(data.disturbed.pods.pod.map((pod, row) => [pod, row]));

/** What happens to a pod that runs: evicted, moved or lost; undefined: nothing. */
function fateOf(pod) {
  return data.disturbed.pods.what[disturbedRow.get(pod)];
}

/** The mark that a pod has in the picture: before, all that leave a node; after, those that were moved to it. */
function markOf(pod, when) {
  const fate = fateOf(pod);
  if (fate === undefined) return null;
  if (when === AFTER) return fate === MOVED ? MOVED : null;
  return fate === MOVED ? MOVED : EVICTED;
}

/** Node to the worst that happens to a pod on it; nodes that nothing leaves are absent. */
const markOfNode = new Map();
for (const pod of disturbedRow.keys()) {
  const node = data.pods.before[pod];
  if (markOfNode.get(node) !== EVICTED) markOfNode.set(node, markOf(pod, BEFORE));
}

/** Whose colour a pod has: that of its gang, else of its application (behind the groups), else its own. */
function ownerOf(pod) {
  const group = data.pods.group[pod];
  const application = data.pods.application[pod];
  if (application === NOTHING || (group !== NOTHING && data.groups.kind[group] === "PodGroup")) return group;
  return groupCount + application;
}

function ownerName(owner) {
  if (owner === NOTHING) return "pods of no group";
  return owner < groupCount ? groupName(owner) : data.applications[owner - groupCount];
}

/** Pods of each group that have no node, before and after. */
const waitingPods = [BEFORE, AFTER].map(() => Array.from({ length: groupCount }, () => []));
data.pods.group.forEach((group, pod) => {
  if (group === NOTHING) return;
  const pending = data.pods.state[pod] === "p";
  if (pending) waitingPods[BEFORE][group].push(pod);
  if (data.pods.after[pod] === NOTHING && (pending || data.pods.before[pod] !== NOTHING)) waitingPods[AFTER][group].push(pod);
});

/** Groups of which pods wait: by priority, then the oldest first. */
const waitingGroups = [BEFORE, AFTER].map((when) => [...waitingPods[when].keys()]
  .filter((group) => waitingPods[when][group].length)
  .sort(byUrgency));

function byUrgency(one, other) {
  const { priority, created } = data.groups;
  return priority[other] - priority[one] || (created[one] ?? Infinity) - (created[other] ?? Infinity) || one - other;
}

/** Resources that the large numbers count: GPUs of any vendor, and where no node has one cpu. */
const measured = [(resource) => resource.gpu, (resource) => resource.name === "cpu"]
  .map((is) => resources.map((_, index) => index).filter((index) => is(resources[index]) && data.nodes.allocatable.some((vector) => amounts[vector][index] > 0)))
  .find((found) => found.length) || [];
const measuredName = measured.length && resources[measured[0]].gpu ? "GPUs" : "CPUs";

/** How much of what is measured pods ask for. */
function measuredOf(pods) {
  return pods.reduce((sum, pod) => sum + measured.reduce((total, resource) => total + amounts[data.pods.requests[pod]][resource], 0), 0);
}

function measuredText(amount) {
  return measured.length ? amountText(measured[0], amount) : "0";
}

/** What there is, is used, is free for a pod, is free and of no use, and is waited for. */
function numbersAt(when) {
  const lists = data.decided && when === AFTER ? data.stranded.after : data.stranded.before;
  const found = { all: 0, used: 0, free: 0, stranded: 0, waiting: 0, isCounted: lists !== null };
  for (const resource of measured) {
    const useless = new Set((lists || []).filter((each) => each.resource === resources[resource].name).flatMap((each) => each.nodes));
    for (let node = 0; node < nodeCount; node += 1) {
      const left = Math.max(0, freeOfNode(node, resource, when));
      found.all += amounts[data.nodes.allocatable[node]][resource];
      found.used += amounts[held[when][node]][resource];
      found[closed.has(node) || useless.has(node) ? "stranded" : "free"] += left;
    }
  }
  for (const group of waitingGroups[when]) found.waiting += measuredOf(waitingPods[when][group]);
  return found;
}

function groupName(group) {
  return `${data.groups.namespace[group]}/${data.groups.name[group]}`;
}

function podName(pod) {
  return `${data.pods.namespaces[data.pods.namespace[pod]]}/${data.pods.name[pod]}`;
}

/** What has become of a group, in a word or two. */
function stateOfGroup(group) {
  const { before, new: added, waiting, ready, evicted, moved } = data.groups;
  if (evicted[group]) return evicted[group] === before[group] ? "evicted" : "some evicted";
  if (moved[group] && !added[group] && !waiting[group]) return moved[group] === before[group] ? "moved" : "some moved";
  if (waiting[group] && !added[group]) return before[group] ? "some wait" : "waits";
  if (waiting[group]) return "some wait";
  if (added[group]) return ready[group] ? "placed" : "placed, not ready";
  return "runs";
}

// ----------------------------------------------------------------------------------------------------------- words

const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** A text as it may be shown: characters that are not seen, or that turn others round, by their number. */
function shown(text) {
  return String(text).replace(UNSEEN, (character) => `\\u{${character.charCodeAt(0).toString(16)}}`);
}

const DAY = 86400;
const HOUR = 3600;

/** How long ago something was when the cluster was looked at, as kubectl writes it; where that is not known the date. */
function ageText(created) {
  if (created === null) return "";
  if (data.moment === null) return dateText(created).slice(0, 11);
  const seconds = Math.max(0, data.moment - created);
  if (seconds >= 2 * DAY) return `${Math.floor(seconds / DAY)}d`;
  if (seconds >= 2 * HOUR) return `${Math.floor(seconds / HOUR)}h`;
  return seconds >= 120 ? `${Math.floor(seconds / 60)}m` : `${seconds}s`;
}

/** ``27 Nov 2026, 14:03 UTC``. */
function dateText(seconds) {
  const parts = new Date(seconds * 1000).toUTCString().split(" "); // Fri, 27 Nov 2026 14:03:00 GMT
  return `${Number(parts[1])} ${parts[2]} ${parts[3]}, ${parts[4].slice(0, 5)} UTC`;
}

/** Names without what all of them begin with, up to a mark between words: ``n03`` of ``rack-1-n03``. */
function shortNames(names) {
  if (names.length < 2) return names;
  let common = names[0].length;
  for (const name of names) {
    let same = 0;
    while (same < common && name[same] === names[0][same]) same += 1;
    common = same;
  }
  const from = Math.max(...["-", ".", "/", "_", ":"].map((mark) => names[0].lastIndexOf(mark, common - 1))) + 1;
  const short = names.map((name) => name.slice(common ? from : 0));
  const dot = short.every((name) => name.indexOf(".") > 0) ? short.map((name) => name.slice(0, name.indexOf("."))) : short;
  return new Set(dot).size === names.length ? dot : short;
}

function counted(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

function percent(share) {
  if (!Number.isFinite(share)) return "over";
  const rounded = Math.round(share * 100); // 99.9 % is not full, and 0.1 % is not empty
  if (rounded === 100 && share < 1) return "99 %";
  if (rounded === 0 && share > 0) return "1 %";
  return `${rounded} %`;
}

const BINARY = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/** An amount of a resource as people read it. */
function amountText(resource, amount) {
  const unit = resources[resource].unit;
  if (unit === "milli") return decimal(amount / 1000);
  if (unit !== "bytes") return amount.toLocaleString("en");
  let power = 0;
  let left = amount;
  while (Math.abs(left) >= 1024 && power < BINARY.length - 1) {
    left /= 1024;
    power += 1;
  }
  return `${decimal(left)}${BINARY[power] ? ` ${BINARY[power]}` : ""}`;
}

function decimal(number) {
  return number.toLocaleString("en", { maximumFractionDigits: Math.abs(number) < 100 ? 1 : 0 });
}

/** A short name of a resource: without the domain of its vendor. */
function resourceName(resource) {
  return resources[resource].name.replace(/^.*\//, "");
}

function requestText(vector) {
  const parts = [];
  amounts[vector].forEach((amount, resource) => {
    if (amount && resources[resource].name !== "pods") {
      parts.push(`${resourceName(resource)} ${amountText(resource, amount)}`);
    }
  });
  return parts.join(", ") || "nothing";
}

/** Resources of which some node has any, without the number of pods. */
const countedResources = resources.map((_, index) => index)
  .filter((index) => resources[index].name !== "pods" && amounts.length)
  .filter((index) => data.nodes.allocatable.some((vector) => amounts[vector][index] > 0));

makePlaces();

/** Node to its name beside the others of its domain. */
const shortNode = new Array(nodeCount);
for (const place of places) {
  shortNames(place.direct.map((node) => data.nodes.name[node])).forEach((name, index) => { shortNode[place.direct[index]] = name; });
  shortNames(place.children.map((index) => places[index].name)).forEach((name, index) => { places[place.children[index]].short = name; });
}
