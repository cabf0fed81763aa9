// Elements of the page. Names get into it as text only, never as markup.

/** Make an element; of its attributes `on...` are listeners, and null or false leaves one out. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== null && value !== false) element.setAttribute(name, value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== "") {
      element.append(child instanceof Node ? child : document.createTextNode(shown(child)));
    }
  }
}

function clear(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** A name of the instance: whichever way its letters run, what stands around it stays where it is. */
function nameOf(text) {
  return make("bdi", { class: "name" }, text);
}

/** A name that leads to the details of the thing, by an address that can be copied. */
function linkTo(kind, index, text) {
  return make("a", { class: "link", href: addressOf(kind, index), onclick: (event) => follow(event, kind, index) }, nameOf(text));
}

/** A text with what stands between back-ticks in it as code. */
function prose(text) {
  return text.split("`").map((part, index) => (index % 2 ? make("code", {}, part) : part));
}

/** A bar of a share between 0 and 1; what it says stands beside it as text. */
function bar(share, bound, kind = "") {
  const full = make("span", { class: `full ${share > 1 && !kind ? "over" : kind}`.trim() });
  full.style.width = `${Math.min(1, Math.max(0, share)) * 100}%`;
  const track = make("span", { class: "bar", "aria-hidden": "true" }, full);
  if (bound !== undefined && bound !== null) {
    const line = make("span", { class: "bound" });
    line.style.left = `${Math.min(1, Math.max(0, bound)) * 100}%`;
    track.append(line);
  }
  return track;
}

function section(id, title, ...children) {
  const heading = make("h2", { id: `${id}-title` }, title);
  return make("section", { id, "aria-labelledby": `${id}-title` }, heading, ...children);
}
