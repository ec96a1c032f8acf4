// Both bounds by round and by bytes: how far above and below the optimum they are at most, mirrored, on logarithms.
const LEAST = 1e-16;
const MARKS = ["M-4,0a4,4 0 1 0 8,0a4,4 0 1 0 -8,0Z", "M-4,-4H4V4H-4Z", "M0,-5L5,4H-5Z", "M0,-5L5,0L0,5L-5,0Z", "M-5,-4H5L0,5Z", "M-5,0H5M0,-5V5"];

function pointsOf(run) { // the best bounds known after each check; of a screen the objective, as computed
  let primal = Infinity, dual = -Infinity;
  const out = [];
  for (const r of run.trace) if (r.primal !== null) {
    primal = Math.min(primal, r.primal);
    if (r.certified && r.dual !== null) dual = Math.max(dual, r.dual);
    out.push({ round: r.round, bytes: r.bytes, primal, dual: r.certified ? dual : null, certified: r.certified });
  }
  return out;
}

function drawBounds(svg, runs, field, xTitle, marker) {
  const all = runs.map(pointsOf), flat = all.flat();
  const proved = flat.filter((p) => p.dual !== null);
  const lower = Math.max(...proved.map((p) => p.dual), ...runs.map((r) => (r.end ? r.end.dual : -Infinity)));
  const upper = Math.min(...flat.map((p) => p.primal), ...runs.map((r) => (r.end ? r.end.primal : Infinity)));
  const unit = Math.max(Math.abs(lower), Math.abs(upper)) || 1;
  const above = (p) => Math.max((p.primal - lower) / unit, LEAST), below = (p) => Math.max((upper - p.dual) / unit, LEAST);
  const sizes = [...flat.map(above), ...proved.map(below)];
  const b = frameOf(svg, "", xTitle), middle = (b.top + b.bottom) / 2, least = Math.min(...sizes);
  const most = Math.max(...sizes);
  const low = Math.log10(least) - 0.4, high = Math.max(Math.log10(most) + 0.2, low + 1), half = (b.bottom - b.top) / 2 - 6;
  const up = (v) => middle - 6 - ((Math.log10(v) - low) / (high - low)) * (half - 6), down = (v) => 2 * middle - up(v);
  const xs = flat.map((p) => p[field]), x0 = Math.min(...xs.filter((x) => x >= 1)), x1 = Math.max(...xs, x0 * 2);
  const zero = [...xs, marker ?? 1].some((x) => x < 1), first = b.left + 12 + (zero ? 30 : 0); // 0 is left of the logarithms
  const X = (x) => (x < 1 ? b.left + 12 : first + (Math.log10(Math.max(x, x0) / x0) / Math.log10(x1 / x0)) * (b.right - 12 - first));
  if (zero) xTick(svg, b, X(0), "0");
  for (const x of decades(x0, x1)) xTick(svg, b, X(x), field === "bytes" ? size(x) : plain(x));
  const ticks = decades(10 ** low, 10 ** high), each = ticks.filter((_, k) => k % Math.ceil(ticks.length / 6) === 0);
  for (const v of each) { yTick(svg, b, up(v), plain(v)); yTick(svg, b, down(v), plain(v)); }
  el("path", { d: `M${b.left},${middle}H${b.right}`, class: "axis" }, svg);
  el("text", { x: b.left + 8, y: middle - 8, class: "title" }, svg, "↑ objective: above the optimum by at most");
  el("text", { x: b.left + 8, y: middle + 17, class: "title" }, svg, "↓ lower bound: below the optimum by at most");
  all.forEach((points, k) => {
    for (const [y, value, half] of [[up, above, points], [down, below, points.filter((p) => p.dual !== null)]]) {
      el("path", { d: half.map((p, j) => (j ? "L" : "M") + X(p[field]) + "," + y(value(p))).join(""), class: "run r" + (k % 6) }, svg);
      for (const p of half.length <= 60 ? half : half.slice(-1)) {
        const at = { transform: `translate(${X(p[field])},${y(value(p))})` };
        if (p.certified) el("path", { d: MARKS[k % 6], class: "run mark r" + (k % 6), ...at }, svg);
        else el("circle", { r: 2.5, class: "computed", ...at }, svg);
      }
    }
  });
  if (marker !== null) el("path", { d: `M${X(marker)},${b.top}V${b.bottom}`, class: "now" }, svg);
  const last = proved[proved.length - 1];
  if (last) svg.setAttribute("aria-label", `Both bounds of the optimum against ${xTitle}, relative, on logarithmic scales. The last check: objective at most ${fmt(above(last), 2)} above, lower bound at most ${fmt(below(last), 2)} below.`);
}

function recordAt(trace, round) { // the last certified check by then
  let found = null;
  for (const r of trace) if (r.certified && r.round <= round) found = r;
  return found;
}
function bracket(record) {
  return `${fmt(record.dual, 10)} ≤ optimum ≤ ${fmt(record.primal, 10)}, relative gap ${fmt(record.gap, 2)}, certified after round ${record.round}`;
}

function showBounds(frame, marker) {
  const runs = D.kind === "strength" ? [{ name: frame.name, trace: frame.trace, end: frame.end }] : D.runs;
  const drawn = (r) => { const points = pointsOf(r); return points.length > 1 && points.some((p) => p.round >= 1); };
  const traced = runs.filter(drawn), silent = runs.filter((r) => !drawn(r)); // a start that is certified has no round
  const words = $("bounds-words"), at = marker === null ? null : traced[0] && recordAt(traced[0].trace, marker);
  words.textContent = traced.length ? "Distances are relative to the size of the best bounds, and measured from the best bound of the other side. Marks are certified; small grey rings are objectives as cheap checks computed them, of an iterate or of what it was merged into. The orange line is where the slider stands, on the first run. " : "";
  if (D.between) words.textContent += D.between + " ";
  for (const r of silent) words.textContent += `${r.name} ${!r.trace.length ? "has no rounds" : r.trace.some((each) => each.round >= 1) ? "has one check" : "needed no round"} here, and so has no picture${r.end ? `; its bounds: ${fmt(r.end.dual, 10)} ≤ optimum ≤ ${fmt(r.end.primal, 10)}` : ""}. `;
  for (const svg of [$("by-round"), $("by-bytes")]) svg.parentNode.hidden = !traced.length;
  if (!traced.length) { ["by-round", "by-bytes"].forEach((id) => $(id).replaceChildren()); $("runs-legend").replaceChildren(); return; }
  const sent = traced.some((r) => r.trace.some((each) => each.bytes > 0));
  drawBounds($("by-round"), traced, "round", "rounds", marker);
  $("by-bytes").style.display = sent ? "" : "none";
  if (sent) drawBounds($("by-bytes"), traced, "bytes", "bytes sent", at ? at.bytes : null);
  else words.textContent += "Nothing is sent over a network, so that there is no picture by bytes. ";
  const box = $("runs-legend");
  box.replaceChildren();
  traced.forEach((r, k) => {
    const span = tag("span", null, box), svg = el("svg", { viewBox: "-17 -10 34 20", "aria-hidden": "true" });
    el("path", { d: "M-17,0H17", class: "run r" + (k % 6) }, svg);
    el("path", { d: MARKS[k % 6], class: "run mark r" + (k % 6) }, svg);
    span.appendChild(svg);
    span.appendChild(document.createTextNode(r.status ? `${r.name} (${r.status})` : r.name));
  });
  $("round-moment").textContent = at ? bracket(at) : marker === null ? "" : `After round ${marker} nothing is certified yet.`;
}
