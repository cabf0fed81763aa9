// What the picture answers: to a pointer, and to keys.

/** Show a domain as wide as the picture. */
function zoom(index) {
  state.root = index;
  drawTrail();
  refreshModes();
  draw();
}

function drawTrail() {
  const path = pathOf(places[state.root], places[0]);
  clear(trail, path.flatMap((place, index) => {
    const last = index === path.length - 1;
    const attributes = { class: "link", "aria-current": last ? "true" : null, href: addressOf("domain", place.index), onclick: (event) => follow(event, "domain", place.index) };
    return [index ? " › " : "", make("a", attributes, nameOf(place.name))];
  }));
}

/** What is said of a thing when it is pointed at: a line each. */
function brief({ kind, index }) {
  if (kind === "group") return briefOfGroup(index);
  const isNode = kind === "node";
  const place = places[index];
  const { resource, share } = isNode ? fillOfNode(index, state.when) : fillOfPlace(place, state.when);
  const free = countedResources
    .map((each) => [each, isNode ? freeOfNode(index, each, state.when) : freeOfPlace(place, each, state.when)])
    .map(([each, amount]) => `${resourceName(each)} ${amountText(each, amount)}`);
  const lines = [
    isNode ? data.nodes.name[index] : `${place.name}${tierText(place)}: ${counted(place.end - place.start, "node")}`,
    resource === NOTHING ? "empty" : `${percent(share)} of ${resourceName(resource)} is taken`,
    `free: ${free.join(", ")}`,
  ];
  if (!isNode) return lines;
  const owners = ownersOn(index, state.when);
  const names = owners.slice(0, 5);
  if (owners.length > 5) names.push(`${owners.length - 5} more`);
  if (names.length) lines.push(names.join(", "));
  if (data.nodes.notes[index]) lines.push(data.nodes.notes[index]);
  lines.push(...leavingText(index));
  return lines;
}

/** How many pods leave a node, a line for each way. */
function leavingText(node) {
  const counts = { [EVICTED]: 0, [MOVED]: 0, [LOST]: 0 };
  for (const pod of podsOfNode(node, BEFORE)) if (fateOf(pod)) counts[fateOf(pod)] += 1;
  const words = { [EVICTED]: "evicted", [MOVED]: "moved away", [LOST]: "lost with the node" };
  return Object.entries(counts).filter(([, count]) => count).map(([what, count]) => `${counted(count, "pod")} ${words[what]}`);
}

function briefOfGroup(group) {
  const lines = [groupName(group), `${stateOfGroup(group)}: ${counted(waitingPods[state.when][group].length, "pod")} without a node`];
  if (data.groups.code[group]) lines.push(`${data.groups.code[group]}: ${data.groups.message[group]}`);
  return lines;
}

function tierText(place) {
  const names = [place.tier === null ? "" : `tier ${place.tier}`, place.tierName].filter(Boolean);
  return names.length ? ` (${names.join(", ")})` : "";
}

function hover(event) {
  const box = canvas.getBoundingClientRect();
  const found = at(event.clientX - box.left, event.clientY - box.top);
  tip.hidden = found === null;
  canvas.classList.toggle("on", found !== null);
  if (found === null) return;
  clear(tip, brief(found).map((line, index) => make(index ? "div" : "strong", {}, line)));
  const left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
  const below = event.clientY + 18 + tip.offsetHeight < window.innerHeight;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${below ? event.clientY + 18 : event.clientY - tip.offsetHeight - 12}px`;
}

function click(event) {
  const box = canvas.getBoundingClientRect();
  const found = at(event.clientX - box.left, event.clientY - box.top);
  if (found) open(found);
}

/** Choose a thing; a domain is opened, and that on top of the picture is left. */
function open(found) {
  let { index } = found;
  if (found.kind === "domain") {
    if (index === state.root) index = Math.max(0, places[index].parent);
    zoom(index);
  }
  note(addressOf(found.kind, index));
  select(found.kind, index, false);
}

/** The cursor goes along: to the next of its kind in the same place, up to what holds it, or down to the first in it. */
function moved(cursor, key) {
  const place = cursor.kind === "node" ? places[placeOfNode[cursor.index]] : places[cursor.index];
  const inside = cursor.kind === "domain" ? contentsOf(place) : [];
  if (key === "ArrowDown") return inside[0] || cursor;
  const above = cursor.kind === "node" ? place : places[place.parent];
  if (cursor.kind === "domain" && (place.index === state.root || !above)) return cursor;
  if (key === "ArrowUp") return { kind: "domain", index: above.index };
  const beside = contentsOf(above);
  const index = beside.findIndex((each) => each.kind === cursor.kind && each.index === cursor.index);
  return beside[index + (key === "ArrowRight" ? 1 : -1)] || cursor;
}

function contentsOf(place) {
  const nodes = place.direct.map((index) => ({ kind: "node", index }));
  return [...nodes, ...place.children.map((index) => ({ kind: "domain", index }))];
}

function press(event) {
  state.cursor ||= { kind: "domain", index: state.root };
  if (["ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"].includes(event.key)) state.cursor = moved(state.cursor, event.key);
  else if (event.key === "Enter" || event.key === " ") open(state.cursor);
  else if (event.key === "Escape") {
    zoom(Math.max(0, places[state.root].parent));
    state.cursor = { kind: "domain", index: state.root };
  } else return;
  event.preventDefault();
  clear(spoken, brief(state.cursor).join("; "));
  draw();
}

function wirePicture() {
  canvas.addEventListener("mousemove", hover);
  canvas.addEventListener("mouseleave", () => { tip.hidden = true; });
  canvas.addEventListener("click", click);
  canvas.addEventListener("keydown", press);
  canvas.addEventListener("focus", draw);
  canvas.addEventListener("blur", draw);
  new ResizeObserver(() => draw()).observe(canvas.parentElement);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { ink = null; draw(); });
}
