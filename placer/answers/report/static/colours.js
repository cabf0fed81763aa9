// The meaning of the colours of pods: new or not, priority, queue, namespace, group. The reader chooses.

const COLOURS = 8;
const STEPS = 5;
const MANY = 64; // nodes up to which an opened domain shows groups by itself

/** What colours mean by default: fates in the whole, groups in an opened domain. */
const BY_FATE = "fate";
const BY_GROUP = "group";
const BY_FILL = "fill";
/** Modes in which groups that wait have a colour of their own. */
const WITHOUT_VALUES = [BY_FATE, BY_GROUP, BY_FILL];

/** Owner to its colour in the place that is open: they go round in the order in which owners lie there. */
const colourOf = new Map();
let coloured = "";

function makeColours() {
  const wanted = `${state.root} ${state.when}`;
  if (wanted === coloured) return;
  coloured = wanted;
  colourOf.clear();
  const { start, end } = places[state.root];
  for (let position = start; position < end; position += 1) {
    for (const pod of podsOfNode(nodeOrder[position], state.when)) {
      const owner = ownerOf(pod);
      if (owner !== NOTHING && !colourOf.has(owner)) colourOf.set(owner, colourOf.size % (2 * COLOURS));
    }
  }
}

/** Values of pods in the order of how many have them, and colours of the first of them. */
function ranked(valueOf) {
  const counts = new Map();
  for (let pod = 0; pod < podCount; pod += 1) {
    const value = valueOf(pod);
    if (value !== null) counts.set(value, (counts.get(value) || 0) + 1);
  }
  const order = [...counts.keys()].sort((one, other) => counts.get(other) - counts.get(one));
  return new Map(order.map((value, place) => [value, place]));
}

function ofGroup(column) {
  return (pod) => (data.pods.group[pod] === NOTHING ? null : data.groups[column][data.pods.group[pod]]);
}

/** A mode by names: the most frequent ones have colours of their own. */
function byName(id, label, valueOf, nameOfValue) {
  const places = ranked(valueOf);
  const shownOnes = [...places.keys()].slice(0, COLOURS);
  const withoutOne = data.pods.name.some((_, pod) => valueOf(pod) === null);
  return {
    id,
    label,
    isThere: places.size + Number(withoutOne) > 1,
    keyOf: (pod) => {
      const place = places.get(valueOf(pod));
      return place === undefined || place >= COLOURS ? NOTHING : place;
    },
    paint: (key) => (key === NOTHING ? ink.other : ink.gangs[key]),
    keys: () => [
      ...shownOnes.map((value, place) => [`gang-${place}`, nameOfValue(value)]),
      ...(places.size > COLOURS ? [["other", `${places.size - COLOURS} others${withoutOne ? ", or none" : ""}`]] : withoutOne ? [["other", "none"]] : []),
    ],
  };
}

/** A mode by numbers: the higher, the darker. */
function byPriority() {
  const levels = [...new Set(data.groups.priority || [])].sort((one, other) => one - other);
  const stepOf = (value) => (levels.length < 2 ? STEPS - 1 : Math.round((levels.indexOf(value) / (levels.length - 1)) * (STEPS - 1)));
  const valueOf = ofGroup("priority");
  const ends = new Map();
  for (const level of levels) ends.set(stepOf(level), [...(ends.get(stepOf(level)) || []), level]);
  const words = (found) => (found.length > 1 ? `${found[0].toLocaleString("en")} to ${found.at(-1).toLocaleString("en")}` : found[0].toLocaleString("en"));
  return {
    id: "priority",
    label: "Priority",
    isThere: levels.length > 1,
    keyOf: (pod) => (valueOf(pod) === null ? NOTHING : stepOf(valueOf(pod))),
    paint: (key) => (key === NOTHING ? ink.other : ink.steps[key]),
    keys: () => [...[...ends.entries()].reverse().map(([step, found]) => [`step-${step}`, words(found)]), ["other", "in no group"]],
  };
}

const modes = [
  {
    id: BY_FATE,
    label: data.decided ? "New and old" : "Used and free",
    isThere: true,
    keyOf: (pod) => Number(state.when === AFTER && hasChanged(pod) && fateOf(pod) !== MOVED),
    paint: (key) => (key ? ink.fresh : ink.ran),
    keys: () => [["ran", data.decided ? "ran before" : "used"], ...(data.decided ? [["new", "new"]] : [])],
  },
  byPriority(),
  byName("queue", "Queue", ofGroup("queue"), (name) => name),
  byName("namespace", "Namespace", (pod) => data.pods.namespace[pod], (index) => data.pods.namespaces[index]),
  {
    id: BY_GROUP,
    label: "Group",
    isThere: groupCount > 1,
    keyOf: ownerOf,
    paint: (owner, room) => paintOf(owner, room),
    keys: () => [["gangs", `a colour for each ${data.applications.length ? "gang or application" : "group"}, again after ${2 * COLOURS}`], ["other", "in no group"]],
  },
  { id: BY_FILL, label: "How full", isThere: true, keyOf: () => 0, paint: () => ink.other, keys: () => fillKeys() },
].filter((mode) => mode.isThere);

function fillKeys() {
  return ["empty", "less than 25 %", "25 %", "50 %", "75 %", "full"].map((text, index) => [`fill-${index}`, text]);
}

/** Whether groups have colours here: in all of a large cluster they would mean nothing. */
function showsGroups() {
  return state.root !== 0 || places.length === 1;
}

/** The mode that holds: as chosen, else groups in an opened domain and fates elsewhere. */
function modeNow() {
  const root = places[state.root];
  const byItself = state.root !== 0 && root.end - root.start <= MANY ? BY_GROUP : BY_FATE;
  const wanted = state.mode === null ? byItself : state.mode;
  const id = wanted === BY_GROUP && !showsGroups() ? BY_FATE : wanted;
  return modes.find((mode) => mode.id === id) || modes[0];
}

/** Each colour's part of a node's scarcest resource, and how much of it is evicted or moved, faded ones apart. */
function sharesOfNode(node, when) {
  const has = amounts[data.nodes.allocatable[node]];
  const { resource } = fillOfNode(node, when);
  const found = new Map();
  if (resource === NOTHING) return found;
  const mode = modeNow();
  const chosen = chosenOwner();
  for (const pod of podsOfNode(node, when)) {
    const key = mode.keyOf(pod);
    const faded = (state.changes && !hasChanged(pod)) || (chosen !== null && ownerOf(pod) !== chosen);
    const place = `${faded ? "-" : "+"}${key}`;
    if (!found.has(place)) found.set(place, { key, faded, share: 0, [EVICTED]: 0, [MOVED]: 0 });
    const shares = found.get(place);
    const share = amounts[data.pods.requests[pod]][resource] / Math.max(has[resource], 1);
    shares.share += share;
    const mark = markOf(pod, when);
    if (mark !== null) shares[mark] += share;
  }
  return found;
}

/** Whose colour stands out; null: nobody's, as where what is chosen has no pod on any node. */
function chosenOwner() {
  const chosen = state.selected && state.selected.kind === "group" ? podsOfGroup[state.selected.index] : [];
  const column = state.when === AFTER ? data.pods.after : data.pods.before;
  return chosen.some((pod) => column[pod] !== NOTHING) ? ownerOf(chosen[0]) : null;
}

/** Names of those that have pods on a node. */
function ownersOn(node, when) {
  return [...new Set(Array.from(podsOfNode(node, when), ownerOf))].map(ownerName);
}
