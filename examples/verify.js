#!/usr/bin/env node
// A second checker of proofs, written from docs/proofs.md alone: node verify.js proof.json [HASH]
// Integers of any size (BigInt) are all it takes. Exit status: 0 proved, 1 not proved, 2 a mistake on the command line,
// 8 proved, but only among the w of a box. It has no budget against hostile files: that is graphreg/verify.py's.
"use strict";
const fs = require("fs"), crypto = require("crypto");
const FORMAT = "graphreg-proof-1", UNIT = 200n, WIDE = 300n, ONE = 1n << WIDE, BOX = 1n << 1000n;
const need = (ok, what = "outside the domain") => { if (!ok) throw new Error(what); };

// ---- rationals [p, q], q > 0 ----
const abs = (a) => (a < 0n ? -a : a);
const bits = (a) => { const s = abs(a).toString(16); return BigInt(4 * s.length + 28 - Math.clz32(`0x${s[0]}`)); };
const gcd = (a, b) => { a = abs(a); while (b) [a, b] = [b, a % b]; return a; };
const odd = (q) => { let k = 0n; while (!(q & 1n)) { q >>= 1n; k++; } return [q, k]; };
const R = (p, q = 1n) => { if ((q & (q - 1n)) !== 0n && bits(q) > 4000n) { const g = gcd(p, q); return [p / g, q / g]; } return [p, q]; };
const add = (a, b) => {
  if (a[1] === b[1]) return R(a[0] + b[0], a[1]);
  const [x, i] = odd(a[1]), [y, j] = odd(b[1]), g = x === y ? x : gcd(x, y), k = i > j ? i : j;  // the least common one
  return R(a[0] * (y / g << k - i) + b[0] * (x / g << k - j), x / g * y << k);
};
const mul = (a, b) => R(a[0] * b[0], a[1] * b[1]);
const div = (a, b) => (b[0] < 0n ? R(-a[0] * b[1], -a[1] * b[0]) : R(a[0] * b[1], a[1] * b[0]));
const neg = (a) => [-a[0], a[1]], sub = (a, b) => add(a, neg(b)), mag = (a) => [abs(a[0]), a[1]];
const cmp = (a, b) => { const v = a[0] * b[1] - b[0] * a[1]; return v < 0n ? -1 : v > 0n ? 1 : 0; };
const le = (a, b) => cmp(a, b) <= 0, max = (a, b) => (cmp(a, b) < 0 ? b : a), min = (a, b) => (cmp(a, b) < 0 ? a : b);
const Z = [0n, 1n], I = [1n, 1n], half = (a) => [a[0], 2n * a[1]], sign = (a) => (a[0] > 0n ? 1 : a[0] < 0n ? -1 : 0);
const sum = (v) => v.reduce(add, Z), dot = (a, b) => sum(a.map((x, i) => mul(x, b[i])));
const ceil = (p, q) => (p >= 0n ? (p + q - 1n) / q : -(-p / q));
const up = (a, s = UNIT) => ceil(a[0] << s, a[1]);

// ---- reading: strict JSON, numbers, shapes ----
function parse(text) {  // no floats, no key twice
  const TOKEN = /[ \t\n\r]*("(?:[^"\\]|\\.)*"|[{}[\],:]|true|false|null|-?[0-9]{1,9}(?![0-9.eE]))/y;
  need(/^[\x00-\x7f]*$/.test(text), "not ASCII");
  const next = () => { const m = TOKEN.exec(text); need(m, "broken JSON, or a number that is no small integer"); return m[1]; };
  const list = (end, read) => {  // what stands between commas, up to the end
    const at = TOKEN.lastIndex;
    if (next() === end) return;
    TOKEN.lastIndex = at;
    for (;;) { read(); const t = next(); if (t === end) return; need(t === ",", "broken JSON"); }
  };
  const value = () => {
    const t = next();
    if (t === "[") { const out = []; list("]", () => out.push(value())); return out; }
    if (t === "{") {
      const out = new Map();
      list("}", () => { const key = value(); need(typeof key === "string" && !out.has(key) && next() === ":", "a key twice"); out.set(key, value()); });
      return Object.fromEntries(out);
    }
    need(!"]},:".includes(t), "broken JSON");
    return JSON.parse(t);
  };
  const found = value();
  need(/^[ \t\n\r]*$/.test(text.slice(TOKEN.lastIndex)), "broken JSON");
  return found;
}
const NUMBER = /^(-?)(0|[1-9a-f][0-9a-f]{0,16383})(?:p(-?[1-9][0-9]{0,3}))?(?:\/([1-9a-f][0-9a-f]{0,16383}))?$/;
const number = (s) => {
  const m = typeof s === "string" && NUMBER.exec(s);
  need(m, "not a number: " + s);
  const p = BigInt("0x" + m[2]), e = BigInt(m[3] || 0), q = BigInt("0x" + (m[4] || "1"));
  return R((m[1] ? -p : p) << (e > 0n ? e : 0n), q << (e < 0n ? -e : 0n));
};
const spell = (x) => {  // of a finite double
  if (x === 0) return "0";
  let [p, e] = [Math.abs(x), 0];
  while (!Number.isInteger(p)) { p *= 2; e--; }
  let n = BigInt(p);
  while (!(n & 1n)) { n >>= 1n; e++; }
  return (x < 0 ? "-" : "") + n.toString(16) + (e ? "p" + e : "");
};
const ldexp = (x, e) => { for (; e > 0; e--) x *= 2; for (; e < 0; e++) x /= 2; return x; };
const double = (s) => {
  const m = typeof s === "string" && NUMBER.exec(s);
  need(m && !m[4] && m[2].length < 15, "no double: " + s);
  const x = ldexp(Number(BigInt(`0x${m[2]}`)) * (m[1] ? -1 : 1), Number(m[3] || 0));
  need(isFinite(x) && spell(x) === s, "no double: " + s);
  return x;
};
const positive = (s) => { const x = double(s); need(x > 0, "not positive: " + s); return x; };
const rational = (x) => { let q = 1n; while (!Number.isInteger(x)) { x *= 2; q *= 2n; } return [BigInt(x), q]; };
const exact = (s) => rational(double(s));
const array = (data, read, length, ...rest) => {
  need(Array.isArray(data) && (length === null || data.length === length), "no list of " + length);
  return data.map((x) => (rest.length ? array(x, read, ...rest) : read(x)));
};
const whole = (low, high) => (i) => { need(Number.isInteger(i) && low <= i && i < high, "no integer in " + [low, high - 1]); return i; };
const fields = (data, names) => {
  need(data && typeof data === "object" && !Array.isArray(data), "no object");
  need(Object.keys(data).sort().join(" ") === names.split(" ").sort().join(" "), "the fields are " + names);
  return data;
};
const distinct = (names) => {
  need(Array.isArray(names) && names.length && names.every((x) => typeof x === "string"), "names are strings");
  const seen = new Set();
  for (const x of names) need(!seen.has(x) && seen.add(x), `the name ${JSON.stringify(x)} stands twice`);
};
const ascii = (data) => JSON.stringify(data).replace(/[\u007f-\uffff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const quoted = (name) => `'${ascii(name).slice(1, -1)}'`;
const byCodePoint = (a, b) => {
  const [x, y] = [a, b].map((s) => Array.from(s, (c) => c.codePointAt(0)));
  for (let k = 0; k < x.length && k < y.length; k++) if (x[k] !== y[k]) return x[k] - y[k];
  return x.length - y.length;
};

// ---- short numbers for people: at most a (side -1), or at least a (side 1) ----
const repr = (x) => {  // as Python writes a double
  const size = Math.abs(x);
  if (size === 0 || (1e-4 <= size && size < 1e16)) return String(x) + (Number.isInteger(x) ? ".0" : "");
  return x.toExponential().replace(/(?<=[+-])(?=\d$)/, "0");
};
const decimal = (s) => {
  const [digits, e = 0] = s.split("e"), [front, behind = ""] = digits.split("."), k = BigInt(e) - BigInt(behind.length);
  return [BigInt(front + behind) * 10n ** (k > 0n ? k : 0n), 10n ** (k < 0n ? -k : 0n)];
};
const nearest = ([p, q], size) => {  // 64 bits of p / q, and one that says whether anything is left: Number rounds once
  const k = 64 - size, top = abs(p) << BigInt(Math.max(k, 0)), below = q << BigInt(Math.max(-k, 0));
  const y = ldexp(Number((top / below << 1n) | (top % below ? 1n : 0n)), -k - 1);
  return p < 0n ? -y : y;
};
const next = (y, side) => {  // the double after y, which is not 0
  const x = new Float64Array([y]), word = new BigInt64Array(x.buffer);
  word[0] += BigInt(y > 0 ? side : -side);
  return x[0];
};
const shown = (a, side) => {
  const g = gcd(...a), p = a[0] / g, q = a[1] / g, size = Number(bits(p) - bits(q));
  if (Math.abs(size) < 1000) {
    let y = nearest([p, q], size);
    while (side * cmp(decimal(repr(y)), a) < 0) y = next(y, side);
    return repr(y);
  }
  const power = (k) => (k > 0 ? [1n << BigInt(k), 1n] : [1n, 1n << BigInt(-k)]);
  const k = size - (cmp(mag(a), power(size)) < 0 ? 1 : 0);  // 2^k <= |a| < 2^(k + 1)
  return `${p < 0n ? "-" : ""}2^${k + (side * sign(a) > 0 && cmp(mag(a), power(k)) > 0 ? 1 : 0)}`;
};

// ---- upper bounds ----
const isqrt = (n) => { if (n < 2n) return n; let x = 1n << (bits(n) / 2n + 1n); for (;;) { const y = (x + n / x) >> 1n; if (y >= x) return x; x = y; } };
const sqrtUp = (n) => (n > 0n ? isqrt(n - 1n) + 1n : 0n);
const root = (a) => [sqrtUp(up(a, 2n * UNIT)), 1n << UNIT];
const log = (a) => {  // 2^32 log(1 + e), log(1 + e) <= e - e^2/2 + ... + e^9/9 and e s, s right within a few units
  let y = up(a, WIDE), s = 0n;
  for (let k = 0; k < 32; k++) y = sqrtUp(y << WIDE);
  const e = y - ONE;
  for (let i = 9n; i > 0n; i--) s = ONE / i - ((e * s) >> WIDE);
  return R(e * s + 8n * abs(e), 1n << (2n * WIDE - 32n));
};
const exp = (a) => {
  need(cmp(a, [4096n, 1n]) < 0, "exp of more than 4096");
  const h = up(max(a, [-4096n, 1n]), WIDE - 32n);
  let t = ONE;
  for (let i = 16n; i > 0n; i--) t = ONE + ((t * h) >> WIDE) / i;
  t += 8n;
  for (let k = 0; k < 32; k++) t = ceil(t * t, ONE);
  return [t, ONE];
};
const entropy = (q) => { need(q[0] >= 0n); return q[0] ? mul(q, log(q)) : Z; };
const huber = (square, z, d) => (le(square, mul(d, d)) ? half(square) : mul(d, sub(z, half(d))));
const soft = (v) => half(mul(v, v)), hinge = (x, y) => max(sub(I, mul(y, x)), Z), square = (b, y) => mul(b, add(half(b), y));

// ---- losses: value l(x; y), conjugate l*(b; y) in its domain, the target, and how it goes along a direction ----
const GROWS = 0, STAYS = 1, FALLS = 2;
const label = (y) => { need(y === "1" || y === "-1", "the labels are -1 and 1"); return exact(y); };
const count = (y) => { const n = exact(y); need(n[0] >= 0n, "a count"); return n; };
const none = (parameter) => { need(parameter === null, "no parameter"); };
const against = (v, y, then) => (sign(mul(v, y)) > 0 ? then : GROWS);
const LOSS = {
  squared: { value: (p, x, y) => soft(sub(x, y)), conjugate: (p, b, y) => square(b, y) },
  mean: {
    value: (p, x, y) => sum(x.map((v, k) => soft(sub(v, y[k])))),
    conjugate: (p, b, y) => sum(b.map((v, k) => square(v, y[k]))),
    target: (y, k) => array(y, exact, k),
  },
  logistic: {
    value: (p, x, y) => add(max(neg(mul(y, x)), Z), log(add(I, exp(neg(mag(x)))))),
    conjugate: (p, b, y) => add(entropy(neg(mul(y, b))), entropy(add(I, mul(y, b)))),
    target: label, along: (v, y) => against(v, y, FALLS),
  },
  poisson: {
    value: (p, x, y) => sub(exp(x), mul(y, x)),
    conjugate: (p, b, y) => sub(entropy(add(b, y)), add(b, y)),
    target: count, along: (v, y) => (sign(v) < 0 && sign(y) === 0 ? FALLS : GROWS),
  },
  huber: {
    parameter: (s) => [rational(positive(s))],
    value: (p, x, y) => huber(mul(sub(x, y), sub(x, y)), mag(sub(x, y)), p[0]),
    conjugate: (p, b, y) => { need(le(mag(b), p[0])); return square(b, y); },
  },
  quantile: {
    parameter: (s) => { const tau = positive(s); need(tau < 1, "tau"); return [rational(tau), rational(1 - tau)]; },
    value: (p, x, y) => max(neg(mul(p[0], sub(x, y))), mul(p[1], sub(x, y))),
    conjugate: (p, b, y) => { need(le(neg(p[0]), b) && le(b, p[1])); return mul(b, y); },
  },
  multinomial: {
    parameter: (k, d) => whole(2, d + 1)(k),
    value: (p, x, y) => { const m = x.reduce(max); return add(sub(m, x[y]), log(sum(x.map((v) => exp(sub(v, m)))))); },
    conjugate: (p, b, y) => { need(sum(b)[0] === 0n); return sum(b.map((v, k) => entropy(k === y ? add(v, I) : v))); },
    target: (y, k) => whole(0, k)(y), along: (v, y) => (cmp(v.reduce(max), v[y]) === 0 ? FALLS : GROWS),
  },
  hinge: {
    value: (p, x, y) => hinge(x, y),
    conjugate: (p, b, y) => { need(le(mul(b, y), Z) && le(neg(I), mul(b, y))); return mul(b, y); },
    target: label, along: (v, y) => against(v, y, STAYS),
  },
  squared_hinge: {
    value: (p, x, y) => soft(hinge(x, y)),
    conjugate: (p, b, y) => { need(le(mul(b, y), Z)); return square(b, y); },
    target: label, along: (v, y) => against(v, y, STAYS),
  },
};
LOSS.expectile = {
  parameter: LOSS.quantile.parameter,
  value: (p, x, y) => mul(sign(sub(x, y)) < 0 ? p[0] : p[1], soft(sub(x, y))),
  conjugate: (p, b, y) => add(div(soft(b), sign(b) < 0 ? p[0] : p[1]), mul(b, y)),
};
LOSS.squared_epsilon = {
  parameter: (s) => rational(positive(s)),
  value: (p, x, y) => soft(max(sub(mag(sub(x, y)), p), Z)),
  conjugate: (p, b, y) => add(square(b, y), mul(p, mag(b))),
};
LOSS.gamma = {
  value: (p, x, y) => add(x, mul(y, exp(neg(x)))),
  conjugate: (p, b, y) => { const q = sub(I, b); need(q[0] >= 0n); return sub(q[0] ? mul(q, log(div(q, y))) : Z, q); },
  target: (y) => { const n = exact(y); need(n[0] > 0n, "an amount"); return n; },
};
const scale = (x) => { need(x > 0 && isFinite(x), "a scale"); return rational(x); };

// rows of any kind: of each its ends, its cells by number (node, column, coefficient), and these as the hash has them
function cellsOf(rows, n, d, k, names) {
  const cell = (x) => { array(x, (v) => v, 3); need(x[2] !== "0", "a coefficient of 0"); return [whole(0, n)(x[0]), whole(0, d)(x[1]), exact(x[2])]; };
  const named = (x) => [names.labels[x[0]], names.columns[x[1]], x[2]];
  const inOrder = (x, y) => byCodePoint(x[0], y[0]) || byCodePoint(x[1], y[1]);
  return array(rows, cell, null, k, null).map((cells, e) => {
    for (const number of cells) need(new Set(number.map(([i, j]) => i * d + j)).size === number.length, "a cell stands twice");
    const ends = [...new Set(cells.flat().map(([i]) => i))].map((i) => names.labels[i]);
    return { cells, ends, at: rows[e].map((number) => number.map(named).sort(inOrder)) };
  });
}
const seen = (cells, w) => cells.map((number) => sum(number.map(([i, j, x]) => mul(x, w[i][j]))));
const putBy = (cells, u) => cells.flatMap((number, q) => number.map(([i, j, x]) => [i, j, mul(x, u[q])]));

const joined = (ends) => ends.map(quoted).join(" - ");
const placeOf = (kind, k, list, ends) => `${kind} ${k} of ${list} (${ends.slice(0, 9).map((x) => quoted(x).slice(0, 40)).join(" - ")}): `;
function sampleTerms(b, prices, n, d, names, list) {  // the terms of a block: ends, s, argument, value, conjugate, put, record
  const ofRows = b && Object.hasOwn(b, "rows");
  fields(b, "loss parameter strength rule weight y offset " + (ofRows ? "k rows" : "node x"));
  need(typeof b.loss === "string" && Object.hasOwn(LOSS, b.loss), "a loss");
  const { parameter = none, value, conjugate, target = exact, along = () => GROWS } = LOSS[b.loss];
  const p = parameter(b.parameter, ofRows ? whole(1, 1 << 22)(b.k) : d), vector = b.loss === "multinomial" || b.loss === "mean";
  const k = b.loss === "multinomial" ? p : b.loss === "mean" ? (ofRows ? b.k : d) : 1, x = ofRows ? null : b.x;
  need(ofRows ? b.k === k : (x === null) === (b.loss === "mean") && d % k === 0, "the width of x, or of a row");
  const places = ofRows ? cellsOf(b.rows, n, d, k, names) : array(b.node, whole(0, n), null).map((i, r) => ({ ends: [names.labels[i]], at: null, i, r }));
  const M = places.length, S = positive(b.strength), weight = array(b.weight, positive, M), total = {};
  const X = x && array(x, exact, M, d / k), O = array(b.offset, exact, M, k), A = array(prices, number, M, k);
  const factor = typeof b.rule === "string" ? null : array(b.rule, positive, M);
  need(factor || (b.rule === "mean" && !ofRows) || b.rule === "sum", "a rule");
  need(Array.isArray(b.y) && b.y.length === M, "targets");
  places.forEach(({ i }, r) => { total[i] = (total[i] || 0) + weight[r]; });
  return places.map((place, r) => {
    const { ends, at, i, cells = [...Array(k).keys()].map((c) => (X ? X[r].map((t, f) => [i, f * k + c, t]) : [[i, c, I]])) } = place;
    const base = factor ? weight[r] * factor[r] : b.rule === "mean" ? weight[r] / total[i] : weight[r];
    const s = scale(S * base), y = target(b.y[r], k), a = A[r], one = (v) => (vector ? v : v[0]);
    const rule = factor ? b.rule[r] : b.rule === "mean" ? ["mean", spell(total[i])] : ["sum", "1"];
    return {
      place: placeOf(b.loss, r, list, ends), s, u: a, shift: neg(dot(a, O[r])), put: putBy(cells, a), value: (z) => mul(s, value(p, one(z.map((v, c) => add(v, O[r][c]))), y)),
      argument: (w) => seen(cells, w),
      conjugate: () => mul(s, conjugate(p, one(a.map((v) => div(v, s))), y)),
      recedes: (v) => (v.every((t) => cmp(t, v[0]) === 0) && (b.loss === "multinomial" || sign(v[0]) === 0) ? STAYS : along(one(v), y)),
      record: [ofRows ? "sample of a row" : "sample", [...ends].sort(byCodePoint), at, b.loss, b.parameter, b.strength, rule, b.weight[r], x && x[r], b.y[r], b.offset[r]],
    };
  });
}

// ---- penalties: value phi(z), conjugate c phi*(u / c) in its domain; `fits` is: the dual norm is at most c ----
const norm = (value, fits) => ({ value, fits, conjugate: (p, c, t) => { need(fits(c, t)); return Z; } });
const holds = (ok) => { need(ok, "a constraint"); return Z; };
const sides = {
  constraint: true, oneSided: true,
  value: (box, z) => holds(z.every((v, k) => (!box[k][0] || le(box[k][0], v)) && (!box[k][1] || le(v, box[k][1])))),
  conjugate: (box, c, t) => sum(t.map((v, k) => { const end = v[0] ? box[k][v[0] > 0n ? 1 : 0] : Z; need(end); return mul(v, end); })),
  recedes: (box, z) => z.every((v, k) => (!box[k][0] || sign(v) >= 0) && (!box[k][1] || sign(v) <= 0)),
};
const length = { parameter: (s) => rational(positive(s)) };
const PENALTY = {
  L1: norm((p, z) => sum(z.map(mag)), (c, t) => le(t.map(mag).reduce(max), c)),
  L2: norm((p, z) => root(dot(z, z)), (c, t) => c[0] >= 0n && le(dot(t, t), mul(c, c))),
  LInf: norm((p, z) => z.map(mag).reduce(max), (c, t) => le(sum(t.map(mag)), c)),
  SquaredL2: { value: (p, z) => half(dot(z, z)), conjugate: (p, c, t) => div(half(dot(t, t)), c) },
  Quadratic: {
    parameter: (rows, k) => { const p = array(rows, exact, null, k); need(0 < p.length && p.length <= k, "the rank"); return p; },
    value: (p, z) => half(sum(p.map((r) => mul(dot(r, z), dot(r, z))))), conjugate: (p, c, t) => half(mul(c, dot(t, t))),
    flow: (p, c, t, k) => [...Array(k).keys()].map((f) => mul(c, dot(p.map((row) => row[f]), t))),
    recedes: (p, z) => p.every((r) => sign(dot(r, z)) === 0),
  },
  HuberNorm: {
    ...length, value: (p, z) => huber(dot(z, z), root(dot(z, z)), p),
    conjugate: (p, c, t) => { const d = mul(c, p); need(le(dot(t, t), mul(d, d))); return div(half(dot(t, t)), c); },
  },
  Zero: { constraint: true, value: (p, z) => holds(z.every((v) => !v[0])), conjugate: () => Z },
  Ball: { ...length, constraint: true, value: (p, z) => holds(le(dot(z, z), mul(p, p))), conjugate: (p, c, t) => mul(p, root(dot(t, t))) },
  NonNegative: { ...sides, parameter: (s, k) => { none(s); return Array(k).fill([Z, null]); } },
  Box: { ...sides, parameter: (s, k) => array(s, (v) => (v === null ? null : exact(v)), k, 2) },
};

function rowPlaces(b, n, d, names, list) {
  fields(b, "penalty parameter strength k rows weight center");
  const k = whole(1, 1 << 22)(b.k);
  return ["row", k, cellsOf(b.rows, n, d, k, names).map((row, e) => ({ ...row, name: `row ${e} of ${list} (${joined(row.ends).slice(0, 99)})`, what: "", holds: "holds", not: "holds at no" })), true];
}
function edgePlaces(b, n, d, names) {
  fields(b, "penalty parameter strength tail head weight features center");
  const m = array(b.tail, whole(0, n), null).length, F = array(b.features, whole(0, d), null);
  array(b.head, whole(-1, n), m);
  need(F.length && new Set(F).size === F.length, "the features are distinct columns");
  const each = b.tail.map((i, e) => {
    const j = b.head[e], ends = [i, j].filter((x) => x >= 0).map((x) => names.labels[x]);
    need(i !== j, `edge ${e} is a loop`);
    const at = F.map((f) => names.columns[f]), name = joined(ends) + (F.length < d ? ` in ${at.map(quoted).join(", ")}` : "");
    return { cells: F.map((f) => [[i, f, I], ...(j < 0 ? [] : [[j, f, neg(I)]])]), ends, at, name, what: "the difference ", holds: "are equal", not: "differ at every" };
  });
  return ["edge", F.length, each, b.head.every((j) => j < 0)];
}

function edgeTerms(b, flows, n, d, names, list) {
  const [what, k, places, odd] = (b && Object.hasOwn(b, "rows") ? rowPlaces : edgePlaces)(b, n, d, names, list), m = places.length;
  need(typeof b.penalty === "string" && Object.hasOwn(PENALTY, b.penalty), "a penalty");
  const { parameter = none, value, conjugate, fits, flow = (p, c, t) => t, recedes = (p, z) => z.every((v) => !v[0]), constraint, oneSided } = PENALTY[b.penalty];
  const S = positive(b.strength), p = parameter(b.parameter, k), weight = array(b.weight, positive, m), width = b.penalty === "Quadratic" ? p.length : k;
  need(!constraint || [S, ...weight].every((x) => x === 1), "a constraint has no weight");
  need(odd || (b.center === null && !oneSided), "a centre, or a one-sided penalty, between nodes");
  const center = b.center === null ? null : array(b.center, exact, m, k), T = array(flows, number, m, width);
  return places.map(({ cells, ends, at, ...said }, e) => {
    const c = scale(S * weight[e]), t = T[e], u = flow(p, c, t, k), o = center ? center[e] : Array(k).fill(Z);
    return {
      c, u, t, fits: center && what === "edge" ? undefined : fits, place: placeOf(b.penalty, e, list, ends), ...said, shift: dot(u, o), kind: b.penalty,
      put: putBy(cells, u),
      argument: (w) => seen(cells, w),
      value: (z) => mul(c, value(p, z.map((v, q) => sub(v, o[q])))), conjugate: () => conjugate(p, c, t),
      recedes: (z) => (recedes(p, z) ? STAYS : GROWS),
      record: [what, [...ends].sort(byCodePoint), at, b.penalty, b.parameter, b.strength, b.weight[e], b.center && b.center[e]],
    };
  });
}

// ---- the proof ----
function termsOf(model, dual) {  // of the model with a dual point: the terms, block by block
  const n = model.labels.length, d = model.columns.length;
  fields(dual, "flows prices");
  array(dual.flows, (x) => x, model.edges.length);
  array(dual.prices, (x) => x, model.samples.length);
  return {
    samples: model.samples.map((b, m) => sampleTerms(b, dual.prices[m], n, d, model, `samples[${m}]`)),
    edges: model.edges.map((b, m) => edgeTerms(b, dual.flows[m], n, d, model, `edges[${m}]`)),
  };
}
const all = (terms) => [...terms.samples.flat(), ...terms.edges.flat()];
const total = (terms, of) => all(terms).reduce((units, t) => {  // in units of 2^-UNIT, each summand rounded up
  try { return units + up(of(t)); } catch (error) { throw new Error(t.place + error.message); }
}, 0n);
function lower(model, terms, within, free) {  // Q in units of 2^-UNIT; the flow of the edge `free` has no domain
  const rest = model.labels.map(() => model.columns.map(() => Z));
  let minus = total(terms, (t) => add(t === free ? Z : t.conjugate(), t.shift));
  for (const t of all(terms)) for (const [i, j, v] of t.put) rest[i][j] = add(rest[i][j], v);
  for (const v of rest.flat()) {
    need(v[0] === 0n || within, "flows and prices do not balance");
    if (v[0]) minus += up(mul(within, mag(v)));
  }
  return -minus;
}
const residuals = (terms, w) => total(terms, (t) => {
  const z = t.argument(w);
  return sub(add(add(t.value(z), t.conjugate()), t.shift), dot(t.u, z));
});
const inside = (c) => sub(c, div(c, [1n << 64n, 1n]));

const CLAIMS = {
  bounds(proof, claim) {
    fields(claim, "says lower upper");
    need(le(number(claim.lower), proof.low) && le(proof.high, number(claim.upper)), "the bounds are not proved");
    return `${shown(number(claim.lower), -1)} <= infimum${proof.among} <= ${shown(number(claim.upper), 1)}`;
  },
  near(proof, claim) {  // c' < c, the dual norm of u at most c', and gap <= (c - c') r
    fields(claim, "says block edge distance");
    const t = edgeOf(proof, claim), r = number(claim.distance);
    need(sign(r) > 0, "a distance is positive");
    const kept = min(sub(t.c, div(proof.gap, r)), inside(t.c));
    need(sign(kept) > 0 && t.fits(kept, t.t), "the gap is too large, or the slack too small, for this distance");
    return `${t.kind} of ${t.what}${t.name} is at most ${shown(r, 1)} at every optimum${proof.among}`;
  },
  fused(proof, claim) {
    fields(claim, "says block edge");
    const t = edgeOf(proof, claim);
    need(proof.gap[0] === 0n && t.fits(inside(t.c), t.t), "the gap is not exactly 0, or the flow has no slack");
    return `${t.name} ${t.holds} at every optimum${proof.among}`;
  },
  held: (proof, claim) => CLAIMS.fused(proof, claim),  // of rows
  split(proof, claim) {
    fields(claim, "says block edge dual");
    const { name, not } = edgeOf(proof, claim), terms = termsOf(proof.model, claim.dual);
    need(lower(proof.model, terms, proof.within, terms.edges[claim.block][claim.edge]) > proof.upper, "equality is not excluded");
    return `${name} ${not} optimum${proof.among}`;
  },
  unattained(proof, claim) {
    fields(claim, "says direction");
    const v = array(claim.direction, number, proof.model.labels.length, proof.model.columns.length);
    const states = all(proof.terms).map((t) => t.recedes(t.argument(v)));
    need(Math.min(...states) > GROWS && Math.max(...states) === FALLS, "a term grows along the direction, or none falls for ever");
    return "no minimum is attained" + (proof.among && " among all w of any size");
  },
};
const edgeOf = ({ terms }, { block, edge }) => {
  const t = terms.edges[whole(0, terms.edges.length)(block)][whole(0, terms.edges[block].length)(edge)];
  need(t.fits, "only norms without a centre fuse and split");
  return t;
};

// ---- problems in conic form: minimise x'Px/2 + q'x over b - A x in K ----
const CONIC = "graphreg-conic-1", CONES = ["zero", "nonneg", "soc", "psd", "exp", "pow"];
function matrix(data, m, n) {  // rows as maps from columns to numbers, from entries in order
  const rows = [...Array(m)].map(() => new Map());
  let last = -1;
  for (const [i, j, x] of array(data, (v) => v, null, 3)) {
    whole(0, m)(i);
    need(i * n + whole(0, n)(j) > last && x !== "0", "entries that are 0, or not in order");
    last = i * n + j;
    rows[i].set(j, exact(x));
  }
  return rows;
}
const times = (row, y) => sum([...row].map(([j, v]) => mul(v, y[j])));
function solved(square, right) {  // by Bareiss's elimination, among integers
  const rows = square.map((row, i) => {
    const both = [...row, right[i]], k = both.reduce((d, v) => d / gcd(d, v[1]) * v[1], 1n);
    return both.map((v) => v[0] * (k / v[1]));
  });
  let before = 1n;
  for (let k = 0; k < rows.length; k++) {
    const p = rows.findIndex((row, i) => i >= k && row[k]);
    need(p >= 0, "columns depend on one another");
    [rows[k], rows[p]] = [rows[p], rows[k]];
    const top = rows[k];
    rows.forEach((row, i) => { if (i !== k) rows[i] = row.map((a, j) => (top[k] * a - row[k] * top[j]) / before); });
    before = top[k];
  }
  return rows.map((row, i) => div([row[rows.length], 1n], [row[i], 1n]));
}
function settled(point, M, c, width) {  // the numbers y of a point, M y = c
  fields(point, "y rows columns last");
  const y = array(point.y, exact, width), inner = array(point.columns, whole(0, width), null), within = new Set(inner);
  const at = array(point.rows, whole(0, M.length), inner.length);
  const right = at.map((i) => sub(c[i], times([...M[i]].filter(([j]) => !within.has(j)), y)));
  solved(at.map((i) => inner.map((j) => M[i].get(j) || Z)), right).forEach((v, k) => { y[inner[k]] = v; });
  for (const [i, j] of array(point.last, whole(0, M.length + width), null, 2)) {
    need(i < M.length && M[i].has(j), "a pair");
    y[j] = add(y[j], div(sub(c[i], times(M[i], y)), M[i].get(j)));
  }
  need(M.every((row, i) => cmp(times(row, y), c[i]) === 0), "the equations do not hold");
  return y;
}
function semidefinite(symmetric) {
  const rows = symmetric.map((row) => new Map(row));
  return rows.every((row, i) => {
    const pivot = row.get(i) || Z, rest = [...row].filter(([j, v]) => j > i && sign(v) !== 0);
    if (sign(pivot) < 0 || (sign(pivot) === 0 && rest.length)) return false;
    for (const [j, v] of rest) for (const [k, u] of rest) rows[j].set(k, sub(rows[j].get(k) || Z, div(mul(v, u), pivot)));
    return true;
  });
}
function isSquare(k, v) {  // the upper triangle, column by column, off the diagonal times 2^0.5 within 2^-50
  const S = [...Array(k)].map(() => new Map()), root = rational(Math.SQRT2);
  for (let j = 0, at = 0; j < k; j++) for (let i = 0; i <= j; i++, at++) {
    const x = i === j ? v[at] : div(v[at], root);
    S[i].set(j, x);
    S[j].set(i, x);
  }
  S.forEach((row, i) => {
    const beside = sum([...row].map(([j, x]) => (j === i ? Z : mag(x))));
    row.set(i, sub(row.get(i), div(beside, [1n << 50n, 1n])));
  });
  return semidefinite(S);
}
const isExponential = (x, y, z, power) => (sign(y) > 0 && sign(z) > 0
  ? le(add(mul(y, sub(log(div(y, z)), power)), x), Z) : sign(y) === 0 && sign(x) <= 0 && sign(z) >= 0);
const isPower = (a, x, y, z) => (sign(x) > 0 && sign(y) > 0 && sign(z) !== 0
  ? le(add(add(mul(a, log(div(I, x))), mul(sub(I, a), log(div(I, y)))), log(mag(z))), Z)
  : sign(x) >= 0 && sign(y) >= 0 && sign(z) === 0);
const INSIDE = {
  zero: (v, dual) => dual || v.every((x) => sign(x) === 0),
  nonneg: (v) => v.every((x) => sign(x) >= 0),
  soc: (v) => sign(v[0]) >= 0 && le(dot(v, v), mul([2n, 1n], mul(v[0], v[0]))),
  psd: (v, dual, size) => isSquare(size, v),
  exp: ([x, y, z], dual) => (dual ? isExponential(neg(y), neg(x), z, I) : isExponential(x, y, z, Z)),
  pow: ([x, y, z], dual, size, a) => (dual ? isPower(a, div(x, a), div(y, sub(I, a)), z) : isPower(a, x, y, z)),
};
function conic(data) {
  fields(data, "format problem claims");
  const p = fields(data.problem, "sense offset P q A b cones"), least = p.sense === "minimise";
  need(least || p.sense === "maximise", "a sense");
  const offset = exact(p.offset), q = array(p.q, exact, null), b = array(p.b, exact, null), n = q.length, m = b.length;
  const A = matrix(p.A, m, n), P = matrix(p.P, n, n), At = q.map(() => new Map());
  need(P.every((row, i) => [...row].every(([j, x]) => P[j].has(i) && cmp(P[j].get(i), x) === 0)), "P is not symmetric");
  A.forEach((row, i) => row.forEach((x, j) => At[j].set(i, x)));
  const slack = A.map((row, i) => new Map([...row, [n + i, I]]));
  const cones = array(p.cones, (v) => v, null, 3).map(([kind, size, parameter]) => {
    need(CONES.includes(kind), "a cone");
    whole(1, 1 << 22)(size);
    need((size === 3 || !["exp", "pow"].includes(kind)) && (kind === "pow") === (parameter !== null), "a cone");
    const a = kind === "pow" ? exact(parameter) : Z;
    need(kind !== "pow" || (sign(a) > 0 && cmp(a, I) < 0), "a power is between 0 and 1");
    return { kind, size, a, rows: kind === "psd" ? size * (size + 1) / 2 : size };
  });
  need(cones.reduce((total, cone) => total + cone.rows, 0) === m, "the cones have other rows than b");
  const inside = (v, dual) => {
    let at = 0;
    for (const { kind, size, a, rows } of cones) need(INSIDE[kind](v.slice(at, at += rows), dual, size, a), "outside a cone");
  };
  const curve = (x) => half(sum(P.map((row, i) => mul(x[i], times(row, x))))), zeros = (k) => Array(k).fill(Z);
  const primal = (point) => {
    const y = settled(point, slack, b, n + m);
    inside(y.slice(n), false);
    return add(dot(q, y.slice(0, n)), curve(y));
  };
  const dual = (point) => {
    const rows = At.map((row, j) => new Map([...row, ...[...P[j]].map(([k, v]) => [m + k, v])]));
    const y = settled(point, rows, q.map(neg), m + n);
    inside(y.slice(0, m), true);
    need(semidefinite(P), "P is not positive semidefinite");
    return neg(add(dot(b, y.slice(0, m)), curve(y.slice(m))));
  };
  const bound = (says, point) => {
    const value = add(offset, (least === (says === "upper") ? primal : dual)(point));
    return least ? value : neg(value);
  };
  const says = {
    lower({ bound: low, point }) { need(le(number(low), bound("lower", point)), "more than is proved"); return `${shown(number(low), -1)} <= the optimal value`; },
    upper({ bound: high, point }) { need(le(bound("upper", point), number(high)), "more than is proved"); return `the optimal value <= ${shown(number(high), 1)}`; },
    infeasible({ point }) {
      const z = settled(point, At, zeros(n), m);
      inside(z, true);
      need(sign(dot(b, z)) < 0, "b'z is not negative");
      return "no point satisfies the constraints as they are stored";
    },
    unbounded({ point, direction }) {
      primal(point);
      const y = settled(direction, [...slack, ...P], zeros(m + n), n + m);
      inside(y.slice(n), false);
      need(sign(dot(q, y.slice(0, n))) < 0, "the value does not fall");
      return `the optimal value has no ${least ? "lower" : "upper"} bound`;
    },
  };
  const names = { lower: "says bound point", upper: "says bound point", infeasible: "says point", unbounded: "says point direction" };
  need(Array.isArray(data.claims) && data.claims.length, "nothing is claimed");
  const said = data.claims.map((claim) => {
    need(claim && typeof claim.says === "string" && Object.hasOwn(names, claim.says), "a claim");
    return says[claim.says](fields(claim, names[claim.says]));
  });
  const text = JSON.stringify(Object.fromEntries(Object.entries(p).sort(([x], [y]) => byCodePoint(x, y))));
  return { said, within: null, hash: crypto.createHash("sha256").update(`${CONIC}\n${text}`).digest("hex") };
}

function check(text) {
  const read = parse(text);
  if (read && read.format === CONIC) return conic(read);
  const data = fields(read, "format model w dual within claims");
  need(data.format === FORMAT, "another format");
  const model = fields(data.model, "labels columns samples edges");
  distinct(model.labels);
  distinct(model.columns);
  need(Array.isArray(model.samples) && Array.isArray(model.edges) && Array.isArray(data.claims), "lists");
  const w = array(data.w, number, model.labels.length, model.columns.length), terms = termsOf(model, data.dual);
  const within = data.within === null ? null : number(data.within);
  need(!within || (le([BOX, 1n], within) && w.flat().every((v) => le(mag(v), within))), "a box that is too small, or w is not within it");
  const upper = total(terms, (t) => t.value(t.argument(w))), bottom = lower(model, terms, within);
  need(bottom <= upper, "the bounds cross");
  const apart = upper - bottom, left = within ? apart : residuals(terms, w), unit = 1n << UNIT;
  const proof = {
    model, terms, within, upper, low: [bottom, unit], high: [upper, unit], gap: [left < apart ? left : apart, unit],
    among: within ? ` among all w with entries up to ${shown(within, -1)}` : "",
  };
  need(data.claims.some((claim) => claim && claim.says === "bounds"), "'bounds' must be claimed");
  proof.said = data.claims.map((claim) => {
    need(claim && typeof claim.says === "string" && Object.hasOwn(CLAIMS, claim.says), "a claim");
    return CLAIMS[claim.says](proof, claim);
  });
  const records = [["columns", model.columns], ...model.labels.map((x) => ["node", x]), ...all(terms).map((t) => t.record)].map(ascii);
  proof.hash = crypto.createHash("sha256").update([FORMAT, ...records.sort()].join("\n")).digest("hex");
  return proof;
}

function main([file, hash]) {
  if (!file || (hash && !/^[0-9a-f]{64}$/.test(hash))) { console.log("node verify.js proof.json [HASH, 64 of 0-9 and a-f]"); return 2; }
  try {
    const proof = check(fs.readFileSync(file, "latin1"));
    need(!hash || hash === proof.hash, "the proof is of another model, " + proof.hash);
    console.log([`PROVED${proof.within ? " WITHIN A BOX ONLY" : ""} for the model ${proof.hash}:`, ...proof.said].join("\n  "));
    return proof.within ? 8 : 0;
  } catch (error) { console.log("NOT PROVED: " + error.message); return 1; }
}
if (require.main === module) process.exit(main(process.argv.slice(2)));
module.exports = { check };
