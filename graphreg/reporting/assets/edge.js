// The picture of one edge: the penalty along the line of its difference, and the conjugate.
function sliceOf(e, frame) { // f and f* as functions, and the point
  const s = D.slices[D.edges.block[e]], k = frame.edge.slope[e];
  const together = frame.state[e] % 4 < 2, at = { z: together ? 0 : frame.edge.distance[e], t: frame.edge.pull[e], kind: s.kind };
  if (s.kind === "norm") return { ...at, f: (x) => k * Math.abs(x), g: (t) => (Math.abs(t) <= k * (1 + 1e-6) ? 0 : Infinity), edge: k };
  if (s.kind === "quadratic") return { ...at, f: (x) => (k * x * x) / 2, g: (t) => (k > 0 ? (t * t) / (2 * k) : t === 0 ? 0 : Infinity) };
  if (s.kind === "equal") return { ...at, z: 0, f: (x) => (x === 0 ? 0 : Infinity), g: () => 0, wall: 0 };
  return { ...at, f: (x) => k * table(s.s, s.f, Math.abs(x)), g: (t) => k * table(s.t, s.g, Math.abs(t) / k), edge: s.limit === null ? undefined : k * s.limit };
}
function table(x, y, at) {
  if (at > x[x.length - 1] * (1 + 1e-6)) return Infinity; // the numbers have seven digits
  let low = 0, high = x.length - 1;
  while (high - low > 1) { const mid = (low + high) >> 1; if (x[mid] <= at) low = mid; else high = mid; }
  if (y[low] === null || (y[high] === null && at > x[low])) return Infinity;
  return y[low] + ((at - x[low]) / (x[high] - x[low] || 1)) * ((y[high] === null ? y[low] : y[high]) - y[low]);
}

function chart(svg, title, xTitle, f, reach, point, slope, walls) {
  const b = frameOf(svg, title, xTitle), xs = Array.from({ length: 201 }, (_, k) => -reach + (2 * reach * k) / 200);
  const values = xs.map(f).filter(Number.isFinite), most = Math.max(...values, point[1]), top = most > 1e-200 ? 1.15 * most : 1;
  const X = (x) => b.left + ((x + reach) / (2 * reach)) * (b.right - b.left), low = -0.12 * top;
  const Y = (y) => b.bottom - ((y - low) / (top - low)) * (b.bottom - b.top);
  evenly(-reach, reach).forEach((x) => xTick(svg, b, X(x), fmt(x, 3)));
  evenly(0, top, 4).forEach((y) => yTick(svg, b, Y(y), fmt(y, 3)));
  let path = "";
  for (const x of [...xs, 0, ...walls].sort((p, q) => p - q)) { const y = f(x); if (Number.isFinite(y)) path += (path ? "L" : "M") + X(x) + "," + Y(y); }
  el("path", { d: path, class: "curve" }, svg);
  walls.forEach((x) => el("path", { d: `M${X(x)},${b.top}V${Y(0)}`, class: "wall" }, svg));
  const ends = [-reach, reach].map((x) => [x, point[1] + slope * (x - point[0])]);
  const clip = el("clipPath", { id: svg.id + "-clip" }, svg);
  el("rect", { x: b.left, y: b.top, width: b.right - b.left, height: b.bottom - b.top }, clip);
  el("path", { d: "M" + ends.map(([x, y]) => X(x) + "," + Y(y)).join("L"), class: "tangent", "clip-path": `url(#${svg.id}-clip)` }, svg);
  el("circle", { cx: X(point[0]), cy: Y(point[1]), r: 6, class: "point" }, svg);
}

function showEdge(frame) {
  const e = picked.edge, words = $("edge-words");
  if (e === undefined) return;
  const between = `${D.nodes[D.edges.tail[e]]} and ${D.nodes[D.edges.head[e]]}`, term = D.slices[D.edges.block[e]];
  const whole = `The whole edge's share of the gap, its Fenchel-Young residual, is ${fmt(frame.edge.residual[e], 3)}${frame.iterate ? " (of an iterate: not certified)" : ""}.`;
  if (term.kind === "none") {
    words.textContent = `${between}: ${term.name} is neither a norm, a quadratic nor a function of the length, so that no line through 0 stands for it. ${whole}`;
    [$("primal"), $("dual")].forEach((svg) => svg.replaceChildren());
    return;
  }
  const s = sliceOf(e, frame), f = s.f(s.z), g = s.g(s.t), several = term.width > 1;
  const way = several ? (s.z === 0 ? " along its flow" : " along the difference of its ends") : "";
  const typical = Math.max(...frame.edge.distance) || 1, reach = 1.6 * (s.z || (typical < 1e-6 ? 1 : typical));
  const high = 1.35 * (s.edge || Math.abs(s.t) || 1), product = s.z * s.t, residual = f + g - product;
  const equality = Number.isFinite(residual)
    ? `φ(z) + φ*(u) − zu = ${fmt(f)} + ${fmt(g)} − ${fmt(product)} = ${fmt(Math.abs(residual) < 2e-6 * (f + g + Math.abs(product)) ? 0 : residual, 3)}, to the six digits of this page: 0 exactly where u is a slope (subgradient) of φ at z.`
    : `The flow is outside of the domain of φ*, which is +∞ there: u is no slope of φ.`;
  words.textContent = `${between}, ${term.name}${way}: the difference is z = ${fmt(s.z)}${s.z === 0 && frame.edge.distance[e] > 0 ? ` (the ends are ${fmt(frame.edge.distance[e], 2)} apart here)` : ""}, the flow${several ? ", in that direction," : ""} u = ${fmt(s.t)}. ${equality} ${whole}`;
  chart($("primal"), "the penalty φ, and the line of slope u through its point", "difference z", s.f, reach, [s.z, f], s.t, s.wall === 0 ? [0] : []);
  chart($("dual"), "its conjugate φ*, and the line of slope z", several ? "flow u in that direction" : "flow u", s.g, high, [s.t, Number.isFinite(g) ? g : 0], s.z, s.edge ? [-s.edge, s.edge] : []);
  $("primal").setAttribute("aria-label", `The penalty of the edge between ${between} against the difference of its ends. Point: z = ${fmt(s.z)}, φ(z) = ${fmt(f)}; the line through it has the slope u = ${fmt(s.t)}.`);
  $("dual").setAttribute("aria-label", `The conjugate of the penalty against the flow. Point: u = ${fmt(s.t)}, φ*(u) = ${fmt(g)}; the line through it has the slope z = ${fmt(s.z)}.`);
}
