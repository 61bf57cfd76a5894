// A pane: one graph, zoomed, moved, folded.
//
// Drawing is bounded by what can be seen: boxes are elements only while they are near the visible part, and below the
// scale FAR all boxes of a sort are one path. So a graph of 5,000 nodes moves as fast as one of 50.
const otherOf = (pane) => panes[1 - panes.indexOf(pane)];

class Pane {
  constructor(root, first) {
    this.root = root;
    this.view = { x: 0, y: 0, scale: 1 };
    this.live = new Map();
    this.choice = el("select", {
      "aria-label": "state of the graph",
      onchange: () => this.show(Number(this.choice.value)),
    });
    graphs.forEach((graph, i) => this.choice.append(el("option", { value: i }, graph.title)));
    const button = (text, label, action) =>
      el("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
    root.append(
      el(
        "div",
        { class: "bar" },
        button("‹", "the state before", () => this.step(-1)),
        this.choice,
        button("›", "the next state", () => this.step(1)),
        button("−", "zoom out", () => this.zoom(1 / 1.4)),
        button("+", "zoom in", () => this.zoom(1.4)),
        button("fit", "show all of it", () => this.fit()),
        button("unfold", "unfold all blocks and groups", () => this.foldAll(true)),
        button("fold", "fold all blocks and groups", () => this.foldAll(false)),
        (this.said = el("span", { class: "said" })),
      ),
      (this.svg = svg("svg", { class: "canvas", tabindex: 0, role: "group" })),
    );
    this.world = this.svg.appendChild(svg("g"));
    this.far = this.world.appendChild(svg("g", { class: "far" }));
    this.lines = this.world.appendChild(svg("g", { class: "lines" }));
    this.near = this.world.appendChild(svg("g"));
    this.marks = this.world.appendChild(svg("g", { class: "marks" }));
    this.listen();
    this.index = first;
  }

  step(by) {
    const next = this.index + by;
    if (next >= 0 && next < graphs.length) this.show(next);
  }

  show(index) {
    this.index = index;
    this.choice.value = index;
    this.graph = graphs[index];
    this.svg.setAttribute("aria-label", `the graph ${this.graph.title}; arrow keys move along values, Enter folds`);
    this.replace();
    this.home();
    panes.forEach((pane) => pane.compare());
    hits.hidden = true;
    select(null);
  }

  replace() {
    const placed = place(this.graph, 0, { boxes: MOST_BOXES });
    [this.boxes, this.edges, this.size] = [[], [], placed.size];
    flatten(this.graph, placed, 0, 0, this.boxes, this.edges);
    this.boxOf = new Map();
    for (const box of this.boxes)
      if (box.sort !== "capture" || !this.boxOf.has(`${box.kind} ${box.number}`))
        this.boxOf.set(`${box.kind} ${box.number}`, box);
    for (const element of this.live.values()) element.remove();
    this.live.clear();
    this.drawn = null;
    this.drawFar();
    this.refresh();
  }

  drawFar() {
    const sorts = new Map();
    for (const { sort, x, y, w, h } of this.boxes) push(sorts, sort, `M${x} ${y}h${w}v${h}h${-w}z`);
    this.far.replaceChildren(
      svg("path", { class: "line", d: this.edges.map(({ path }) => path).join("") }),
      ...[...sorts].map(([sort, paths]) => svg("path", { class: `fill ${sort}`, d: paths.join("") })),
    );
  }

  // Mark what the other pane's graph does not have.
  compare() {
    const other = otherOf(this);
    if (!this.graph || !other.graph) return;
    const isNew = (box) => box.kind === "node" && !other.graph.signatures.has(this.graph.nodes[box.number].signature);
    for (const box of this.boxes) box.differs = this.index !== other.index && isNew(box);
    const count = this.graph.nodes.filter(
      (node) => !node.constant && !other.graph.signatures.has(node.signature),
    ).length;
    const total = this.graph.nodes.filter((node) => !node.constant).length;
    this.said.textContent = `${total} nodes, ${count} not in the other`;
    for (const [box, element] of this.live) if (box.lines) element.classList.toggle("differs", !!box.differs);
  }

  // -- what is visible

  refresh() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  seen(margin) {
    const { x, y, scale } = this.view,
      { clientWidth: w, clientHeight: h } = this.svg;
    return {
      x: -x / scale - (margin * w) / scale,
      y: -y / scale - (margin * h) / scale,
      w: ((1 + 2 * margin) * w) / scale,
      h: ((1 + 2 * margin) * h) / scale,
    };
  }

  draw(all = false) {
    const { x, y, scale } = this.view;
    this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
    const isFar = !all && scale < FAR;
    this.svg.classList.toggle("is-far", isFar);
    const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.x + a.w <= b.x + b.w && a.y + a.h <= b.y + b.h;
    if (isFar || (!all && this.drawn && this.drawn.scale / scale < 1.6 && inside(this.seen(0), this.drawn))) return;
    this.drawn = { ...this.seen(0.3), scale };
    const meets = (a, b = this.drawn) =>
      all || (a.x <= b.x + b.w && a.x + a.w >= b.x && a.y <= b.y + b.h && a.y + a.h >= b.y);
    for (const [item, element] of this.live) {
      if (!meets(item)) {
        element.remove();
        this.live.delete(item);
      }
    }
    const lines = this.edges.filter((edge) => meets(edge) && !this.live.has(edge));
    this.lines.append(...lines.map((edge) => this.keep(edge, this.lineElement(edge))));
    // Boxes that hold others come first, so that they are painted below these.
    const boxes = this.boxes.filter((box) => meets(box));
    if (boxes.some((box) => !this.live.has(box)))
      this.near.replaceChildren(...boxes.map((box) => this.live.get(box) || this.keep(box, this.boxElement(box))));
    this.linesOnTop();
  }

  keep(item, element) {
    this.live.set(item, element);
    return element;
  }

  // Arrows inside of unfolded boxes lie above the boxes around them.
  linesOnTop() {
    this.world.insertBefore(this.lines, this.marks);
  }

  lineElement(edge) {
    const [name, type] = this.graph.values[edge.value];
    return svg("path", { class: "line", d: edge.path }, svg("title", {}, `%${cut(name, 200)} : ${cut(type, 200)}`));
  }

  boxElement(box) {
    const { kind, number } = box;
    const remarks = kind === "node" && this.index === graphs.length - 1 ? remarksOf(this.graph, number) : [];
    const name =
      kind === "node"
        ? this.graph.nodeText(number)
        : kind === "value"
          ? this.graph.valueText(number)
          : box.lines.join(" ");
    const title = [name, ...remarks.flatMap(({ lines }) => lines)].join("\n");
    const made = svg(
      "g",
      { class: `item ${box.sort}${box.differs ? " differs" : ""}`, role: "img", "aria-label": title },
      svg("title", {}, title),
      svg("rect", {
        x: box.x,
        y: box.y,
        width: box.w,
        height: box.h,
        rx: ["input", "output", "capture"].includes(box.sort) ? 15 : 4,
      }),
    );
    box.lines.forEach((line, i) => made.append(svg("text", { x: box.x + box.w / 2, y: box.y + 19 + 17 * i }, line)));
    if (remarks.length) made.append(svg("text", { class: "remark", x: box.x + box.w - 9, y: box.y + 16 }, "!"));
    if (box.folds) made.append(svg("text", { class: "fold", x: box.x + 10, y: box.y + 18 }, box.open ? "▾" : "▸"));
    for (const [word, x, y] of box.words || []) made.append(svg("text", { class: "word", x, y }, word));
    return made;
  }

  mark(found) {
    this.marks.replaceChildren(
      ...found.flatMap(([key, sort]) => {
        const box = this.boxOf.get(key) || this.outer(key);
        return box
          ? [svg("rect", { class: sort, x: box.x - 3, y: box.y - 3, width: box.w + 6, height: box.h + 6, rx: 6 })]
          : [];
      }),
    );
  }

  // The box of the folded node in which a node or value is.
  outer(key) {
    return this.graph
      .around(key)
      .map((n) => this.boxOf.get(`node ${n}`))
      .filter((box) => box)
      .pop();
  }

  // -- moving

  // The beginning, so large that it can be read.
  home() {
    const { clientWidth: w } = this.svg,
      first = this.boxes[0] || { x: 0, w: 0 };
    const scale = Math.min(1, Math.max(0.5, w / (this.size[0] + 40)));
    const x = this.size[0] * scale <= w ? (w - this.size[0] * scale) / 2 : w / 2 - (first.x + first.w / 2) * scale;
    this.view = { x, y: 16 * scale - Math.min(0, first.y || 0), scale };
    this.refresh();
  }

  fit() {
    const { clientWidth: w, clientHeight: h } = this.svg,
      [width, height] = this.size;
    const scale = Math.min(1, w / (width + 40), h / (height + 40));
    this.view = { x: (w - width * scale) / 2, y: 20 * scale, scale };
    this.refresh();
  }

  zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.01, this.view.scale * factor)),
      by = scale / this.view.scale;
    this.view = { x: x - (x - this.view.x) * by, y: y - (y - this.view.y) * by, scale };
    this.refresh();
  }

  // Unfold what is around, and move there if it is out of sight.
  reveal(key) {
    const shut = this.graph.around(key).filter((n) => !this.graph.open.has(n));
    if (shut.length) {
      shut.forEach((n) => this.graph.open.add(n));
      this.replace();
      this.compare();
    }
    const box = this.boxOf.get(key),
      { clientWidth: w, clientHeight: h } = this.svg;
    if (!box) return;
    const seen = this.seen(0),
      isFar = this.view.scale < FAR;
    if (
      !isFar &&
      box.x >= seen.x &&
      box.y >= seen.y &&
      box.x + box.w <= seen.x + seen.w &&
      box.y + Math.min(box.h, 60) <= seen.y + seen.h
    )
      return;
    const scale = isFar ? 0.8 : this.view.scale;
    this.view = {
      x: w / 2 - (box.x + box.w / 2) * scale,
      y: h / 2 - (box.y + Math.min(box.h, h / scale) / 2) * scale,
      scale,
    };
    this.refresh();
  }

  toggle(node) {
    const before = this.boxOf.get(`node ${node}`),
      { scale } = this.view;
    if (!this.graph.open.delete(node)) this.graph.open.add(node);
    this.replace();
    this.compare();
    const after = this.boxOf.get(`node ${node}`);
    if (before && after) {
      // what is folded stays where it is on the screen
      this.view.x += (before.x + before.w / 2 - after.x - after.w / 2) * scale;
      this.view.y += (before.y - after.y) * scale;
    }
    mark();
  }

  foldAll(open) {
    this.graph.open = new Set(open ? this.graph.nodes.flatMap((node, i) => (node.scopes.length ? [i] : [])) : []);
    this.replace();
    this.compare();
    this.fit();
    mark();
  }

  at(event) {
    const bounds = this.svg.getBoundingClientRect(),
      { x, y, scale } = this.view;
    const [px, py] = [(event.clientX - bounds.left - x) / scale, (event.clientY - bounds.top - y) / scale];
    const box = this.boxes.filter((b) => px >= b.x && px <= b.x + b.w && py >= b.y && py <= b.y + b.h).pop();
    return { box, isFold: !!box && box.folds && px < box.x + 22 && py < box.y + 26 };
  }

  listen() {
    let from = null,
      moved = false;
    this.svg.addEventListener("pointerdown", (event) => {
      [from, moved] = [
        { x: event.clientX - this.view.x, y: event.clientY - this.view.y, at: [event.clientX, event.clientY] },
        false,
      ];
      this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!from) return;
      moved = moved || Math.hypot(event.clientX - from.at[0], event.clientY - from.at[1]) > 4;
      if (!moved) return;
      [this.view.x, this.view.y] = [event.clientX - from.x, event.clientY - from.y];
      this.refresh();
    });
    this.svg.addEventListener("pointerup", () => (from = null));
    this.svg.addEventListener("click", (event) => {
      if (moved) return;
      const { box, isFold } = this.at(event);
      if (isFold) this.toggle(box.number);
      else if (box) select(this, `${box.kind} ${box.number}`);
    });
    this.svg.addEventListener("dblclick", (event) => {
      const { box, isFold } = this.at(event);
      if (box && box.folds && !isFold) this.toggle(box.number);
    });
    this.svg.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const bounds = this.svg.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - bounds.left, event.clientY - bounds.top);
      },
      { passive: false },
    );
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.graph && this.refresh()).observe(this.svg);
  }

  key(event) {
    const current = selected && selected.pane === this ? this.boxes.indexOf(this.boxOf.get(selected.key)) : -1;
    const step = (box) => box && go(this, `${box.kind} ${box.number}`);
    const along = (down) => {
      const box = this.boxes[current];
      if (!box) return this.boxes[0];
      const node = this.graph.nodes[box.number];
      const values = box.kind === "value" ? [box.number] : box.kind === "return" ? [] : down ? node.out : node.in;
      const keys = down
        ? values.flatMap((v) => this.graph.users.get(v) || []).map((n) => `node ${n}`)
        : box.kind === "value"
          ? []
          : values.map((v) => this.graph.keyOf(v));
      return keys.map((key) => this.boxOf.get(key)).find((found) => found);
    };
    const actions = {
      ArrowDown: () => step(along(true)),
      ArrowUp: () => step(along(false)),
      ArrowRight: () => step(this.boxes[current + 1]),
      ArrowLeft: () => step(this.boxes[current - 1]),
      "+": () => this.zoom(1.4),
      "-": () => this.zoom(1 / 1.4),
      0: () => this.fit(),
      Enter: () => current >= 0 && this.boxes[current].folds && this.toggle(this.boxes[current].number),
    };
    if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  // On paper: all of it, if there are not too many boxes.
  print(starts) {
    if (starts) {
      this.kept = this.view;
      const scale = Math.min(1, 680 / (this.size[0] + 20));
      this.view = { x: 4, y: 4, scale };
      this.svg.style.height = `${this.size[1] * scale + 10}px`;
      this.draw(this.boxes.length <= 2000);
    } else if (this.kept) {
      this.svg.style.height = "";
      [this.view, this.drawn] = [this.kept, null];
      this.refresh();
    }
  }
}
