// The graph: drawn once; afterwards only classes and the shapes of marks change.
const n = D.nodes.length, m = D.edges.tail.length, d = D.features.length, NAMED = 8, LETTERS = "ABCDEFGH";
const FEW = 60, R = Math.max(5, Math.min(32, 260 / Math.sqrt(n))), WIDTHS = [1, 1.6, 2.4, 3.4, 4.6, 6];
const THIN = Math.max(0.35, Math.min(2, 40 / Math.sqrt(m + 1)));
const marks = [], outer = [], lines = [], letters = [], said = { node: [], edge: [] };
const incident = Array.from({ length: n }, () => []);
D.edges.tail.forEach((i, e) => { incident[i].push(e); incident[D.edges.head[e]].push(e); });
const polygon = (k, turn) => "M" + Array.from({ length: k }, (_, j) => {
  const a = turn + (2 * Math.PI * j) / k;
  return (1.2 * R * Math.cos(a)).toFixed(1) + "," + (1.2 * R * Math.sin(a)).toFixed(1);
}).join("L") + "Z";
const CIRCLE = `M${-R},0a${R},${R} 0 1 0 ${2 * R},0a${R},${R} 0 1 0 ${-2 * R},0Z`, UP = -Math.PI / 2;
const c = 0.5 * R, PLUS = `M${-c},${-2.2 * c}H${c}V${-c}H${2.2 * c}V${c}H${c}V${2.2 * c}H${-c}V${c}H${-2.2 * c}V${-c}H${-c}Z`;
const SHAPES = [CIRCLE, polygon(4, UP / 2), polygon(3, UP), polygon(4, UP), polygon(3, -UP), polygon(6, 0), polygon(5, UP), PLUS];

function patterns(svg) {
  const defs = el("defs", {}, svg);
  const stripes = (k, base, line, turn, width) => {
    const p = el("pattern", { id: "p" + k, width: 14, height: 14, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${turn})` }, defs);
    el("rect", { width: 14, height: 14, fill: base }, p);
    el("rect", { width: width, height: 14, fill: line }, p);
  };
  stripes(1, "#fbd38d", "#e0a84a", 45, 3); stripes(2, "#2f8f4e", "#fff", 45, 3); stripes(4, "#a32020", "#fff", -45, 3);
  stripes(5, "#a5dcef", "#2b6f86", -45, 3); stripes(6, "#8a6a2f", "#fff", 0, 4); stripes(7, "#f59ab5", "#7a2440", 90, 3);
}

function lineOf(e, parallel) {
  const i = D.edges.tail[e], j = D.edges.head[e], [x1, y1, x2, y2] = [D.x[i], D.y[i], D.x[j], D.y[j]];
  if (!parallel) return `M${x1},${y1}L${x2},${y2}`;
  const bend = 40 * parallel, length = Math.hypot(x2 - x1, y2 - y1) || 1;
  return `M${x1},${y1}Q${(x1 + x2) / 2 - (bend * (y2 - y1)) / length},${(y1 + y2) / 2 + (bend * (x2 - x1)) / length} ${x2},${y2}`;
}

function drawGraph() {
  const svg = $("graph");
  svg.setAttribute("viewBox", `0 0 ${D.width} ${D.height}`);
  patterns(svg);
  if (D.others) el("path", { d: D.others, class: "ground" }, svg);
  const shapes = el("g", {}, svg), edges = el("g", { id: "edges" }, svg), hits = el("g", { class: "hits" }, svg), points = el("g", {}, svg);
  const seen = new Map();
  for (let e = 0; e < m; e++) {
    const key = D.edges.tail[e] * n + D.edges.head[e], parallel = seen.get(key) || 0, path = lineOf(e, parallel);
    seen.set(key, parallel + 1);
    lines.push(el("path", { d: path, "data-e": e }, edges));
    if (m <= 1500) el("path", { d: path, class: "hit", "data-e": e }, hits);
  }
  for (let i = 0; i < n; i++) {
    const map = D.shapes && i < D.shapes.length;
    const mark = map ? el("path", { d: D.shapes[i], "data-i": i }, shapes) : el("path", { transform: `translate(${D.x[i]},${D.y[i]})`, "data-i": i }, points);
    marks.push(mark);
    outer.push(map);
    if (n <= FEW) {
      letters.push(el("text", { x: D.x[i], y: D.y[i], class: "letter" }, points));
      if (!map) nameOf(i, points);
    }
  }
  const find = (event) => {
    const at = event.target.dataset || {};
    if (at.i !== undefined) pick({ node: Number(at.i) });
    else if (at.e !== undefined) pick({ edge: Number(at.e) });
  };
  svg.addEventListener("mouseover", find);
  svg.addEventListener("click", find);
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    pick({ node: ((picked.node === undefined ? -(step > 0) : picked.node) + step + n) % n });
  });
}
// A name stands above its node, or on the side that is freest of edges where that is clearly freer and has room.
const SIDES = [[0, -1], [0, 1], [1, 0], [-1, 0]], FREER = 0.3, LETTER = 16;
function nameOf(i, points) {
  const name = short(D.nodes[i]), x = D.x[i], y = D.y[i], far = R + 16;
  const taken = incident[i].map((e) => D.edges.tail[e] + D.edges.head[e] - i).map((j) => Math.atan2(D.y[j] - y, D.x[j] - x));
  const apart = (a, b) => Math.abs(Math.atan2(Math.sin(a - b), Math.cos(a - b)));
  const free = ([dx, dy]) => taken.reduce((least, turn) => Math.min(least, apart(turn, Math.atan2(dy, dx))), Math.PI);
  const room = ([dx, dy]) => dx ? Math.abs(x + dx * (far + LETTER * name.length) - D.width / 2) < D.width / 2 : dy < 0 || y + far + 30 < D.height;
  const [dx, dy] = SIDES.filter(room).reduce((best, side) => (free(side) > free(best) + FREER ? side : best));
  const side = ["name left", "name", "name right"][dx + 1], down = dx ? 10 : dy > 0 ? 24 : 0;
  el("text", { x: x + dx * far, y: y + dy * far + down, class: side }, points, name);
}
const short = (name) => (name.length > 14 ? name.slice(0, 13) + "…" : name);

// ---- what a frame shows ---------------------------------------------------------------------------------------------
function sizesOf(frame) {
  if (!frame.sizes) {
    frame.sizes = new Map();
    frame.cluster.forEach((k) => k >= 0 && frame.sizes.set(k, (frame.sizes.get(k) || 0) + 1));
  }
  return frame.sizes;
}
function classOf(frame, i, shade, range) {
  const k = frame.cluster[i];
  if (shade >= 0) return "q" + Math.max(0, Math.min(8, Math.floor((9 * (frame.w[i * d + shade] - range[0])) / (range[1] - range[0] || 1))));
  if (k < 0) return "latent";
  if (k < NAMED && (sizesOf(frame).get(k) > 1 || n <= NAMED)) return "c" + k;
  return sizesOf(frame).get(k) > 1 ? "other" : "single";
}
function rangeOf(j) { // of a coefficient, over all frames
  let low = Infinity, high = -Infinity;
  for (const frame of D.frames.map(decoded)) for (let i = j; i < n * d; i += d) { low = Math.min(low, frame.w[i]); high = Math.max(high, frame.w[i]); }
  return [low, high];
}
const known = { range: new Map(), flow: null };
function once(map, key, find) {
  if (!map.has(key)) map.set(key, find());
  return map.get(key);
}
function largestFlow() { // over all frames
  if (known.flow === null) known.flow = D.frames.map(decoded).reduce((most, frame) => frame.edge.flow.reduce((a, b) => Math.max(a, b), most), 0) || 1;
  return known.flow;
}
function edgeClass(frame, e) {
  const full = frame.state[e] >= 4, limited = D.slices[D.edges.block[e]].limited;
  const share = limited ? Math.min(1, frame.edge.used[e]) : frame.edge.flow[e] / largestFlow();
  return { kind: full ? "full" : limited ? "slack" : "free", width: Math.min(5, Math.floor(share * 5.999)) };
}
function set(element, store, k, value, attribute) {
  const key = attribute + k;
  if (store[key] === value) return;
  store[key] = value;
  element.setAttribute(attribute, value);
}
function paintEdge(frame, e) {
  const look = edgeClass(frame, e), width = WIDTHS[look.width] * THIN * (look.kind === "full" ? 1.2 : 1);
  set(lines[e], said.edge, e, "e " + look.kind + (picked.edge === e ? " picked" : ""), "class");
  set(lines[e], said.edge, e, width.toFixed(2), "stroke-width");
}
function paintNode(frame, i, shade, range) {
  const look = classOf(frame, i, shade, range), k = frame.cluster[i], named = shade < 0 && look[0] === "c";
  set(marks[i], said.node, i, (outer[i] ? "m " : "n ") + look + (picked.node === i ? " picked" : ""), "class");
  if (!outer[i]) set(marks[i], said.node, i, named ? SHAPES[k] : CIRCLE, "d");
  if (n <= FEW) letters[i].textContent = named ? LETTERS[k] : "";
}
const rangeFor = (shade) => (shade >= 0 ? once(known.range, shade, () => rangeOf(shade)) : null);
function showGraph(frame, shade) {
  const range = rangeFor(shade);
  for (let e = 0; e < m; e++) paintEdge(frame, e);
  for (let i = 0; i < n; i++) paintNode(frame, i, shade, range);
  $("graph").setAttribute("aria-label", `The graph: ${many(n, "node")}, ${many(m, "edge")}. ${frame.said}. ${countsOf(frame)}. The tables below have all numbers.`);
  legend(frame, shade, range);
}
function countsOf(frame) {
  let full = 0, limited = 0;
  for (let e = 0; e < m; e++) { full += frame.state[e] >= 4; limited += D.slices[D.edges.block[e]].limited; }
  return limited ? `${full} of ${limited} edges saturated` : "no edge has a capacity";
}

function legend(frame, shade, range) {
  const box = $("legend");
  box.replaceChildren();
  const item = (draw, text) => {
    const span = tag("span", null, box), svg = el("svg", { viewBox: "-34 -20 68 40", "aria-hidden": "true" });
    span.appendChild(svg);
    draw(svg);
    span.appendChild(document.createTextNode(text));
  };
  const mark = (cls, k) => (svg) => D.shapes ? el("rect", { x: -28, y: -16, width: 56, height: 32, class: "m " + cls }, svg)
    : el("path", { d: k === undefined ? CIRCLE : SHAPES[k], class: "n " + cls, transform: `scale(${15 / R})` }, svg);
  const line = (cls, width) => (svg) => el("path", { d: "M-34,0H34", class: "e " + cls, "stroke-width": width }, svg);
  if (shade >= 0) [0, 4, 8].forEach((q) => item(mark("q" + q), fmt(range[0] + ((range[1] - range[0]) * (q + 0.5)) / 9, 3)));
  else {
    const sizes = sizesOf(frame), named = [...sizes.keys()].filter((k) => k < NAMED && (sizes.get(k) > 1 || n <= NAMED)).sort((a, b) => a - b);
    for (const k of named) item(mark("c" + k, k), `${LETTERS[k]}: ${many(sizes.get(k), "node")}`);
    const rest = [...sizes.keys()].filter((k) => !named.includes(k)), several = rest.filter((k) => sizes.get(k) > 1).length;
    if (several) item(mark("other"), many(several, "smaller cluster"));
    if (rest.length > several) item(mark("single"), many(rest.length - several, "node") + (rest.length - several > 1 ? " by themselves" : " by itself"));
    if (D.latent) item(mark("latent"), "latent nodes");
  }
  if (D.slices.some((s) => s.limited)) {
    item(line("full", 6), "saturated: all capacity used");
    item(line("slack", 3), "slack: width is the share used");
  }
  if (m && D.slices.some((s) => !s.limited)) item(line("free", 3), "no capacity: width is the flow");
}
