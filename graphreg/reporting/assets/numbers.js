// Reading the data of the page, and writing numbers, elements and axes.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const STATES = ["fused", "near", "split", "undecided"];

function bytes(text) {
  const raw = atob(text), out = new Uint8Array(raw.length);
  for (let k = 0; k < raw.length; k++) out[k] = raw.charCodeAt(k);
  return out;
}
const floats = (text) => new Float32Array(bytes(text).buffer);

function decoded(frame) { // once, when it is first shown
  if (!frame.ready) {
    for (const name of ["w", "node", "ground"]) frame[name] = floats(frame[name]);
    frame.cluster = new Int16Array(bytes(frame.cluster).buffer);
    frame.state = bytes(frame.state);
    frame.edge = Object.fromEntries(D.numbers.map((name, k) => [name, floats(frame.edge[k])]));
    frame.ready = true;
  }
  return frame;
}

function fmt(x, digits = 4) {
  if (x === null || Number.isNaN(x)) return "not known";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  if (x === 0) return "0";
  const size = Math.abs(x);
  const text = size >= 1e6 || size < 1e-4 ? power(x, digits) : String(Number(x.toPrecision(digits)));
  return text.replace("-", "−");
}
function power(x, digits) {
  const [head, tail] = x.toExponential(digits - 1).split("e");
  return (Number(head) === 1 ? "" : Number(head) + " · ") + "10" + raised(Number(tail));
}
const raised = (k) => [...String(k)].map((c) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[c] || "⁻").join("");
const plain = (x) => (x >= 1e-3 && x < 1e6 ? String(Number(x.toPrecision(3))).replace(/\B(?=(\d{3})+$)/g, x >= 1 ? "," : "") : power(x, 1));
const many = (k, thing) => `${k} ${thing}${k === 1 ? "" : "s"}`;
function size(x) { // of bytes
  const k = Math.min(3, Math.max(0, Math.floor(Math.log10(Math.max(x, 1)) / 3)));
  return Number((x / 1000 ** k).toPrecision(3)) + [" B", " kB", " MB", " GB"][k];
}

function el(name, attributes = {}, parent = null, text = null) {
  const out = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) out.setAttribute(key, value);
  if (text !== null) out.textContent = text;
  if (parent) parent.appendChild(out);
  return out;
}
function tag(name, text = null, parent = null) {
  const out = document.createElement(name);
  if (text !== null) out.textContent = text;
  if (parent) parent.appendChild(out);
  return out;
}

// ---- axes -----------------------------------------------------------------------------------------------------------
function decades(low, high) { // 1, 2, 5, 10, 20, ...; only the powers of ten where there are many of them
  if (!(low > 0 && high < Infinity)) return [];
  const many = Math.log10(high / low), steps = many > 2.5 ? [1] : [1, 2, 5], out = [];
  const skip = Math.max(1, Math.ceil(many / 7));
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++)
    if (k % skip === 0) for (const s of steps) out.push(Number((s * 10 ** k).toPrecision(1)));
  return out.filter((x) => x >= low * 0.999 && x <= high * 1.001);
}
function evenly(low, high, most = 5) {
  const rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * unit).find((s) => s >= rough), out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) out.push(Number((k * step).toPrecision(12)));
  return out;
}

const BOX = { width: 520, height: 340, left: 70, right: 16, top: 30, bottom: 44 };
function frameOf(svg, title, xTitle) {
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${BOX.width} ${BOX.height}`);
  const { left, top } = BOX, right = BOX.width - BOX.right, bottom = BOX.height - BOX.bottom;
  el("text", { x: left, y: 18, class: "title" }, svg, title);
  el("text", { x: (left + right) / 2, y: BOX.height - 8, class: "title", "text-anchor": "middle" }, svg, xTitle);
  el("path", { d: `M${left},${top}V${bottom}H${right}`, class: "axis" }, svg);
  return { left, top, right, bottom };
}
function xTick(svg, b, x, text) {
  el("path", { d: `M${x},${b.top}V${b.bottom}`, class: "grid" }, svg);
  el("text", { x, y: b.bottom + 17, class: "tick", "text-anchor": "middle" }, svg, text);
}
function yTick(svg, b, y, text) {
  el("path", { d: `M${b.left},${y}H${b.right}`, class: "grid" }, svg);
  el("text", { x: b.left - 6, y: y + 4, class: "tick", "text-anchor": "end" }, svg, text);
}
