// The page of a model, in three files that are one script: this one knows the data and where boxes lie, pane.js draws a
// graph, and page.js tells about what is chosen. Text from the model is only ever set as textContent.
const data = JSON.parse(document.getElementById("data").textContent);
const GAP = 18,
  LEVEL = 46,
  PAD = 10,
  BEND = 4,
  FAR = 0.35,
  MOST_HITS = 60,
  MOST_SHARING = 40,
  MOST_BOXES = 30000,
  MOST_OPERANDS = 200;
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
const largest = (numbers) => numbers.reduce((a, b) => Math.max(a, b), 0); // of more than a call takes as arguments
const bytes = (n) => (n < 1e3 ? `${n} bytes` : n < 1e6 ? `${(n / 1e3).toFixed(1)} kB` : `${(n / 1e6).toFixed(1)} MB`);

// ---- graphs: look-ups over what the data say ----

const push = (map, key, value) => (map.has(key) ? map.get(key).push(value) : map.set(key, [value]));

class Graph {
  constructor(given) {
    Object.assign(this, given);
    this.byName = new Map();
    this.valueByName = new Map(); // outer ones come first, and groups use their names again
    this.values.forEach(([name], i) => this.valueByName.has(name) || this.valueByName.set(name, i));
    this.users = new Map();
    this.ownerOfScope = new Map();
    this.scopeOf = new Map();
    this.nodes.forEach((node, i) => {
      for (const name of node.from) push(this.byName, name, i);
      for (const value of new Set(node.in)) push(this.users, value, i);
      for (const [, scope] of node.scopes) if (!this.ownerOfScope.has(scope)) this.ownerOfScope.set(scope, i);
      node.signature = [node.kind, node.in.map((v) => this.values[v][0]), node.out.map((v) => this.values[v][0])].join(
        "\n",
      );
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
    const results = node.out
      .slice(0, 3)
      .map((v) => `%${cut(this.values[v][0], most)}`)
      .join(", ");
    return `${results}${results ? " = " : ""}${node.kind}${node.name ? ` '${cut(node.name, most)}'` : ""}`;
  }

  valueText(v) {
    return `%${this.values[v][0]} : ${this.values[v][1]}`;
  }

  // What stands for a value on the picture: the node that makes it, or, of an input or a constant, itself.
  keyOf(value) {
    const maker = this.values[value][2];
    return maker >= 0 && !this.nodes[maker].constant ? `node ${maker}` : `value ${value}`;
  }

  // Nodes around node or value, outermost first.
  around(key) {
    const found = [];
    for (let s = this.scopeOf.get(key); this.ownerOfScope.has(s); s = this.scopeOf.get(`node ${found[0]}`)) {
      if (found.includes(this.ownerOfScope.get(s))) break; // a function that calls itself
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

const fate = (other, j) => {
  const node = other.nodes[j],
    group = other.around(`node ${j}`).filter((n) => other.nodes[n].scopes.some(([w]) => w === "fused"));
  const what = node.constant ? "the constant " : "";
  const where = group.length ? `, fused in ${other.nodeText(group[0], 60)}` : "";
  return `${what}${other.nodeText(j)}${where}`;
};

const graphs = data.graphs.map((given) => new Graph(given));
const remarksByName = new Map();
for (const remark of data.remarks) for (const name of remark.names) push(remarksByName, name, remark);
const remarksOf = (graph, i) => [
  ...new Set(graph.nodes[i].out.flatMap((v) => remarksByName.get(graph.values[v][0]) || [])),
];

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
  const scope = graph.scopes[s],
    n = scope.items.length;
  room.boxes -= n;
  const inner = new Map();
  const sizes = scope.items.map(([kind, number, , , , w, h], i) => {
    if (kind !== "node" || !graph.open.has(number) || room.boxes < 0) return [w, h];
    const parts = graph.nodes[number].scopes.map(([word, t]) => ({ word, placed: place(graph, t, room) }));
    inner.set(i, parts);
    const wide = parts.reduce((sum, { placed }) => sum + placed.size[0] + 2 * PAD, (parts.length - 1) * GAP);
    return [
      Math.max(w, wide),
      h + (parts.length > 1 ? 30 : 16) + Math.max(...parts.map(({ placed }) => placed.size[1])) + PAD,
    ];
  });
  const at = [...scope.items.map((item) => [item[3], item[4]]), ...scope.bends];
  const tall = at.map(() => 0); // the height of each item's layer
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
    const across = spaced(
      layer.map((item) => at[item][0]),
      distances,
    );
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
    const [[ax, ay], [bx, by]] = [points[i - 1], points[i]],
      my = (ay + by) / 2;
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
    const way = bends.flatMap((item) =>
      [-0.5, 0.5].map((half) => [left + at[item][0], top + at[item][1] + half * tall[item]]),
    );
    const x = from.x + from.w / 2;
    if (tall[a] > from.h) way.unshift([x, from.y + tall[a]]); // straight to the end of the layer, beside larger boxes
    const points = [[x, from.y + from.h], ...way, [to.x + to.w / 2, to.y]];
    const xs = points.map(([x]) => x),
      ys = points.map(([, y]) => y);
    const box = { x: Math.min(...xs), y: Math.min(...ys) };
    edges.push({ ...box, w: Math.max(...xs) - box.x, h: Math.max(...ys) - box.y, value, path: curve(points) });
  }
  rects.forEach((rect, i) => {
    boxes.push(rect);
    let at = rect.x + PAD;
    for (const { word, placed } of inner.get(i) || []) {
      const many = inner.get(i).length > 1,
        head = scope.items[i][6] + (many ? 20 : 6);
      if (many) rect.words = [...(rect.words || []), [word, at + placed.size[0] / 2, rect.y + head - 8]];
      flatten(graph, placed, at, rect.y + head, boxes, edges);
      at += placed.size[0] + 2 * PAD + GAP;
    }
  });
};
