// Addresses of groups, domains and nodes: what follows # leads to one, so a link to it can be sent, and Back goes back.

const NAMES = {
  group: { count: groupCount, name: groupName },
  domain: { count: places.length, name: (index) => (index ? places[index].name : "") },
  node: { count: nodeCount, name: (node) => data.nodes.name[node] },
};

/** Kind to name to the first thing of that name. */
const indexes = new Map();

function indexOf(kind, name) {
  if (!indexes.has(kind)) {
    const found = new Map();
    for (let index = NAMES[kind].count - 1; index >= 0; index -= 1) found.set(NAMES[kind].name(index), index);
    indexes.set(kind, found);
  }
  return indexes.get(kind).get(name);
}

/** ``#group=ml/train``; of one whose name another has, too, or that no address can have: ``#group:3``. */
function addressOf(kind, index) {
  const name = NAMES[kind].name(index);
  const isFirst = indexOf(kind, name) === index && name !== "" && !/[\ud800-\udfff]/.test(name);
  return isFirst ? `#${kind}=${encodeURIComponent(name).replaceAll("%2F", "/")}` : `#${kind}:${index}`;
}

/** What an address leads to; null: to nothing that has a name. */
function thingAt(address) {
  const found = /^#(group|domain|node)([=:])(.*)$/.exec(address);
  if (!found) return null;
  const [, kind, how, rest] = found;
  let index;
  try {
    index = how === "=" ? indexOf(kind, decodeURIComponent(rest)) : Number(rest);
  } catch {
    return null;
  }
  return Number.isInteger(index) && index >= 0 && index < NAMES[kind].count ? { kind, index } : null;
}

/** Note where the reader is. */
function note(address) {
  if (location.hash !== address) history.pushState(null, "", address);
}

/** Go where a link leads; with a key held down, the browser does what it does with links. */
function follow(event, kind, index) {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  note(addressOf(kind, index));
  select(kind, index, true);
}

/** Show what the address of the page says. */
function arrive() {
  const thing = thingAt(location.hash);
  if (thing) select(thing.kind, thing.index, true);
  else if (["", HOME].includes(location.hash)) goHome();
}

const HOME = "#waiting";
