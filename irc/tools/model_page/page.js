// What is chosen and its details, search, memory over time, tables; and the start of it all.

let selected = null;
const details = document.getElementById("details");

const go = (pane, key) => {
  pane.reveal(key);
  select(pane, key);
};
const link = (text, action) =>
  el("button", { type: "button", class: "link", title: text, onclick: action }, cut(text, 90));
const item = (pane, key, text) => link(text, () => go(pane, key));
const quiet = (text) => el("p", { class: "quiet" }, text);
const list = (name, entries) =>
  entries.length ? el("ul", { class: name }, ...entries.map((entry) => el("li", {}, entry))) : null;
const section = (title, ...children) => {
  const found = children.filter((child) => child !== null);
  return found.length ? el("div", {}, el("h3", {}, title), ...found) : null;
};

// Links to values and nodes, at most so many, and how many there are besides.
const some = (name, keys, most, make) => [
  list(name, keys.slice(0, most).map(make)),
  keys.length > most ? quiet(`and ${keys.length - most} more`) : null,
];
const nodeLinks = (pane, name, nodes) =>
  some(name, nodes, MOST_SHARING, (n) => item(pane, `node ${n}`, pane.graph.nodeText(n)));
const valueLinks = (pane, name, values, most) =>
  some(name, values, most, (v) => item(pane, pane.graph.keyOf(v), pane.graph.valueText(v)));

const aliasDetails = (pane, value) => {
  const { graph } = pane,
    { alias } = graph;
  if (!alias) return [quiet("Aliases are shown of the first and the last state.")];
  if (alias.of[value] < 0)
    return [quiet("Inside of a fusion group or a function: the analysis of the graph sees it from outside.")];
  const places = alias.sets[alias.of[value]].map((place) => alias.locations[place]);
  const none = quiet("no memory: this is a number, or the like");
  return [
    section("may be at", list("alias-set", places) || none),
    section("written by", ...nodeLinks(pane, "writers", alias.writers[value] || [])),
    section("may share memory with", ...valueLinks(pane, "sharing", graph.sharedWith(value), MOST_SHARING)),
    section("why", list("why", alias.why[value] || [])),
  ];
};

const valueDetails = (pane, value) => {
  const { graph } = pane,
    [name, type, maker] = graph.values[value];
  const parts = [
    el("h3", { class: "name", title: name }, `%${cut(name, 300)}`),
    el("p", { class: "type" }, cut(type, 400)),
    ...aliasDetails(pane, value),
    section("read by", ...nodeLinks(pane, "users", graph.users.get(value) || [])),
    selected.key === `value ${value}` && maker >= 0 ? section("made by", ...nodeLinks(pane, "maker", [maker])) : null,
  ];
  return el("section", { class: "value", "data-value": name }, ...parts);
};

// What became of a node in the other pane's state, or what it stands for there.
const fateDetails = (pane, i) => {
  const other = otherOf(pane),
    isLater = pane.index > other.index;
  if (pane.index === other.index) return null;
  const { nodes, byResult } = counterparts(pane.graph, i, other.graph);
  const links = nodes.map((j) => {
    const { constant, out } = other.graph.nodes[j];
    return item(other, constant ? `value ${out[0]}` : `node ${j}`, fate(other.graph, j));
  });
  const where = `in ‘${other.graph.title}’`;
  if (!links.length) {
    const why = isLater
      ? "a pass has made it"
      : "it was not needed, is equal to another node, or was rewritten as a whole";
    return section(`${where}`, quiet(`Nothing stands for it: ${why}.`));
  }
  const title = byResult ? "its result is" : isLater ? "stands for" : "became";
  return section(`${title}, ${where}`, ...some("became", links, MOST_SHARING, (each) => each));
};

const nodeDetails = (pane, i) => {
  const { graph } = pane,
    node = graph.nodes[i];
  const time = pane.index === graphs.length - 1 && data.times && data.times[i];
  const fold = () => {
    pane.toggle(i);
    select(pane, `node ${i}`);
  };
  const isOpen = graph.open.has(i);
  const remarks = remarksOf(graph, i).map(({ pass, what, lines }) =>
    el("div", {}, el("b", {}, `${pass}${what ? `, ${what}` : ""}: `), lines.join("\n")),
  );
  const parts = [
    el("h2", {}, node.kind),
    el("p", { class: "name", title: node.name }, cut(node.name, 300)),
    time ? el("p", { class: "time" }, time) : null,
    node.scopes.length
      ? el("button", { class: "fold", "aria-expanded": String(isOpen), onclick: fold }, isOpen ? "fold" : "unfold")
      : null,
    fateDetails(pane, i),
    section("remarks", list("remarks", remarks)),
    section("operands", ...valueLinks(pane, "operands", node.in, MOST_OPERANDS)),
    section("attributes", list("attributes", node.attributes)),
    section("of the model's nodes", list("sources", pane.index > 0 ? node.from.map((name) => cut(name, 300)) : [])),
    ...node.out.map((v) => valueDetails(pane, v)),
  ];
  return el("section", { class: "node", "data-kind": node.kind }, ...parts);
};

const returnDetails = (pane, s) => {
  const { items, edges } = pane.graph.scopes[s];
  const values = edges.filter(([, b]) => items[b][0] === "return").map(([, , value]) => value);
  return el("section", {}, el("h2", {}, "return"), ...valueLinks(pane, "operands", values, MOST_OPERANDS));
};

const DETAILS = { node: nodeDetails, value: valueDetails, return: returnDetails };

// The nodes of the other pane that stand for what is chosen.
const linked = () => {
  const { pane, key } = selected,
    [kind, number] = key.split(" ");
  if (kind !== "node" || pane.index === otherOf(pane).index) return [];
  return counterparts(pane.graph, Number(number), otherOf(pane).graph).nodes;
};

const mark = () => {
  panes.forEach((pane) => pane.mark([]));
  if (!selected) return;
  selected.pane.mark([[selected.key, "chosen"]]);
  if (panes.length > 1 && linked().length) otherOf(selected.pane).mark(linked().map((n) => [`node ${n}`, "linked"]));
};

const select = (pane, key) => {
  selected = pane ? { pane, key } : null;
  details.replaceChildren();
  if (!pane) {
    details.append(quiet("Click a node or an input: its types, aliases, writers, remarks, and what became of it."));
  } else {
    const [kind, number] = key.split(" "),
      other = otherOf(pane);
    details.append(...[DETAILS[kind](pane, Number(number))].filter((shown) => shown));
    const near = linked().filter((n) => other.graph.scopeOf.has(`node ${n}`));
    const box = near.map((n) => other.boxOf.get(`node ${n}`) || other.outer(`node ${n}`)).find((found) => found);
    if (box) other.reveal(`${box.kind} ${box.number}`);
  }
  mark();
};

// Choose the node that makes a value of the last state, or the value.
const chooseInLast = (value) => {
  const pane = panes[1],
    end = graphs.length - 1;
  if (pane.index !== end) pane.show(end);
  go(pane, pane.graph.keyOf(value));
};

// ---- search ----

const search = document.getElementById("search"),
  hits = document.getElementById("hits");
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
  const rows = found
    .slice(0, MOST_HITS)
    .map(([, pane, key, text]) =>
      el("li", {}, el("span", { class: "where" }, pane.graph.title), item(pane, key, text)),
    );
  hits.append(
    ...rows,
    el(
      "li",
      { class: "quiet" },
      found.length > MOST_HITS ? `${found.length} found, of which the first ${MOST_HITS}` : `${found.length} found`,
    ),
  );
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
  if (!plan)
    return void root.append(
      quiet("No places are planned: not all shapes are known. Compile for fixed sizes (--fix) to see them."),
    );
  const turns = Math.max(1, plan.in_use.length),
    top = Math.max(plan.arena, plan.bound, largest(plan.in_use), 1) * 1.05;
  const [W, H, L, B] = [1200, 320, 80, 24],
    x = (turn) => L + ((W - L) * turn) / turns,
    y = (n) => (H - B) * (1 - n / top);
  const chart = svg("svg", {
    viewBox: `0 0 ${W} ${H}`,
    class: "chart",
    role: "group",
    "aria-label": `memory over time: ${bytes(plan.arena)} planned, of which at least ${bytes(plan.bound)} are needed`,
    "data-arena": plan.arena,
    "data-bound": plan.bound,
    "data-peak": plan.peak,
  });
  plan.places.forEach(([offset, size, first, end, values], i) => {
    const names = values.map((v) => `%${cut(graphs[graphs.length - 1].values[v][0], 60)}`);
    chart.append(
      svg(
        "rect",
        {
          class: `place tint${i % 3}`,
          x: x(first),
          y: y(offset + size),
          width: Math.max(0.5, x(end + 1) - x(first)),
          height: Math.max(0.5, y(offset) - y(offset + size)),
          onclick: values.length ? () => chooseInLast(values[0]) : null,
          role: "img",
          "aria-label": names.join(", "),
        },
        svg("title", {}, `${names.slice(0, 8).join(", ")}\n${bytes(size)} at ${offset}, steps ${first} to ${end}`),
      ),
    );
  });
  let line = "";
  plan.in_use.forEach((n, turn) => (line += `${turn ? "L" : "M"}${x(turn)} ${y(n)}L${x(turn + 1)} ${y(n)}`));
  chart.append(svg("path", { class: "in-use", d: line }));
  const level = (n, sort, text, below) =>
    chart.append(
      svg("path", { class: sort, d: `M${L} ${y(n)}H${W}` }),
      svg("text", { x: W - 4, y: y(n) + (below ? 14 : -4), class: "level" }, text),
    );
  level(plan.arena, "arena", `arena ${bytes(plan.arena)}`, false);
  level(plan.bound, "bound", `lower bound ${bytes(plan.bound)}`, true);
  for (let i = 0; i <= 4; i++)
    chart.append(
      svg("text", { x: L - 6, y: y((top * i) / 4.2) + 4, class: "level" }, bytes(Math.round((top * i) / 4.2))),
    );
  chart.append(svg("text", { x: (W + L) / 2, y: H - 6, class: "axis" }, `steps of a run (${turns - 1})`));
  root.append(
    chart,
    quiet(
      "Each rectangle is a place in the arena, from the step that first writes it to the last that reads it; " +
        "the line is what is in use. Click one to see its value.",
    ),
  );
};

// ---- tables ----

const passes = () => {
  const root = document.getElementById("passes");
  if (!data.passes.length) return void root.append(quiet("No passes have run."));
  const last = new Map(data.passes.map(([name], i) => [name, i])); // the run that is told what all of them did
  const [effects, others] = [new Map(), []];
  for (const [name, n] of data.effects) {
    const pass = name.split(".")[0];
    if (last.has(pass)) push(effects, last.get(pass), `${name.slice(pass.length + 1)} ${n}`);
    else others.push(`${name} ${n}`);
  }
  const rows = data.passes.map(([name, ms, changed, step], i) =>
    el(
      "tr",
      {},
      el("td", {}, name),
      el("td", { class: "number" }, ms.toFixed(1)),
      el(
        "td",
        {},
        step === null
          ? changed
            ? "changed"
            : "no change"
          : link("changed: show", () => {
              panes[1].show(step);
              panes[0].show(step - 1);
            }),
      ),
      el("td", { class: "effects" }, (effects.get(i) || []).join(", ")),
    ),
  );
  const heads = ["pass", "ms", "graph", "did"].map((text) => el("th", {}, text));
  root.append(el("table", {}, el("thead", {}, el("tr", {}, ...heads)), el("tbody", {}, ...rows)));
  if (others.length) root.append(quiet(others.join(", ")));
};

const remarks = () => {
  const root = document.getElementById("remarks");
  root.append(
    el("p", {}, data.remarks.length ? `${data.remarks.length} remarks` : "No remarks: nothing was left as it was."),
  );
  const rows = data.remarks.slice(0, 500).map((each) => {
    const found = each.names
      .map((name) => graphs[graphs.length - 1].valueByName.get(name))
      .find((v) => v !== undefined);
    const place = found === undefined ? cut(each.where, 120) : link(each.where, () => chooseInLast(found));
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
