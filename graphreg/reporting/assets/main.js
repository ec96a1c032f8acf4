// Sliders, choices and tables; what is picked.
const picked = {};
let current = 0, marker = null;
const shadeOf = () => Number($("shade").value);

function moment(frame) {
  const words = [frame.said];
  if (current > 0 && D.kind === "strength") words.push(changes(decoded(D.frames[current - 1]), frame));
  return words.join(". ") + ". " + countsOf(frame) + ".";
}
function changes(before, now) { // what happened since the position before
  let fused = 0, split = 0, full = 0, slack = 0;
  for (let e = 0; e < m; e++) {
    const a = before.state[e], b = now.state[e];
    fused += a % 4 >= 2 && b % 4 < 2;
    split += a % 4 < 2 && b % 4 >= 2;
    full += a < 4 && b >= 4;
    slack += a >= 4 && b < 4;
  }
  return `Since the position before: ${many(fused, "edge")} came together, ${split} came apart or ${split === 1 ? "is" : "are"} undecided again; ${full} became saturated, ${slack} slack`;
}

function show() {
  const frame = decoded(D.frames[current]);
  if (D.kind === "round") marker = frame.round;
  showGraph(frame, shadeOf());
  $("moment").textContent = moment(frame);
  $("slider").setAttribute("aria-valuetext", frame.label);
  showDetail(frame);
  showEdge(frame);
  if (D.kind === "strength") checks(frame.trace);
  showBounds(frame, marker);
  if ($("tables").open) fillTables(frame);
}

function pick(what) {
  if (picked.node === what.node && picked.edge === what.edge) return;
  const before = { ...picked };
  if (what.node !== undefined) {
    picked.node = what.node;
    picked.edge = undefined;
    $("node").value = what.node;
    fillEdges();
    if (incident[what.node].length) $("edge").value = "";
  } else {
    picked.edge = what.edge;
    picked.node = undefined;
    $("node").value = D.edges.tail[what.edge];
    fillEdges();
    $("edge").value = what.edge;
  }
  const frame = decoded(D.frames[current]), shade = shadeOf();
  for (const each of [before, picked]) {
    if (each.node !== undefined) paintNode(frame, each.node, shade, rangeFor(shade));
    if (each.edge !== undefined) paintEdge(frame, each.edge);
  }
  showDetail(frame);
  showEdge(frame);
}
function fillEdges() {
  const box = $("edge"), i = Number($("node").value);
  box.replaceChildren(new Option(incident[i].length ? "choose an edge" : "no edges", ""));
  for (const e of incident[i]) {
    const other = D.edges.tail[e] === i ? D.edges.head[e] : D.edges.tail[e];
    box.add(new Option(`to ${D.nodes[other]}${D.slices.length > 1 ? ` (${D.slices[D.edges.block[e]].name})` : ""}`, e));
  }
}

// ---- words ----------------------------------------------------------------------------------------------------------
const stateOf = (frame, e) => (frame.iterate ? "not certified" : STATES[frame.state[e] % 4]);
function capacityOf(frame, e) {
  if (!D.slices[D.edges.block[e]].limited) return "none";
  return frame.edge.used[e] > 0 ? fmt(frame.edge.flow[e] / frame.edge.used[e]) : "not used";
}
function clusterOf(frame, i) {
  const k = frame.cluster[i];
  if (k < 0) return "latent node";
  const size = sizesOf(frame).get(k);
  return (k < NAMED && (size > 1 || n <= NAMED) ? LETTERS[k] + ", " : "") + (size > 1 ? `${size} nodes` : "by itself");
}
function nodeRows(frame, i, most) {
  const rows = [["cluster", clusterOf(frame, i)]];
  for (let j = 0; j < Math.min(d, most); j++) rows.push([D.features[j], fmt(frame.w[i * d + j])]);
  if (d > most) rows.push(["", `and ${d - most} more in the table`]);
  if (!frame.iterate) {
    rows.push(["share of the gap: its samples", fmt(frame.node[i], 3)]);
    if (D.grounded) rows.push(["share of the gap: its own terms", fmt(frame.ground[i], 3)]);
  }
  return rows;
}
function edgeRows(frame, e) {
  return [["term", D.slices[D.edges.block[e]].name], ["ends", stateOf(frame, e)], ["difference", fmt(frame.edge.distance[e])], ["flow", fmt(frame.edge.flow[e])],
    ["capacity in its direction", capacityOf(frame, e)], ["used", D.slices[D.edges.block[e]].limited ? fmt(100 * frame.edge.used[e], 3) + " %" : "no capacity"],
    ["share of the gap", fmt(frame.edge.residual[e], 3)]];
}
function showDetail(frame) {
  const box = $("detail"), edge = picked.edge !== undefined;
  box.replaceChildren();
  if (!edge && picked.node === undefined) return;
  tag("h3", edge ? `${D.nodes[D.edges.tail[picked.edge]]} — ${D.nodes[D.edges.head[picked.edge]]}` : D.nodes[picked.node], box);
  const table = tag("table", null, box);
  for (const [name, value] of edge ? edgeRows(frame, picked.edge) : nodeRows(frame, picked.node, 12)) {
    const row = tag("tr", null, table);
    tag("th", name, row).setAttribute("scope", "row");
    tag("td", value, row);
  }
}
function fillTables(frame) {
  const box = $("table-box");
  box.replaceChildren();
  tag("p", frame.said + ".", box);
  const make = (heads, count, cells) => {
    const table = tag("table", null, box), head = tag("tr", null, tag("thead", null, table)), body = tag("tbody", null, table);
    for (const each of heads) tag("th", each, head).setAttribute("scope", "col");
    for (let k = 0; k < count; k++) { const row = tag("tr", null, body); for (const each of cells(k)) tag("td", each, row); }
  };
  const names = nodeRows(frame, 0, d).map((row) => row[0]);
  make(["node", ...names], n, (i) => [D.nodes[i], ...nodeRows(frame, i, d).map((row) => row[1])]);
  if (m) make(["tail", "head", ...edgeRows(frame, 0).map((row) => row[0])], m, (e) => [D.nodes[D.edges.tail[e]], D.nodes[D.edges.head[e]], ...edgeRows(frame, e).map((row) => row[1])]);
}

// ---- beginning ------------------------------------------------------------------------------------------------------
function checks(trace) { // the slider over the checks of a run, where the frames are not its rounds
  const box = $("rounds");
  $("rounds-box").hidden = trace.length < 2;
  box.max = Math.max(trace.length - 1, 0);
  box.value = box.max;
  marker = trace.length ? trace[box.max].round : null;
}
function begin() {
  drawGraph();
  $("shade").add(new Option("clusters", -1));
  D.features.slice(0, 60).forEach((name, j) => $("shade").add(new Option(name, j)));
  D.nodes.forEach((name, i) => $("node").add(new Option(name, i)));
  if (D.frames.length > 1) {
    const slider = $("slider");
    current = D.kind === "strength" ? D.start : D.frames.length - 1;
    slider.max = D.frames.length - 1;
    slider.value = current;
    $("slider-box").hidden = false;
    $("slider-label").textContent = D.kind === "strength" ? D.parameter : "round";
    $("slider-ends").textContent = `${D.frames[0].label} to ${D.frames[D.frames.length - 1].label}`;
    slider.addEventListener("input", () => { current = Number(slider.value); show(); });
  }
  if (D.kind === "one") checks(D.runs.length ? D.runs[0].trace : []);
  $("rounds").addEventListener("input", () => {
    const frame = D.frames[current], trace = D.kind === "strength" ? frame.trace : D.runs[0].trace;
    marker = trace[Number($("rounds").value)].round;
    showBounds(frame, marker);
  });
  $("shade").addEventListener("change", show);
  $("shown").addEventListener("change", () => { $("edges").parentNode.classList.toggle("none", $("shown").value === "none"); $("edges").parentNode.classList.toggle("only-full", $("shown").value === "full"); });
  $("shown").value = m > 4000 ? "full" : "all";
  $("shown").dispatchEvent(new Event("change"));
  $("node").addEventListener("change", () => pick({ node: Number($("node").value) }));
  $("edge").addEventListener("change", () => $("edge").value !== "" && pick({ edge: Number($("edge").value) }));
  $("tables").addEventListener("toggle", () => $("tables").open && fillTables(decoded(D.frames[current])));
  window.addEventListener("beforeprint", () => document.querySelectorAll("main > section > details:not(#tables)").forEach((each) => { each.open = true; }));
  $("edge-section").hidden = !m;
  fillEdges();
  show();
  if (m) pick({ edge: D.begin });
}
begin();
