// The picture: the tier tree from the top down in bands, the nodes of each domain as tiles below it, and what waits.
// The higher the fill of a tile, the less is left of the node's scarcest resource. All of it stands in tables, too.

const BAND = 26;
const TALLEST = 300; // pixels of the part with the nodes
const LARGEST = 110; // of one node
const STRIP = 54; // of what waits
const APART = 3; // between the nodes of two domains
const FADED = 0.22;

/** ``mode`` is what the reader has chosen that colours mean; null: nothing. */
const state = { when: data.decided ? AFTER : BEFORE, changes: false, mode: null, root: 0, selected: null, cursor: null };

const canvas = make("canvas", {
  id: "canvas",
  tabindex: "0",
  role: "application",
  "aria-label": "Picture of the cluster. Arrow keys go along and up and down the tree, Enter opens a domain, Escape goes out. All of it stands in the tables below, too.",
});
const tip = make("div", { id: "tip", "aria-hidden": "true", hidden: true });
const spoken = make("p", { class: "spoken", role: "status" });
const trail = make("nav", { id: "trail", "aria-label": "Domains above the picture" });

// ------------------------------------------------------------------------------------------------------- where what is

/** Measures of the picture as it is shown now. */
function layout() {
  const root = places[state.root];
  const width = canvas.clientWidth || 600;
  const top = BAND * (root.below + 1) + 3;
  const count = Math.max(1, root.end - root.start);
  const rows = Math.ceil(count / Math.max(1, Math.floor(width / LARGEST)));
  const nodes = Math.max(BAND * 2, Math.min(TALLEST, rows * LARGEST));
  const strip = waitingGroups[state.when].length ? STRIP : 0;
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
  const width = count * shape.scale - (shape.scale > 4 ? APART : 0);
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
  const groups = waitingGroups[state.when];
  const pods = waitingPods[state.when];
  const total = groups.reduce((sum, group) => sum + pods[group].length, 0);
  const room = shape.width - Math.min(shape.width / 2, groups.length * 8);
  const y = shape.height - 30;
  const found = [];
  let x = 0;
  for (const group of groups) {
    const width = 7 + (pods[group].length / total) * room;
    if (x + 7 > shape.width) break;
    found.push({ group, x, y, width: Math.min(width, shape.width - x) - 2, height: 26 });
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
    text: get("--text"), back: get("--back"), band: get("--band"), full: get("--band-full"), free: get("--free"), line: get("--line"),
    other: get("--other"), ran: get("--ran"), fresh: get("--new"), waits: get("--waits"), bad: get("--bad"), moved: get("--warn"), focus: get("--focus"),
    font: style.fontFamily,
    gangs: Array.from({ length: COLOURS }, (_, index) => get(`--gang-${index}`)),
    steps: Array.from({ length: STEPS }, (_, index) => get(`--step-${index}`)),
  };
  ink.fills = [ink.free, ...ink.steps];
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
  const colour = colourOf.get(owner);
  if (colour === undefined) return ink.other;
  return colour < COLOURS || room < 10 ? ink.gangs[colour % COLOURS] : ink.striped[colour - COLOURS];
}

function draw() {
  if (ink === null) readInk();
  if (modeNow().id === BY_GROUP) makeColours();
  drawLegend();
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
  const height = (place.children.length ? y + BAND : shape.top - 3) - y - 2;
  const gap = width > 6 ? 2 : 0;
  const { share } = fillOfPlace(place, state.when);
  pen.fillStyle = ink.band;
  pen.fillRect(x, y, width - gap, height);
  pen.fillStyle = ink.full;
  pen.fillRect(x, y, Math.min(1, share) * (width - gap), height);
  if (width <= 24) return;
  const fits = (text) => pen.measureText(shown(text)).width <= width - 12;
  const texts = [`${place.name}  ${percent(share)}`, `${place.short}  ${percent(share)}`, place.short];
  write(pen, texts.find(fits) || place.short, x + 6, y + BAND / 2 - 1, width - 10);
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
  if (modeNow().id === BY_FILL) drawFill(pen, node, share, tile);
  else {
    pen.fillStyle = ink.free;
    pen.fillRect(tile.x, tile.y, tile.width, tile.height);
    drawShares(pen, node, tile);
  }
  if (markOfNode.has(node)) drawCorner(pen, ink.marks[markOfNode.get(node)].plain, tile);
  if (share > 1 || closed.has(node)) {
    pen.strokeStyle = ink.bad;
    pen.lineWidth = 1.5;
    if (tile.width > 5) pen.strokeRect(tile.x + 1, tile.y + 1, tile.width - 2, tile.height - 2);
  }
  if (labelled) label(pen, node, share, tile);
}

/** How full a node is, as a colour; where changes are shown, those stand out that differ from before. */
function drawFill(pen, node, share, tile) {
  const same = state.changes && data.nodes.before[node] === data.nodes.after[node];
  pen.globalAlpha = same ? FADED : 1;
  pen.fillStyle = ink.fills[fillClass(share)];
  pen.fillRect(tile.x, tile.y, tile.width, tile.height);
  pen.globalAlpha = 1;
}

/** Name and fill of a node: readable on every colour of the palette, and on stripes by a plate below them. */
function label(pen, node, share, tile) {
  const room = tile.width - 10;
  const striped = podsOfNode(node, state.when).some((pod) => markOf(pod, state.when) !== null);
  const long = `${shortNode[node]}  ${percent(share)}`;
  const text = !striped && pen.measureText(shown(long)).width <= room ? long : shortNode[node];
  if (striped) {
    pen.fillStyle = ink.back;
    pen.fillRect(tile.x + 2, tile.y + 3, Math.min(room, pen.measureText(shown(text)).width) + 6, 18);
  }
  write(pen, text, tile.x + 5, tile.y + 12, room);
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
  const mode = modeNow();
  let y = tile.y + tile.height;
  for (const { key, faded, share, ...marked } of sharesOfNode(node, state.when).values()) {
    const height = Math.min(share * tile.height, y - tile.y);
    pen.globalAlpha = faded ? FADED : 1;
    pen.fillStyle = mode.paint(key, Math.min(tile.width, height));
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

/** 0 is empty, 5 is full. */
function fillClass(share) {
  if (share <= 0) return 0;
  return share >= 1 ? 5 : 1 + Math.min(3, Math.floor(share * 4));
}

function drawWaiting(pen, shape) {
  const groups = waitingGroups[state.when];
  const pods = groups.reduce((sum, group) => sum + waitingPods[state.when][group].length, 0);
  const tiles = waitingTiles(shape);
  const left = groups.length - tiles.length;
  const more = left ? `, ${left.toLocaleString("en")} of them only in the table` : "";
  write(pen, `Waiting: ${counted(pods, "pod")} of ${counted(groups.length, "group")}${more}`, 0, shape.height - 42, shape.width);
  const mode = modeNow();
  const names = shortNames(groups.map((group) => data.groups.name[group]));
  tiles.forEach((tile, index) => {
    pen.fillStyle = WITHOUT_VALUES.includes(mode.id) ? ink.waits : mode.paint(mode.keyOf(podsOfGroup[tile.group][0]), tile.width);
    pen.fillRect(tile.x, tile.y, Math.max(1, tile.width), tile.height);
    if (tile.width > 30) write(pen, names[index], tile.x + 6, tile.y + tile.height / 2, tile.width - 10);
  });
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
