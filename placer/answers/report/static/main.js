// Puts the page together: search, the sections, what is redrawn for paper.

const FOUND = 12; // results that are listed of each kind

/** Everything that has a name, by kind. */
const kinds = [
  { kind: "group", title: "Groups", count: groupCount, name: groupName, index: (row) => row },
  { kind: "domain", title: "Domains", count: places.length - 1, name: (row) => places[row + 1].name, index: (row) => row + 1 },
  { kind: "node", title: "Nodes", count: nodeCount, name: (row) => data.nodes.name[row], index: (row) => row },
  { kind: "pod", title: "Pods", count: podCount, name: podName, index: (row) => row },
];

function searchBox() {
  const results = make("div", { id: "results", "aria-live": "polite" });
  const input = make("input", { id: "search", type: "search", autocomplete: "off", spellcheck: "false", placeholder: "group, domain, node or pod" });
  input.addEventListener("input", () => clear(results, resultsOf(input.value)));
  const form = make("form", { role: "search", onsubmit: (event) => { event.preventDefault(); results.querySelector("a")?.click(); } },
    make("label", { for: "search" }, "Where is "), input, results);
  return form;
}

function resultsOf(text) {
  const wanted = text.trim().toLowerCase();
  if (!wanted) return [];
  const lists = kinds.map((each) => ({ each, rows: matches(each, wanted) })).filter(({ rows }) => rows.length);
  if (!lists.length) return [make("p", {}, "Nothing has that in its name.")];
  return lists.map(({ each, rows }) => make(
    "div",
    {},
    make("h3", {}, `${each.title} (${rows.length.toLocaleString("en")})`),
    make("ul", {}, rows.slice(0, FOUND).map((row) => make("li", {}, result(each, row)))),
  ));
}

/** Rows whose names have the text in them, those first that are or begin with it. */
function matches({ count, name }, wanted) {
  const found = [[], [], []];
  for (let row = 0; row < count; row += 1) {
    const text = name(row).toLowerCase();
    const place = text.indexOf(wanted);
    if (place >= 0) {
      const isWhole = text === wanted || text.endsWith(`/${wanted}`);
      const begins = place === 0 || text[place - 1] === "/";
      found[isWhole ? 0 : begins ? 1 : 2].push(row);
    }
  }
  return found.flat();
}

/** A result: what it is called, and in a few words where it is. */
function result(each, row) {
  if (each.kind !== "pod") return [linkTo(each.kind, each.index(row), each.name(row)), " ", make("span", { class: "hint" }, hintOf(each.kind, each.index(row)))];
  const node = data.pods.after[row];
  const group = data.pods.group[row];
  const target = node !== NOTHING ? ["node", node] : group !== NOTHING ? ["group", group] : null;
  const fate = { [EVICTED]: ", evicted", [MOVED]: ", moved" }[fateOf(row)] || "";
  const where = (node === NOTHING ? "waits" : `on ${data.nodes.name[node]}`) + fate;
  return [target ? linkTo(...target, podName(row)) : nameOf(podName(row)), " ", make("span", { class: "hint" }, where)];
}

function hintOf(kind, index) {
  if (kind === "group") {
    const { domain, message } = data.groups;
    return [stateOfGroup(index), domain[index], message[index]].filter(Boolean).join("; ").slice(0, 120);
  }
  const { share } = kind === "node" ? fillOfNode(index, state.when) : fillOfPlace(places[index], state.when);
  return `${percent(share)} taken`;
}

// ------------------------------------------------------------------------------------------------------------ all of it

/** When and where the cluster was as shown, and which files say so. */
function sourceText() {
  const { instance: paths, placement, comparison } = data.files;
  const base = (path) => path.replace(/^.*\//, "");
  const instance = paths.map(base);
  const names = instance.length > 3 ? `${instance.slice(0, 3).join(", ")} and ${instance.length - 3} more` : instance.join(", ");
  const from = data.live ? "read from the cluster" : `from ${names}`;
  return [
    data.moment === null ? "date not known" : dateText(data.moment),
    from,
    placement ? `placement ${base(placement)}` : data.decided ? "" : "nothing decided yet",
    comparison ? `compared in ${base(comparison)}` : "",
  ].filter(Boolean).join(" · ");
}

/** Redraw for paper, which is light and has another width, and back. */
function wirePrint() {
  const folds = [...document.querySelectorAll("details")];
  const wereOpen = new Set();
  window.addEventListener("beforeprint", () => {
    printTables(true);
    for (const fold of folds) {
      if (fold.open) wereOpen.add(fold);
      fold.open = true;
    }
    ink = null;
    draw();
  });
  window.addEventListener("afterprint", () => {
    printTables(false);
    for (const fold of folds) fold.open = wereOpen.has(fold);
    ink = null;
    draw();
  });
  matchMedia("print").addEventListener("change", () => { ink = null; draw(); });
}

/** Load the page again every so often, unless the reader is at work in it. */
function wireReload() {
  if (!data.every) return;
  setInterval(() => {
    const busy = document.hidden || document.getElementById("search").value || document.activeElement?.tagName === "INPUT";
    if (!busy) location.reload();
  }, data.every * 1000);
}

function start() {
  clear(document.getElementById("cluster"), nameOf(data.cluster));
  clear(document.getElementById("files"), sourceText());
  document.title = `${shown(data.cluster)}: placer report`;
  document.querySelector("header").append(searchBox());
  const main = document.getElementById("main");
  clear(main, overviewSection(), pictureSection());
  document.body.append(tip);
  goHome();
  wirePicture();
  performance.mark("picture");
  requestAnimationFrame(() => setTimeout(rest, 0)); // what is below may wait until the picture is seen
}

function rest() {
  const made = [disturbedSection, groupsSection, comparisonSection, strandedSection, domainsSection, nodesSection, queuesSection, podsSection, violationsSection, findingsSection, valuesSection]
    .map((build) => build())
    .filter(Boolean);
  append(document.getElementById("main"), made);
  const links = made.map((each) => make("li", {}, make("a", { href: `#${each.id}` }, each.querySelector("h2").textContent)));
  const foot = document.getElementById("picture");
  foot.append(make("nav", { "aria-label": "Sections" }, make("ul", { class: "sections" }, make("li", { class: "hint" }, "Below:"), links)));
  document.body.append(make("footer", {}, `made by placer ${data.placer}`));
  wirePrint();
  wireReload();
  window.addEventListener("popstate", arrive);
  if (location.hash) arrive();
  performance.mark("tables");
}

start();
