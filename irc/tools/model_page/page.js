"use strict";
// The page of a model. All data are in the element "data"; text from the model is only ever set as textContent.
//
// Drawing is bounded by what can be seen: boxes are elements only while they are near the visible part, and below the
// scale FAR all boxes of a sort are one path. So a graph of 5,000 nodes moves as fast as one of 50.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const GAP = 18, LEVEL = 46, PAD = 10, BEND = 4, FAR = 0.35, MOST_HITS = 60, MOST_SHARING = 40, MOST_BOXES = 30000, MOST_OPERANDS = 200;
  const SVG = "http://www.w3.org/2000/svg";

  // ---- small helpers ----

  const make = (space, tag, attributes, ...children) => {
    const made = space ? document.createElementNS(space, tag) : document.createElement(tag);
    for (const [name, value] of Object.entries(attributes || {})) {
      if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
      else if (value !== null && value !== undefined && value !== false) made.setAttribute(name, value);
    }
    made.append(...children.filter((child) => child !== null));
    return made;
  };
  const el = (tag, attributes, ...children) => make("", tag, attributes, ...children);
  const svg = (tag, attributes, ...children) => make(SVG, tag, attributes, ...children);
  const cut = (text, most) =>
    text.length <= most ? text : `${text.slice(0, most / 2)}…${text.slice(text.length - most / 2 + 1)}`;
  const largest = (numbers) => numbers.reduce((a, b) => Math.max(a, b), 0);  // of more than a call takes as arguments
  const bytes = (n) =>
    n < 1e3 ? `${n} bytes` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`;

  // ---- graphs: look-ups over what the data say ----

  const push = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));

  class Graph {
    constructor(given) {
      Object.assign(this, given);
      this.byName = new Map();
      this.valueByName = new Map();  // outer ones come first, and groups use their names again
      this.values.forEach(([name], i) => this.valueByName.has(name) || this.valueByName.set(name, i));
      this.users = new Map();
      this.ownerOfScope = new Map();
      this.scopeOf = new Map();
      this.nodes.forEach((node, i) => {
        for (const name of node.from) push(this.byName, name, i);
        for (const value of new Set(node.in)) push(this.users, value, i);
        for (const [, scope] of node.scopes) if (!this.ownerOfScope.has(scope)) this.ownerOfScope.set(scope, i);
        node.signature = [node.kind, node.in.map((v) => this.values[v][0]), node.out.map((v) => this.values[v][0])].join("\n");
      });
      this.scopes.forEach((scope, s) =>
        scope.items.forEach(([kind, number, sort]) => {
          if (kind === "node") this.scopeOf.set(`node ${number}`, s);
          else if (kind === "value" && (sort === "input" || !this.scopeOf.has(`value ${number}`)))
            this.scopeOf.set(`value ${number}`, s);
        }),
      );
      this.signatures = new Set(this.nodes.map((node) => node.signature));
      this.sharing = new Map();
      if (this.alias) this.alias.of.forEach((set, value) => set >= 0 && push(this.sharing, set, value));
      this.open = new Set();
      if (this.nodes.length <= 200)
        this.nodes.forEach((node, i) => node.scopes.some(([word]) => word !== "fused") && this.open.add(i));
    }

    nodeText(i, most = Infinity) {
      const node = this.nodes[i];
      const results = node.out.slice(0, 3).map((v) => `%${cut(this.values[v][0], most)}`).join(", ");
      return `${results}${results ? " = " : ""}${node.kind}${node.name ? ` '${cut(node.name, most)}'` : ""}`;
    }

    // Nodes around node or value, outermost first.
    around(key) {
      const found = [];
      for (let s = this.scopeOf.get(key); this.ownerOfScope.has(s); s = this.scopeOf.get(`node ${found[0]}`)) {
        if (found.includes(this.ownerOfScope.get(s))) break;  // a function that calls itself
        found.unshift(this.ownerOfScope.get(s));
      }
      return found;
    }

    // The values that may be where `value` may be, besides itself.
    sharedWith(value) {
      const own = this.alias && this.alias.of[value];
      if (!this.alias || own < 0) return [];
      const places = new Set(this.alias.sets[own]);
      const sets = this.alias.sets.flatMap((set, i) => (set.some((place) => places.has(place)) ? [i] : []));
      return sets.flatMap((set) => this.sharing.get(set) || []).filter((other) => other !== value);
    }
  }

  // What stands for node `i` of `graph` in `other`: by names of the model's nodes, else by names of results.
  const counterparts = (graph, i, other) => {
    const node = graph.nodes[i];
    const known = [...new Set(node.from.flatMap((name) => other.byName.get(name) || []))];
    if (known.length) return { nodes: known, byResult: false };
    const results = node.out.map((v) => other.valueByName.get(graph.values[v][0])).filter((v) => v !== undefined);
    const makers = results.map((v) => other.values[v][2]).filter((n) => n >= 0);
    return { nodes: [...new Set(makers)], byResult: true };
  };

  const fate = (graph, i, other, j) => {
    const node = other.nodes[j], group = other.around(`node ${j}`).filter((n) => other.nodes[n].scopes.some(([w]) => w === "fused"));
    const what = node.constant ? "the constant " : "";
    const where = group.length ? `, fused in ${other.nodeText(group[0], 60)}` : "";
    return `${what}${other.nodeText(j)}${where}`;
  };

  const graphs = data.graphs.map((given) => new Graph(given));
  const remarksByName = new Map();
  for (const remark of data.remarks) for (const name of remark.names) push(remarksByName, name, remark);
  const remarksOf = (graph, i) => [...new Set(graph.nodes[i].out.flatMap((v) => remarksByName.get(graph.values[v][0]) || []))];

  // ---- placing: positions are those of the layout; what is unfolded pushes others away ----

  // Positions with at least `distances` between them, as near to `wanted` as can be (pooling adjacent violators).
  const spaced = (wanted, distances) => {
    const offsets = [0];
    for (const distance of distances) offsets.push(offsets[offsets.length - 1] + distance);
    const pools = [];
    wanted.forEach((want, i) => {
      let [mean, count] = [want - offsets[i], 1];
      while (pools.length && pools[pools.length - 1][0] >= mean) {
        const [other, many] = pools.pop();
        [mean, count] = [(mean * count + other * many) / (count + many), count + many];
      }
      pools.push([mean, count]);
    });
    return pools.flatMap(([mean, count]) => Array(count).fill(mean)).map((mean, i) => mean + offsets[i]);
  };

  // `room`: how many boxes there may be besides, as calls in calls could show a function without end.
  const place = (graph, s, room) => {
    const scope = graph.scopes[s], n = scope.items.length;
    room.boxes -= n;
    const inner = new Map();
    const sizes = scope.items.map(([kind, number, , , , w, h], i) => {
      if (kind !== "node" || !graph.open.has(number) || room.boxes < 0) return [w, h];
      const parts = graph.nodes[number].scopes.map(([word, t]) => ({ word, placed: place(graph, t, room) }));
      inner.set(i, parts);
      const wide = parts.reduce((sum, { placed }) => sum + placed.size[0] + 2 * PAD, (parts.length - 1) * GAP);
      return [Math.max(w, wide), h + (parts.length > 1 ? 30 : 16) + Math.max(...parts.map(({ placed }) => placed.size[1])) + PAD];
    });
    const at = [...scope.items.map((item) => [item[3], item[4]]), ...scope.bends];
    const tall = at.map(() => 0);  // the height of each item's layer
    for (const layer of scope.layers) {
      const most = largest(layer.map((item) => (item < n ? sizes[item][1] : 0)));
      for (const item of layer) tall[item] = most;
    }
    if (!inner.size) return { scope, at, tall, sizes, inner, size: scope.size };
    const width = (i) => (i < n ? sizes[i][0] : BEND);
    const found = at.map(() => [0, 0]);
    let top = 0;
    for (const layer of scope.layers) {
      const distances = layer.slice(1).map((item, i) => (width(layer[i]) + width(item)) / 2 + GAP);
      const across = spaced(layer.map((item) => at[item][0]), distances);
      layer.forEach((item, i) => (found[item] = [across[i], top + (item < n ? sizes[item][1] : tall[item]) / 2]));
      top += tall[layer[0]] + LEVEL;
    }
    const left = found.reduce((least, [x], i) => Math.min(least, x - width(i) / 2), Infinity);
    const right = found.reduce((most, [x], i) => Math.max(most, x + width(i) / 2), -Infinity);
    return { scope, at: found.map(([x, y]) => [x - left, y]), tall, sizes, inner, size: [right - left, top - LEVEL] };
  };

  const curve = (points) => {
    let path = `M${points[0][0]} ${points[0][1]}`;
    for (let i = 1; i < points.length; i++) {
      const [[ax, ay], [bx, by]] = [points[i - 1], points[i]], my = (ay + by) / 2;
      path += `C${ax} ${my} ${bx} ${my} ${bx} ${by}`;
    }
    const [x, y] = points[points.length - 1];
    return `${path}M${x - 3.6} ${y - 6}L${x} ${y}L${x + 3.6} ${y - 6}`;
  };

  // Boxes and edges of a placed scope, at their positions on the whole picture.
  const flatten = (graph, placed, left, top, boxes, edges) => {
    const { scope, at, tall, sizes, inner } = placed;
    const rects = scope.items.map(([kind, number, sort, , , , , lines], i) => {
      const [[x, y], [w, h]] = [at[i], sizes[i]];
      const folds = kind === "node" && graph.nodes[number].scopes.length > 0;
      return { kind, number, sort, lines, folds, open: inner.has(i), x: left + x - w / 2, y: top + y - h / 2, w, h };
    });
    for (const [a, b, value, bends] of scope.edges) {
      const [from, to] = [rects[a], rects[b]];
      const way = bends.flatMap((item) => [-0.5, 0.5].map((half) => [left + at[item][0], top + at[item][1] + half * tall[item]]));
      const x = from.x + from.w / 2;
      if (tall[a] > from.h) way.unshift([x, from.y + tall[a]]);  // straight to the end of the layer, beside larger boxes
      const points = [[x, from.y + from.h], ...way, [to.x + to.w / 2, to.y]];
      const xs = points.map(([x]) => x), ys = points.map(([, y]) => y);
      const box = { x: Math.min(...xs), y: Math.min(...ys) };
      edges.push({ ...box, w: Math.max(...xs) - box.x, h: Math.max(...ys) - box.y, value, path: curve(points) });
    }
    rects.forEach((rect, i) => {
      boxes.push(rect);
      let at = rect.x + PAD;
      for (const { word, placed } of inner.get(i) || []) {
        const many = inner.get(i).length > 1, head = scope.items[i][6] + (many ? 20 : 6);
        if (many) rect.words = [...(rect.words || []), [word, at + placed.size[0] / 2, rect.y + head - 8]];
        flatten(graph, placed, at, rect.y + head, boxes, edges);
        at += placed.size[0] + 2 * PAD + GAP;
      }
    });
  };

  // ---- a pane: one graph, zoomed, moved, folded ----

  class Pane {
    constructor(root, first) {
      this.root = root;
      this.view = { x: 0, y: 0, scale: 1 };
      this.live = new Map();
      this.choice = el("select", { "aria-label": "state of the graph", onchange: () => this.show(Number(this.choice.value)) });
      graphs.forEach((graph, i) => this.choice.append(el("option", { value: i }, graph.title)));
      const button = (text, label, action) => el("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
      root.append(
        el("div", { class: "bar" }, button("‹", "the state before", () => this.step(-1)), this.choice,
          button("›", "the next state", () => this.step(1)), button("−", "zoom out", () => this.zoom(1 / 1.4)),
          button("+", "zoom in", () => this.zoom(1.4)), button("fit", "show all of it", () => this.fit()),
          button("unfold", "unfold all blocks and groups", () => this.foldAll(true)),
          button("fold", "fold all blocks and groups", () => this.foldAll(false)), (this.said = el("span", { class: "said" }))),
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
      for (const box of this.boxes) if (box.sort !== "capture" || !this.boxOf.has(`${box.kind} ${box.number}`)) this.boxOf.set(`${box.kind} ${box.number}`, box);
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
      const other = panes[1 - panes.indexOf(this)];
      if (!this.graph || !other.graph) return;
      const isNew = (box) => box.kind === "node" && !other.graph.signatures.has(this.graph.nodes[box.number].signature);
      for (const box of this.boxes) box.differs = this.index !== other.index && isNew(box);
      const count = this.graph.nodes.filter((node) => !node.constant && !other.graph.signatures.has(node.signature)).length;
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
      const { x, y, scale } = this.view, { clientWidth: w, clientHeight: h } = this.svg;
      return { x: -x / scale - (margin * w) / scale, y: -y / scale - (margin * h) / scale, w: ((1 + 2 * margin) * w) / scale, h: ((1 + 2 * margin) * h) / scale };
    }

    draw(all = false) {
      const { x, y, scale } = this.view;
      this.world.setAttribute("transform", `translate(${x} ${y}) scale(${scale})`);
      const isFar = !all && scale < FAR;
      this.svg.classList.toggle("is-far", isFar);
      const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.x + a.w <= b.x + b.w && a.y + a.h <= b.y + b.h;
      if (isFar || (!all && this.drawn && this.drawn.scale / scale < 1.6 && inside(this.seen(0), this.drawn))) return;
      this.drawn = { ...this.seen(0.3), scale };
      const meets = (a, b = this.drawn) => all || (a.x <= b.x + b.w && a.x + a.w >= b.x && a.y <= b.y + b.h && a.y + a.h >= b.y);
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
      const name = kind === "node" ? this.graph.nodeText(number) : kind === "value" ? `%${this.graph.values[number].slice(0, 2).join(" : ")}` : box.lines.join(" ");
      const title = [name, ...remarks.flatMap(({ lines }) => lines)].join("\n");
      const made = svg("g", { class: `item ${box.sort}${box.differs ? " differs" : ""}`, role: "img", "aria-label": title },
        svg("title", {}, title), svg("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: ["input", "output", "capture"].includes(box.sort) ? 15 : 4 }));
      box.lines.forEach((line, i) => made.append(svg("text", { x: box.x + box.w / 2, y: box.y + 19 + 17 * i }, line)));
      if (remarks.length) made.append(svg("text", { class: "remark", x: box.x + box.w - 9, y: box.y + 16 }, "!"));
      if (box.folds) made.append(svg("text", { class: "fold", x: box.x + 10, y: box.y + 18 }, box.open ? "▾" : "▸"));
      for (const [word, x, y] of box.words || []) made.append(svg("text", { class: "word", x, y }, word));
      return made;
    }

    mark(found) {
      this.marks.replaceChildren(...found.flatMap(([key, sort]) => {
        const box = this.boxOf.get(key) || this.outer(key);
        return box ? [svg("rect", { class: sort, x: box.x - 3, y: box.y - 3, width: box.w + 6, height: box.h + 6, rx: 6 })] : [];
      }));
    }

    // The box of the folded node in which a node or value is.
    outer(key) {
      return this.graph.around(key).map((n) => this.boxOf.get(`node ${n}`)).filter((box) => box).pop();
    }

    // -- moving

    // The beginning, so large that it can be read.
    home() {
      const { clientWidth: w } = this.svg, first = this.boxes[0] || { x: 0, w: 0 };
      const scale = Math.min(1, Math.max(0.5, w / (this.size[0] + 40)));
      const x = this.size[0] * scale <= w ? (w - this.size[0] * scale) / 2 : w / 2 - (first.x + first.w / 2) * scale;
      this.view = { x, y: 16 * scale - Math.min(0, first.y || 0), scale };
      this.refresh();
    }

    fit() {
      const { clientWidth: w, clientHeight: h } = this.svg, [width, height] = this.size;
      const scale = Math.min(1, w / (width + 40), h / (height + 40));
      this.view = { x: (w - width * scale) / 2, y: 20 * scale, scale };
      this.refresh();
    }

    zoom(factor, x = this.svg.clientWidth / 2, y = this.svg.clientHeight / 2) {
      const scale = Math.min(4, Math.max(0.01, this.view.scale * factor)), by = scale / this.view.scale;
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
      const box = this.boxOf.get(key), { clientWidth: w, clientHeight: h } = this.svg;
      if (!box) return;
      const seen = this.seen(0), isFar = this.view.scale < FAR;
      if (!isFar && box.x >= seen.x && box.y >= seen.y && box.x + box.w <= seen.x + seen.w && box.y + Math.min(box.h, 60) <= seen.y + seen.h) return;
      const scale = isFar ? 0.8 : this.view.scale;
      this.view = { x: w / 2 - (box.x + box.w / 2) * scale, y: h / 2 - (box.y + Math.min(box.h, h / scale) / 2) * scale, scale };
      this.refresh();
    }

    toggle(node) {
      const before = this.boxOf.get(`node ${node}`), { scale } = this.view;
      if (!this.graph.open.delete(node)) this.graph.open.add(node);
      this.replace();
      this.compare();
      const after = this.boxOf.get(`node ${node}`);
      if (before && after) {  // what is folded stays where it is on the screen
        this.view.x += (before.x + before.w / 2 - after.x - after.w / 2) * scale;
        this.view.y += (before.y - after.y) * scale;
      }
      remark();
    }

    foldAll(open) {
      this.graph.open = new Set(open ? this.graph.nodes.flatMap((node, i) => (node.scopes.length ? [i] : [])) : []);
      this.replace();
      this.compare();
      this.fit();
      remark();
    }

    at(event) {
      const bounds = this.svg.getBoundingClientRect(), { x, y, scale } = this.view;
      const [px, py] = [(event.clientX - bounds.left - x) / scale, (event.clientY - bounds.top - y) / scale];
      const box = this.boxes.filter((b) => px >= b.x && px <= b.x + b.w && py >= b.y && py <= b.y + b.h).pop();
      return { box, isFold: !!box && box.folds && px < box.x + 22 && py < box.y + 26 };
    }

    listen() {
      let from = null, moved = false;
      this.svg.addEventListener("pointerdown", (event) => {
        [from, moved] = [{ x: event.clientX - this.view.x, y: event.clientY - this.view.y, at: [event.clientX, event.clientY] }, false];
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
        else if (box) select(this, `${box.kind} ${box.number}`, box);
      });
      this.svg.addEventListener("dblclick", (event) => {
        const { box, isFold } = this.at(event);
        if (box && box.folds && !isFold) this.toggle(box.number);
      });
      this.svg.addEventListener("wheel", (event) => {
        event.preventDefault();
        const bounds = this.svg.getBoundingClientRect();
        this.zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - bounds.left, event.clientY - bounds.top);
      }, { passive: false });
      this.svg.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.graph && this.refresh()).observe(this.svg);
    }

    key(event) {
      const current = selected && selected.pane === this ? this.boxes.indexOf(this.boxOf.get(selected.key)) : -1;
      const go = (box) => box && select(this, `${box.kind} ${box.number}`, box, true);
      const along = (down) => {
        const box = this.boxes[current];
        if (!box) return this.boxes[0];
        const values = box.kind === "value" ? [box.number] : box.kind === "return" ? [] : down ? this.graph.nodes[box.number].out : this.graph.nodes[box.number].in;
        const keys = down ? values.flatMap((v) => this.graph.users.get(v) || []).map((n) => `node ${n}`)
          : box.kind === "value" ? [] : values.map((v) => (this.graph.values[v][2] >= 0 ? `node ${this.graph.values[v][2]}` : `value ${v}`));
        return keys.map((key) => this.boxOf.get(key)).find((found) => found);
      };
      const actions = {
        ArrowDown: () => go(along(true)), ArrowUp: () => go(along(false)),
        ArrowRight: () => go(this.boxes[current + 1]), ArrowLeft: () => go(this.boxes[current - 1]),
        "+": () => this.zoom(1.4), "-": () => this.zoom(1 / 1.4), 0: () => this.fit(),
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

  // ---- selection and details ----

  let selected = null;
  const details = document.getElementById("details");

  const item = (pane, key, text) =>
    el("button", { type: "button", class: "link", title: text, onclick: () => { pane.reveal(key); select(pane, key); } }, cut(text, 90));
  const list = (name, entries) => (entries.length ? el("ul", { class: name }, ...entries.map((entry) => el("li", {}, entry))) : null);
  const section = (title, ...children) => {
    const found = children.filter((child) => child !== null);
    return found.length ? el("div", {}, el("h3", {}, title), ...found) : null;
  };

  const valueDetails = (pane, value) => {
    const { graph } = pane, [name, type, maker] = graph.values[value], { alias } = graph;
    const label = (v) => (graph.values[v][2] >= 0 ? `node ${graph.values[v][2]}` : `value ${v}`);
    const known = alias && alias.of[value] >= 0;
    const shared = graph.sharedWith(value);
    const more = shared.length - MOST_SHARING;
    return el("section", { class: "value", "data-value": name },
      el("h3", { class: "name", title: name }, `%${cut(name, 300)}`),
      el("p", { class: "type" }, cut(type, 400)),
      !alias ? el("p", { class: "quiet" }, "Aliases are shown of the first and the last state.")
        : known ? section("may be at", list("alias-set", alias.sets[alias.of[value]].map((place) => alias.locations[place])), alias.sets[alias.of[value]].length ? null : el("p", { class: "quiet" }, "no memory: this is a number, or the like"))
          : el("p", { class: "quiet" }, "Inside of a fusion group or a function: the analysis of the graph sees it from outside."),
      known ? section("written by", list("writers", (alias.writers[value] || []).map((n) => item(pane, `node ${n}`, graph.nodeText(n))))) : null,
      section("may share memory with", list("sharing", shared.slice(0, MOST_SHARING).map((v) => item(pane, label(v), `%${graph.values[v][0]}`))), more > 0 ? el("p", {}, `and ${more} more`) : null),
      known ? section("why", list("why", alias.why[value] || [])) : null,
      section("read by", list("users", (graph.users.get(value) || []).slice(0, MOST_SHARING).map((n) => item(pane, `node ${n}`, graph.nodeText(n))))),
      maker >= 0 && selected && selected.key !== `node ${maker}` ? section("made by", item(pane, `node ${maker}`, graph.nodeText(maker))) : null,
    );
  };

  const nodeDetails = (pane, i) => {
    const { graph } = pane, node = graph.nodes[i], other = panes[1 - panes.indexOf(pane)];
    const { nodes, byResult } = counterparts(graph, i, other.graph);
    const isLater = pane.index > other.index;
    const links = nodes.slice(0, MOST_SHARING).map((j) => item(other, other.graph.nodes[j].constant ? `value ${other.graph.nodes[j].out[0]}` : `node ${j}`, fate(graph, i, other.graph, j)));
    const none = el("p", { class: "quiet" }, `Nothing of ‘${other.graph.title}’ stands for it: ${isLater ? "a pass has made it" : "it was not needed, is equal to another node, or was rewritten as a whole"}.`);
    const remarks = remarksOf(graph, i);
    const time = pane.index === graphs.length - 1 && data.times && data.times[i];
    return el("section", { class: "node", "data-kind": node.kind },
      el("h2", {}, node.kind), el("p", { class: "name", title: node.name }, cut(node.name, 300)),
      time ? el("p", { class: "time" }, time) : null,
      node.scopes.length ? el("button", { type: "button", class: "fold", "aria-expanded": String(graph.open.has(i)), onclick: () => { pane.toggle(i); select(pane, `node ${i}`); } }, graph.open.has(i) ? "fold" : "unfold") : null,
      pane.index === other.index ? null : section(byResult && links.length ? `its result in ‘${other.graph.title}’ is` : isLater ? `stands for, in ‘${other.graph.title}’` : `became, in ‘${other.graph.title}’`, links.length ? list("became", links) : none),
      section("remarks", list("remarks", remarks.map((remark) => el("div", {}, el("b", {}, `${remark.pass}${remark.what ? `, ${remark.what}` : ""}: `), remark.lines.join("\n"))))),
      section("operands", list("operands", node.in.slice(0, MOST_OPERANDS).map((v) => item(pane, graph.values[v][2] >= 0 && !graph.nodes[graph.values[v][2]].constant ? `node ${graph.values[v][2]}` : `value ${v}`, `%${graph.values[v][0]} : ${graph.values[v][1]}`))), node.in.length > MOST_OPERANDS ? el("p", {}, `and ${node.in.length - MOST_OPERANDS} more`) : null),
      section("attributes", list("attributes", node.attributes)),
      section("of the model's nodes", list("sources", isLater ? node.from.map((name) => cut(name, 300)) : [])),
      ...node.out.map((v) => valueDetails(pane, v)),
    );
  };

  const remark = () => {
    if (!selected) return panes.forEach((pane) => pane.mark([]));
    const { pane, key } = selected, other = panes[1 - panes.indexOf(pane)], [kind, number] = key.split(" ");
    pane.mark([[key, "chosen"]]);
    const near = kind === "node" && pane.index !== other.index ? counterparts(pane.graph, Number(number), other.graph).nodes : [];
    other.mark(near.map((n) => [`node ${n}`, "linked"]));
  };

  const select = (pane, key, box = null, moves = false) => {
    selected = pane ? { pane, key } : null;
    details.replaceChildren();
    if (pane) {
      const [kind, number] = key.split(" ");
      const shown = kind === "node" ? nodeDetails(pane, Number(number)) : kind === "value" ? valueDetails(pane, Number(number)) : null;
      details.append(shown || el("section", {}, el("h2", {}, "return"), list("operands", returned(pane, box).map((v) => item(pane, pane.graph.values[v][2] >= 0 ? `node ${pane.graph.values[v][2]}` : `value ${v}`, `%${pane.graph.values[v][0]}`))) || ""));
      if (moves) pane.reveal(key);
      const other = panes[1 - panes.indexOf(pane)];
      if (kind === "node" && pane.index !== other.index) {
        const near = counterparts(pane.graph, Number(number), other.graph).nodes.filter((n) => other.graph.scopeOf.has(`node ${n}`));
        const seen = near.map((n) => other.boxOf.get(`node ${n}`) || other.outer(`node ${n}`)).find((found) => found);
        if (seen) other.reveal(`${seen.kind} ${seen.number}`);
      }
    } else details.append(el("p", { class: "quiet" }, "Click a node or an input: its types, aliases, writers, remarks, and what became of it."));
    remark();
  };

  const returned = (pane, box) => {
    const all = pane.graph.scopes.flatMap((scope) => scope.items.map((each, i) => [scope, each, i]));
    const found = all.find(([, each]) => box && each[0] === "return" && each[7].join() === box.lines.join());
    return found ? found[0].edges.filter(([, b]) => b === found[2]).map(([, , value]) => value) : [];
  };

  // Choose the node that makes a value of the last state, or the value.
  const chooseInLast = (value) => {
    const pane = panes[1], end = graphs.length - 1, maker = graphs[end].values[value][2];
    if (pane.index !== end) pane.show(end);
    const key = maker >= 0 && !graphs[end].nodes[maker].constant ? `node ${maker}` : `value ${value}`;
    pane.reveal(key);
    select(pane, key);
  };

  // ---- search ----

  const search = document.getElementById("search"), hits = document.getElementById("hits");
  const find = () => {
    const wanted = search.value.trim().replace(/^%/, "").toLowerCase();
    hits.replaceChildren();
    hits.hidden = !wanted;
    if (!wanted) return;
    const found = [];
    for (const pane of new Set([panes[0], panes[1]].filter((p, i) => i === 0 || p.index !== panes[0].index))) {
      const { graph } = pane;
      const rank = (texts) => {
        const low = texts.map((text) => text.toLowerCase());
        return low.includes(wanted) ? 0 : low.some((text) => text.includes(wanted)) ? 1 : -1;
      };
      graph.nodes.forEach((node, i) => {
        if (node.constant) return;
        const how = rank([node.name, ...node.out.map((v) => graph.values[v][0]), node.kind, ...node.from]);
        if (how >= 0) found.push([how, pane, `node ${i}`, graph.nodeText(i)]);
      });
      graph.values.forEach(([name, , maker], v) => {
        if (maker >= 0 && !graph.nodes[maker].constant) return;
        const how = rank([name]);
        if (how >= 0) found.push([how, pane, `value ${v}`, `%${cut(name, 60)}`]);
      });
    }
    found.sort((a, b) => a[0] - b[0]);
    const rows = found.slice(0, MOST_HITS).map(([, pane, key, text]) => el("li", {}, el("span", { class: "where" }, pane.graph.title), item(pane, key, text)));
    hits.append(...rows, el("li", { class: "quiet" }, found.length > MOST_HITS ? `${found.length} found, of which the first ${MOST_HITS}` : `${found.length} found`));
  };
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && hits.querySelector("button")) hits.querySelector("button").click();
    if (event.key === "Escape" || event.key === "Enter") hits.hidden = true;
  });
  hits.addEventListener("click", () => (hits.hidden = true));
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== search) {
      event.preventDefault();
      search.focus();
    }
  });

  // ---- memory over time ----

  const memory = () => {
    const root = document.getElementById("memory");
    const { memory: plan } = data;
    const rows = data.summary.map(([label, text]) => el("tr", {}, el("th", {}, label), el("td", {}, text)));
    document.getElementById("summary").append(el("table", {}, el("tbody", {}, ...rows)));
    if (!plan) return void root.append(el("p", { class: "quiet" }, "No places are planned: not all shapes are known. Compile for fixed sizes (--fix) to see them."));
    const turns = Math.max(1, plan.in_use.length), top = Math.max(plan.arena, plan.bound, largest(plan.in_use), 1) * 1.05;
    const [W, H, L, B] = [1200, 320, 80, 24], x = (turn) => L + ((W - L) * turn) / turns, y = (n) => (H - B) * (1 - n / top);
    const chart = svg("svg", { viewBox: `0 0 ${W} ${H}`, class: "chart", role: "group", "aria-label": `memory over time: ${bytes(plan.arena)} planned, of which at least ${bytes(plan.bound)} are needed`, "data-arena": plan.arena, "data-bound": plan.bound, "data-peak": plan.peak });
    plan.places.forEach(([offset, size, first, end, values], i) => {
      const names = values.map((v) => `%${cut(graphs[graphs.length - 1].values[v][0], 60)}`);
      chart.append(svg("rect", { class: `place tint${i % 3}`, x: x(first), y: y(offset + size), width: Math.max(0.5, x(end + 1) - x(first)), height: Math.max(0.5, y(offset) - y(offset + size)), onclick: values.length ? () => chooseInLast(values[0]) : null, role: "img", "aria-label": names.join(", ") },
        svg("title", {}, `${names.slice(0, 8).join(", ")}\n${bytes(size)} at ${offset}, steps ${first} to ${end}`)));
    });
    let line = "";
    plan.in_use.forEach((n, turn) => (line += `${turn ? "L" : "M"}${x(turn)} ${y(n)}L${x(turn + 1)} ${y(n)}`));
    chart.append(svg("path", { class: "in-use", d: line }));
    const level = (n, sort, text, below) => chart.append(svg("path", { class: sort, d: `M${L} ${y(n)}H${W}` }), svg("text", { x: W - 4, y: y(n) + (below ? 14 : -4), class: "level" }, text));
    level(plan.arena, "arena", `arena ${bytes(plan.arena)}`, false);
    level(plan.bound, "bound", `lower bound ${bytes(plan.bound)}`, true);
    for (let i = 0; i <= 4; i++) chart.append(svg("text", { x: L - 6, y: y((top * i) / 4.2) + 4, class: "level" }, bytes(Math.round((top * i) / 4.2))));
    chart.append(svg("text", { x: (W + L) / 2, y: H - 6, class: "axis" }, `steps of a run (${turns - 1})`));
    root.append(chart, el("p", { class: "quiet" }, "Each rectangle is a place in the arena, from the step that first writes it to the last that reads it; the line is what is in use. Click one to see its value."));
  };

  // ---- tables ----

  const passes = () => {
    const root = document.getElementById("passes");
    if (!data.passes.length) return void root.append(el("p", { class: "quiet" }, "No passes have run."));
    const last = new Map(data.passes.map(([name], i) => [name, i]));  // the run that is told what all of them did
    const [effects, others] = [new Map(), []];
    for (const [name, n] of data.effects) {
      const pass = name.split(".")[0];
      if (last.has(pass)) push(effects, last.get(pass), `${name.slice(pass.length + 1)} ${n}`);
      else others.push(`${name} ${n}`);
    }
    const rows = data.passes.map(([name, ms, changed, step], i) => el("tr", {}, el("td", {}, name), el("td", { class: "number" }, ms.toFixed(1)),
      el("td", {}, step === null ? (changed ? "changed" : "no change") : el("button", { type: "button", class: "link", onclick: () => { panes[1].show(step); panes[0].show(step - 1); } }, "changed: show")),
      el("td", { class: "effects" }, (effects.get(i) || []).join(", "))));
    const heads = ["pass", "ms", "graph", "did"].map((text) => el("th", {}, text));
    root.append(el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
    if (others.length) root.append(el("p", { class: "quiet" }, others.join(", ")));
  };

  const remarks = () => {
    const root = document.getElementById("remarks");
    root.append(el("p", {}, data.remarks.length ? `${data.remarks.length} remarks` : "No remarks: nothing was left as it was."));
    const rows = data.remarks.slice(0, 500).map((each) => {
      const found = each.names.map((name) => graphs[graphs.length - 1].valueByName.get(name)).find((v) => v !== undefined);
      const place = found === undefined ? cut(each.where, 120) : el("button", { type: "button", class: "link", onclick: () => chooseInLast(found) }, cut(each.where, 120));
      return el("li", {}, el("b", {}, `${each.pass}: `), place, el("div", { class: "reason" }, each.lines.join("\n")));
    });
    root.append(el("ul", {}, ...rows));
  };

  // ---- all of it ----

  const panes = [];
  const roots = [...document.querySelectorAll(".pane")];
  panes.push(new Pane(roots[0], 0), new Pane(roots[1], graphs.length - 1));
  if (graphs.length === 1) roots[0].hidden = true;
  panes.forEach((pane) => {
    pane.graph = graphs[pane.index];
    pane.replace();
  });
  panes.forEach((pane) => pane.show(pane.index));
  memory();
  passes();
  remarks();
  select(null);
  addEventListener("beforeprint", () => panes.forEach((pane) => pane.print(true)));
  addEventListener("afterprint", () => panes.forEach((pane) => pane.print(false)));
  document.documentElement.dataset.ready = "yes";
})();
