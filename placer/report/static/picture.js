// The picture: the tier tree from the top down in bands, the nodes of each domain as tiles below it, and what waits.
// The higher the fill of a tile, the less is left of the node's scarcest resource. All of it stands in tables, too.

const BAND = 26;
const TALLEST = 300; // pixels of the part with the nodes
const LARGEST = 110; // of one node
const STRIP = 54; // of what waits
const COLOURS = 8;

const state = { when: data.decided ? AFTER : BEFORE, changes: false, byFill: false, root: 0, selected: null, cursor: null };

const canvas = make("canvas", {
  id: "canvas",
  tabindex: "0",
  role: "application",
  "aria-label": "Picture of the cluster. Arrow keys go along and up and down the tree, Enter opens a domain, Escape goes out. All of it stands in the tables below, too.",
});
const tip = make("div", { id: "tip", "aria-hidden": "true", hidden: true });
const spoken = make("p", { class: "spoken", role: "status" });
const trail = make("nav", { id: "trail", "aria-label": "Domains above the picture" });

/** Colours of owners go round in the order in which they lie in the picture, so that neighbours differ. */
const colourOf = new Int16Array(groupCount + data.applications.length).fill(NOTHING);
/** Groups of which pods wait, those first that wait for most. */
const waiting = [];

function makeColours() {
  let next = 0;
  const give = (owner) => {
    if (owner !== NOTHING && colourOf[owner] === NOTHING) {
      colourOf[owner] = next % (2 * COLOURS);
      next += 1;
    }
  };
  for (const node of nodeOrder) {
    for (const pod of podsOfNode(node, AFTER)) give(ownerOf(pod));
  }
  for (let group = 0; group < groupCount; group += 1) {
    if (podsOfGroup[group].length) give(ownerOf(podsOfGroup[group][0]));
    if (data.groups.waiting[group]) waiting.push(group);
  }
  waiting.sort((one, other) => data.groups.waiting[other] - data.groups.waiting[one]);
}

// ------------------------------------------------------------------------------------------------------- where what is

/** Measures of the picture as it is shown now. */
function layout() {
  const root = places[state.root];
  const width = canvas.clientWidth || 600;
  const top = BAND * (root.below + 1) + 3;
  const count = Math.max(1, root.end - root.start);
  const rows = Math.ceil(count / Math.max(1, Math.floor(width / LARGEST)));
  const nodes = Math.max(BAND * 2, Math.min(TALLEST, rows * LARGEST));
  const strip = waiting.length ? STRIP : 0;
  const shape = { root, width, top, nodes, strip, height: top + nodes + strip, scale: width / count };
  shape.labelled = count < 300 && everyTile(root, shape, (grid) => grid.width > 62 && grid.height > 34);
  return shape;
}

/** Whether something holds of the tiles of all nodes below a place: all have room for a name, or none shows one. */
function everyTile(place, shape, holds) {
  const own = !place.direct.length || holds(gridOf(place, shape));
  return own && place.children.every((index) => everyTile(places[index], shape, holds));
}

function spanOf(place, shape) {
  return { x: (place.start - shape.root.start) * shape.scale, width: (place.end - place.start) * shape.scale };
}

/** How the nodes directly in a place lie: a grid whose cells are as square as can be. */
function gridOf(place, shape) {
  const count = place.direct.length;
  const { x } = spanOf(place, shape);
  const width = count * shape.scale;
  const y = shape.top;
  const height = shape.nodes - 4;
  const columns = Math.min(count, Math.max(1, Math.round(Math.sqrt((count * width) / height))));
  const rows = Math.ceil(count / columns);
  return { x, y, columns, rows, width: width / columns, height: Math.min(height / rows, LARGEST) };
}

/** Rectangle of a node. */
function tileOf(node, shape) {
  const place = places[placeOfNode[node]];
  const grid = gridOf(place, shape);
  const index = positionOf[node] - place.start;
  const column = index % grid.columns;
  const row = Math.floor(index / grid.columns);
  return { x: grid.x + column * grid.width, y: grid.y + row * grid.height, width: grid.width, height: grid.height };
}

/** Rectangles of the groups that wait, as wide as they have pods that wait; those that come too late are left out. */
function waitingTiles(shape) {
  const total = waiting.reduce((sum, group) => sum + data.groups.waiting[group], 0);
  const room = shape.width - Math.min(shape.width / 2, waiting.length * 8);
  const y = shape.height - 30;
  const found = [];
  let x = 0;
  for (const group of waiting) {
    const width = 7 + (data.groups.waiting[group] / total) * room;
    if (x + 7 > shape.width) break;
    found.push({ group, x, y, width: Math.min(width, shape.width - x) - 1, height: 26 });
    x += width;
  }
  return found;
}

/** What lies at a point: a domain, a node, or a group that waits. */
function at(x, y) {
  const shape = layout();
  if (y >= shape.height - shape.strip) {
    const tile = waitingTiles(shape).find((each) => x >= each.x && x < each.x + each.width && y >= each.y);
    return tile ? { kind: "group", index: tile.group } : null;
  }
  const position = shape.root.start + Math.floor(x / shape.scale);
  if (x < 0 || position >= shape.root.end) return null;
  const path = pathOf(places[placeOfNode[nodeOrder[position]]], shape.root);
  const depth = Math.floor(y / BAND);
  if (y < shape.top - 3) return { kind: "domain", index: path[Math.min(depth, path.length - 1)].index };
  const place = path[path.length - 1];
  const grid = gridOf(place, shape);
  const column = Math.min(grid.columns - 1, Math.floor((x - grid.x) / grid.width));
  const row = Math.floor((y - grid.y) / grid.height);
  const index = row * grid.columns + column;
  return index >= 0 && index < place.direct.length ? { kind: "node", index: place.direct[index] } : null;
}

/** A place and those above it, from the one that is shown on top down. */
function pathOf(place, root) {
  const path = [place];
  while (path[0] !== root && path[0].parent !== NOTHING) path.unshift(places[path[0].parent]);
  return path;
}

// -------------------------------------------------------------------------------------------------------------- drawing

let ink = null;

/** The colours of the style sheet, as they are now. */
function readInk() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  ink = {
    text: get("--text"), back: get("--back"), band: get("--band"), full: get("--band-full"), free: get("--free"),
    other: get("--other"), bad: get("--bad"), moved: get("--warn"), focus: get("--focus"), font: style.fontFamily,
    gangs: Array.from({ length: COLOURS }, (_, index) => get(`--gang-${index}`)),
    fills: Array.from({ length: 6 }, (_, index) => get(`--fill-${index}`)),
  };
  ink.striped = ink.gangs.map(striped);
  ink.marks = {
    [EVICTED]: { plain: ink.bad, hatched: hatched(ink.bad, [[0, 0, 12, 12], [0, 12, 12, 0]]) },
    [MOVED]: { plain: ink.moved, hatched: hatched(ink.moved, [[0, 6, 12, 6]]) },
  };
}

/** Lines of a colour with an edge of the page's background, to be seen on whatever is below. */
function hatched(colour, lines) {
  const tile = make("canvas", { width: "12", height: "12" });
  const pen = tile.getContext("2d");
  for (const [style, width] of [[ink.back, 4], [colour, 2]]) {
    pen.strokeStyle = style;
    pen.lineWidth = width;
    for (const [x, y, toX, toY] of lines) {
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(toX, toY);
      pen.stroke();
    }
  }
  return pen.createPattern(tile, "repeat");
}

/** The second round of colours: the same with stripes of the page's background. */
function striped(colour) {
  const tile = make("canvas", { width: "6", height: "6" });
  const pen = tile.getContext("2d");
  pen.fillStyle = colour;
  pen.fillRect(0, 0, 6, 6);
  pen.strokeStyle = ink.back;
  pen.lineWidth = 1.4;
  for (const shift of [-6, 0, 6]) {
    pen.beginPath();
    pen.moveTo(shift, 6);
    pen.lineTo(shift + 6, 0);
    pen.stroke();
  }
  return pen.createPattern(tile, "repeat");
}

/** Colour of an owner; stripes only where there is room for them to be seen as such. */
function paintOf(owner, room) {
  if (owner === NOTHING) return ink.other;
  const colour = colourOf[owner];
  return colour < COLOURS || room < 10 ? ink.gangs[colour % COLOURS] : ink.striped[colour - COLOURS];
}

function draw() {
  if (ink === null) readInk();
  const shape = layout();
  const ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${shape.height}px`;
  canvas.width = Math.round(shape.width * ratio);
  canvas.height = Math.round(shape.height * ratio);
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.font = `13px ${ink.font}`;
  pen.textBaseline = "middle";
  drawPlace(pen, shape.root, shape);
  if (shape.strip) drawWaiting(pen, shape);
  for (const [each, dashes] of [[state.selected, []], [document.activeElement === canvas ? state.cursor : null, [4, 3]]]) {
    if (each && !(each.kind === "domain" && each.index === state.root && !dashes.length)) drawRing(pen, each, shape, dashes);
  }
}

function drawPlace(pen, place, shape) {
  const { x, width } = spanOf(place, shape);
  const y = (place.depth - shape.root.depth) * BAND;
  if (width >= 2) drawBand(pen, place, x, y, width, shape);
  drawNodes(pen, place, shape);
  for (const index of place.children) drawPlace(pen, places[index], shape);
}

/** A band with its fill from the left; that of a domain without domains goes down to its nodes. */
function drawBand(pen, place, x, y, width, shape) {
  const height = (place.children.length ? y + BAND : shape.top - 3) - y - 1;
  const gap = width > 6 ? 1 : 0;
  const { share } = fillOfPlace(place, state.when);
  pen.fillStyle = ink.band;
  pen.fillRect(x, y, width - gap, height);
  pen.fillStyle = ink.full;
  pen.fillRect(x, y, Math.min(1, share) * (width - gap), height);
  if (width > 34) write(pen, `${place.name}  ${percent(share)}`, x + 6, y + BAND / 2, width - 12);
}

/** Text as far as there is room for it. */
function write(pen, text, x, y, room) {
  let words = shown(text);
  if (pen.measureText(words).width > room) {
    const letters = Math.max(1, Math.floor((room / pen.measureText(words).width) * words.length) - 1);
    words = letters < 3 ? "" : `${words.slice(0, letters)}…`;
  }
  pen.fillStyle = ink.text;
  pen.fillText(words, x, y);
}

function drawNodes(pen, place, shape) {
  if (!place.direct.length) return;
  const grid = gridOf(place, shape);
  const least = Math.min(grid.width, grid.height);
  const gap = least > 16 ? 2 : least > 5 ? 1 : 0;
  place.direct.forEach((node, index) => {
    const x = grid.x + (index % grid.columns) * grid.width;
    const y = grid.y + Math.floor(index / grid.columns) * grid.height;
    drawTile(pen, node, { x, y, width: Math.max(grid.width - gap, 0.5), height: grid.height - gap }, shape.labelled);
  });
}

function drawTile(pen, node, tile, labelled) {
  const { share } = fillOfNode(node, state.when);
  pen.fillStyle = state.byFill ? ink.fills[fillClass(share)] : ink.free;
  pen.fillRect(tile.x, tile.y, tile.width, tile.height);
  if (!state.byFill) drawShares(pen, node, tile);
  if (markOfNode.has(node)) drawCorner(pen, ink.marks[markOfNode.get(node)].plain, tile);
  if (share > 1 || data.nodes.notes[node]) {
    pen.strokeStyle = ink.bad;
    pen.lineWidth = 1.5;
    if (tile.width > 5) pen.strokeRect(tile.x + 1, tile.y + 1, tile.width - 2, tile.height - 2);
  }
  if (labelled) label(pen, node, share, tile);
}

/** Name and fill of a node on a plate of the background, on which every colour leaves them readable. */
function label(pen, node, share, tile) {
  pen.fillStyle = ink.back;
  pen.fillRect(tile.x + 3, tile.y + 3, tile.width - 6, 19);
  write(pen, `${data.nodes.name[node]}  ${percent(share)}`, tile.x + 6, tile.y + 13, tile.width - 12);
}

/** A corner says that pods leave the node; of a tile without room for one, its upper edge. */
function drawCorner(pen, colour, tile) {
  const size = Math.min(14, tile.width / 2, tile.height / 2);
  pen.fillStyle = colour;
  if (size < 3) {
    pen.fillRect(tile.x, tile.y, tile.width, Math.min(3, tile.height));
    return;
  }
  pen.beginPath();
  pen.moveTo(tile.x + tile.width - size, tile.y + tile.height);
  pen.lineTo(tile.x + tile.width, tile.y + tile.height);
  pen.lineTo(tile.x + tile.width, tile.y + tile.height - size);
  pen.fill();
}

function drawShares(pen, node, tile) {
  const chosen = chosenOwner();
  let y = tile.y + tile.height;
  for (const [owner, { share, ...marked }] of sharesOfNode(node, state.when, state.changes)) {
    const height = Math.min(share * tile.height, y - tile.y);
    pen.globalAlpha = chosen === null || chosen === owner ? 1 : 0.18;
    pen.fillStyle = paintOf(owner, Math.min(tile.width, height));
    pen.fillRect(tile.x, y - height, tile.width, height);
    for (const [what, part] of Object.entries(marked).filter(([, part]) => part > 0)) {
      const most = (height * part) / share;
      pen.fillStyle = Math.min(tile.width, most) < 8 ? ink.marks[what].plain : ink.marks[what].hatched;
      pen.fillRect(tile.x, y - height, tile.width, most);
    }
    y -= height;
  }
  pen.globalAlpha = 1;
}

/** Whose colour stands out; null: nobody's. */
function chosenOwner() {
  const chosen = state.selected && state.selected.kind === "group" ? podsOfGroup[state.selected.index] : [];
  return chosen.length ? ownerOf(chosen[0]) : null;
}

/** 0 is empty, 5 is full. */
function fillClass(share) {
  if (share <= 0) return 0;
  return share >= 1 ? 5 : 1 + Math.min(3, Math.floor(share * 4));
}

function drawWaiting(pen, shape) {
  const pods = waiting.reduce((sum, group) => sum + data.groups.waiting[group], 0);
  const tiles = waitingTiles(shape);
  const left = waiting.length - tiles.length;
  const more = left ? `, ${left.toLocaleString("en")} of them only in the table` : "";
  write(pen, `Waiting: ${counted(pods, "pod")} of ${counted(waiting.length, "group")}${more}`, 0, shape.height - 42, shape.width);
  for (const tile of tiles) {
    pen.fillStyle = paintOf(podsOfGroup[tile.group].length ? ownerOf(podsOfGroup[tile.group][0]) : NOTHING, tile.width);
    pen.fillRect(tile.x, tile.y, tile.width, tile.height);
    if (tile.width > 48) {
      pen.fillStyle = ink.back;
      pen.fillRect(tile.x + 4, tile.y + 4, tile.width - 8, tile.height - 8);
      write(pen, data.groups.name[tile.group], tile.x + 8, tile.y + tile.height / 2, tile.width - 16);
    }
  }
}

/** A ring around what is chosen. */
function drawRing(pen, { kind, index }, shape, dashes) {
  const boxes = boxesOf(kind, index, shape);
  pen.strokeStyle = ink.focus;
  pen.lineWidth = 2.5;
  pen.setLineDash(dashes);
  for (const box of boxes) pen.strokeRect(box.x + 1, box.y + 1, Math.max(2, box.width - 2), Math.max(2, box.height - 2));
  pen.setLineDash([]);
}

function boxesOf(kind, index, shape) {
  if (kind === "node") return isShown(index, shape) ? [tileOf(index, shape)] : [];
  if (kind === "domain") {
    const place = places[index];
    if (place.start < shape.root.start || place.end > shape.root.end || place.depth < shape.root.depth) return [];
    return [{ ...spanOf(place, shape), y: (place.depth - shape.root.depth) * BAND, height: BAND }];
  }
  if (kind !== "group") return [];
  const column = state.when === AFTER ? data.pods.after : data.pods.before;
  const nodes = new Set(podsOfGroup[index].map((pod) => column[pod]));
  const tiles = [...nodes].filter((node) => node !== NOTHING && isShown(node, shape)).map((node) => tileOf(node, shape));
  return [...tiles, ...waitingTiles(shape).filter((tile) => tile.group === index)];
}

function isShown(node, shape) {
  return positionOf[node] >= shape.root.start && positionOf[node] < shape.root.end;
}

// ---------------------------------------------------------------------------------------------------- pointer and keys

/** Show a domain as wide as the picture. */
function zoom(index) {
  state.root = index;
  drawTrail();
  draw();
}

function drawTrail() {
  const path = pathOf(places[state.root], places[0]);
  clear(trail, path.flatMap((place, index) => {
    const last = index === path.length - 1;
    const attributes = { type: "button", class: "link", "aria-current": last ? "true" : null, onclick: () => zoom(place.index) };
    return [index ? " › " : "", make("button", attributes, nameOf(place.name))];
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
  const owners = [...sharesOfNode(index, state.when, false).keys()];
  const names = owners.slice(0, 5).map(ownerName);
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
  const lines = [groupName(group), `${stateOfGroup(group)}: ${counted(data.groups.waiting[group], "pod")} without a node`];
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
  if (found.kind === "domain") {
    const isRoot = found.index === state.root;
    zoom(isRoot ? Math.max(0, places[found.index].parent) : found.index);
  }
  select(found.kind, found.index, false);
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

makeColours();
