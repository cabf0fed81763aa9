// Tables that are sorted by the buttons in their heads, filtered, and shown a page of rows at a time.

const PAGE_ROWS = 20;
const PRINTED_ROWS = 100;
const collator = new Intl.Collator("en", { numeric: true });
const tables = [];

/**
 * Make a table of `count` rows, which stand in `order` until they are sorted.
 *
 * A column has `label`, `value(row)`, by which it is sorted and where it is a text also searched, and if that is not
 * what is shown `cell(row)`; `numeric` puts it to the right, `wide` lets it take the room of sentences, `whole` keeps it in one line.
 */
class Table {
  constructor({ id, caption, count, columns, order = null }) {
    Object.assign(this, { id, count, columns, first: 0, rows: PAGE_ROWS, sortedBy: null, descending: false });
    this.body = make("tbody");
    this.status = make("span", { role: "status", class: "status" });
    this.heads = columns.map((column, index) => make(
      "th",
      { scope: "col", "aria-sort": "none", class: column.numeric ? "number" : null },
      make("button", { type: "button", onclick: () => this.sort(index) }, column.label),
    ));
    this.back = this.turner("Previous", -1);
    this.on = this.turner("Next", 1);
    this.input = make("input", { type: "search", id: `${id}-filter`, oninput: () => this.filter(this.input.value) });
    const label = make("label", { for: `${id}-filter` }, "Rows with ");
    this.captionId = `${id}-caption`;
    const table = make(
      "table",
      {},
      make("caption", { id: this.captionId }, caption),
      make("thead", {}, make("tr", {}, this.heads)),
      this.body,
    );
    const frame = { class: "frame", role: "region", tabindex: "0", "aria-labelledby": this.captionId };
    this.tools = make("div", { class: "tools" }, count > 8 ? [label, this.input] : null, this.status, this.back, this.on);
    this.element = make("div", { class: "table", id: `${id}-table` }, make("div", frame, table), this.tools);
    this.order = order || Array.from({ length: count }, (_, row) => row);
    this.all = this.order;
    tables.push(this);
    this.draw();
  }

  turner(word, step) {
    return make("button", { type: "button", onclick: () => this.turn(step) }, word);
  }

  turn(step) {
    this.first = Math.min(Math.max(0, this.first + step * this.rows), Math.max(0, this.order.length - 1));
    this.first -= this.first % this.rows;
    this.draw();
  }

  sort(index) {
    this.descending = this.sortedBy === index ? !this.descending : false;
    this.sortedBy = index;
    this.arrange();
    this.first = 0;
    this.draw();
  }

  filter(text) {
    const wanted = text.trim().toLowerCase();
    const found = (row) => this.columns.some((column) => {
      const value = column.value(row);
      return typeof value === "string" && value.toLowerCase().includes(wanted);
    });
    this.order = wanted ? this.all.filter(found) : this.all;
    this.arrange();
    this.first = 0;
    this.draw();
  }

  /** Put the rows in order; a row without a value stands last either way. */
  arrange() {
    if (this.sortedBy === null) return;
    const keys = new Map(this.order.map((row) => [row, this.columns[this.sortedBy].value(row)]));
    const turned = this.descending ? -1 : 1;
    this.order = [...this.order].sort((one, other) => {
      const [left, right] = [keys.get(one), keys.get(other)];
      const [without, too] = [left === null || left === "", right === null || right === ""];
      if (without || too) return without - too || one - other;
      const order = typeof left === "string" ? collator.compare(left, right) : left - right;
      return turned * order || one - other;
    });
  }

  /** What the rows say has changed. */
  refresh() {
    this.arrange();
    this.draw();
  }

  draw() {
    this.heads.forEach((head, index) => {
      const way = this.descending ? "descending" : "ascending";
      head.setAttribute("aria-sort", index === this.sortedBy ? way : "none");
    });
    const rows = this.order.slice(this.first, this.first + this.rows);
    clear(this.body, rows.map((row) => this.row(row)));
    const last = this.first + rows.length;
    const range = rows.length < this.order.length ? `${(this.first + 1).toLocaleString("en")} to ${last.toLocaleString("en")} of ` : "";
    const among = this.order.length < this.count ? ` (${this.count.toLocaleString("en")} in all)` : "";
    clear(this.status, `${range}${counted(this.order.length, "row")}${among}`);
    this.back.disabled = this.first === 0;
    this.on.disabled = last >= this.order.length;
    const several = this.order.length > this.rows;
    this.back.hidden = !several;
    this.on.hidden = !several;
  }

  row(row) {
    return make("tr", {}, this.columns.map((column, index) => {
      const content = column.cell ? column.cell(row) : column.value(row);
      const text = typeof content === "number" ? content.toLocaleString("en") : content;
      const classes = [column.numeric ? "number" : "", column.wide ? "wide" : "", column.whole ? "whole" : ""].join(" ").trim() || null;
      return index === 0 ? make("th", { scope: "row", class: classes }, text) : make("td", { class: classes }, text);
    }));
  }
}

/** Show more rows on paper than on a screen, where pages can be turned; and as many as before afterwards. */
function printTables(on) {
  for (const table of tables) {
    table.rows = on ? PRINTED_ROWS : PAGE_ROWS;
    table.first = on ? 0 : table.first;
    table.draw();
  }
}
