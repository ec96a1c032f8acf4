#!/usr/bin/env node
// A second checker of the bounds of a proof, written from docs/proofs.md alone: node verify.js proof.json [HASH]
// Integers of any size (BigInt) are all it takes. It checks `bounds`; of other claims it says that it leaves them.
"use strict";
const fs = require("fs"), crypto = require("crypto");
const UNIT = 200n, WIDE = 300n, ONE = 1n << WIDE;
const need = (ok, what = "outside the domain") => { if (!ok) throw new Error(what); };

// ---- rationals [p, q], q > 0 ----
const abs = (a) => (a < 0n ? -a : a);
const bits = (a) => BigInt(abs(a).toString(16).length * 4);
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
const le = (a, b) => cmp(a, b) <= 0, max = (a, b) => (cmp(a, b) < 0 ? b : a);
const Z = [0n, 1n], I = [1n, 1n], half = (a) => [a[0], 2n * a[1]];
const sum = (v) => v.reduce(add, Z), dot = (a, b) => sum(a.map((x, i) => mul(x, b[i])));
const ceil = (p, q) => (p >= 0n ? (p + q - 1n) / q : -(-p / q));
const up = (a, s = UNIT) => ceil(a[0] << s, a[1]);

// ---- numbers ----
const NUMBER = /^(-?)(0|[1-9a-f][0-9a-f]{0,16383})(?:p(-?[1-9][0-9]{0,3}))?(?:\/([1-9a-f][0-9a-f]{0,16383}))?$/;
const number = (s) => {
  const m = typeof s === "string" && NUMBER.exec(s);
  need(m, "not a number: " + s);
  const p = BigInt("0x" + m[2]), e = BigInt(m[3] || 0), q = BigInt("0x" + (m[4] || "1"));
  return R((m[1] ? -p : p) << (e > 0n ? e : 0n), q << (e < 0n ? -e : 0n));
};
const spell = (x) => {  // of a positive double
  let [p, e] = [x, 0];
  while (!Number.isInteger(p)) { p *= 2; e--; }
  let n = BigInt(p);
  while (n && !(n & 1n)) { n >>= 1n; e++; }
  return n.toString(16) + (e ? "p" + e : "");
};
const double = (s) => {
  const [p, q] = number(s), m = NUMBER.exec(s);
  need(!m[4] && m[2].length < 15 && s !== "-0" && (s === "0" || p === 0n || BigInt("0x" + m[2]) & 1n), "no double: " + s);
  let x = Number(BigInt("0x" + m[2])), e = Number(m[3] || 0);
  for (; e > 0; e--) x *= 2;
  for (; e < 0; e++) x /= 2;
  return m[1] ? -x : x;
};
const rational = (x) => { let q = 1n; while (!Number.isInteger(x)) { x *= 2; q *= 2n; } return [BigInt(x), q]; };

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
const soft = (v) => half(mul(v, v)), hinge = (x, y) => max(sub(I, mul(y, x)), Z);

// ---- losses and penalties ----
const onehot = (b, y) => b.map((v, k) => (k === y ? add(v, I) : v));
const LOSS = {
  squared: (p, x, y) => soft(sub(x, y)), mean: (p, x, y) => sum(x.map((v, k) => soft(sub(v, y[k])))),
  logistic: (p, x, y) => add(max(neg(mul(y, x)), Z), log(add(I, exp(neg(mag(x)))))),
  poisson: (p, x, y) => sub(exp(x), mul(y, x)), huber: (p, x, y) => huber(mul(sub(x, y), sub(x, y)), mag(sub(x, y)), p[0]),
  quantile: (p, x, y) => max(neg(mul(p[0], sub(x, y))), mul(p[1], sub(x, y))),
  multinomial: (p, x, y) => { const m = x.reduce(max); return add(sub(m, x[y]), log(sum(x.map((v) => exp(sub(v, m)))))); },
  hinge: (p, x, y) => hinge(x, y), squared_hinge: (p, x, y) => soft(hinge(x, y)),
};
const square = (b, y) => mul(b, add(half(b), y));
const PRICE = {
  squared: (p, b, y) => square(b, y), mean: (p, b, y) => sum(b.map((v, k) => square(v, y[k]))),
  logistic: (p, b, y) => add(entropy(neg(mul(y, b))), entropy(add(I, mul(y, b)))),
  poisson: (p, b, y) => sub(entropy(add(b, y)), add(b, y)),
  huber: (p, b, y) => { need(le(mag(b), p[0])); return square(b, y); },
  quantile: (p, b, y) => { need(le(neg(p[0]), b) && le(b, p[1])); return mul(b, y); },
  multinomial: (p, b, y) => { need(sum(b)[0] === 0n); return sum(onehot(b, y).map(entropy)); },
  hinge: (p, b, y) => { need(le(mul(b, y), Z) && le(neg(I), mul(b, y))); return mul(b, y); },
  squared_hinge: (p, b, y) => { need(le(mul(b, y), Z)); return square(b, y); },
};
const inside = (z, box) => need(z.every((v, k) => (!box[k][0] || le(box[k][0], v)) && (!box[k][1] || le(v, box[k][1]))), "a constraint");
const push = (t, box) => sum(t.map((v, k) => { if (!v[0]) return Z; const b = box[k][v[0] > 0n ? 1 : 0]; need(b); return mul(v, b); }));
const PENALTY = {
  L1: (p, z) => sum(z.map(mag)), L2: (p, z) => root(dot(z, z)), LInf: (p, z) => z.map(mag).reduce(max),
  SquaredL2: (p, z) => half(dot(z, z)), Quadratic: (p, z) => half(sum(p.map((r) => mul(dot(r, z), dot(r, z))))),
  HuberNorm: (p, z) => huber(dot(z, z), root(dot(z, z)), p), Zero: (p, z) => { need(z.every((v) => !v[0]), "a constraint"); return Z; },
  Ball: (p, z) => { need(le(dot(z, z), mul(p, p)), "a constraint"); return Z; },
  NonNegative: (p, z) => { inside(z, p); return Z; }, Box: (p, z) => { inside(z, p); return Z; },
};
const FLOW = {
  L1: (p, c, t) => { need(le(t.map(mag).reduce(max), c)); return Z; }, L2: (p, c, t) => { need(le(dot(t, t), mul(c, c))); return Z; },
  LInf: (p, c, t) => { need(le(sum(t.map(mag)), c)); return Z; }, SquaredL2: (p, c, t) => div(half(dot(t, t)), c),
  Quadratic: (p, c, t) => half(mul(c, dot(t, t))), Zero: () => Z, Ball: (p, c, t) => mul(p, root(dot(t, t))),
  HuberNorm: (p, c, t) => { const d = mul(c, p); need(le(dot(t, t), mul(d, d))); return div(half(dot(t, t)), c); },
  NonNegative: (p, c, t) => push(t, p), Box: (p, c, t) => push(t, p),
};

// ---- the proof ----
function check(proof) {
  need(proof.format === "graphreg-proof-1", "another format");
  const { labels, columns, samples, edges } = proof.model, d = columns.length, records = [];
  const w = proof.w.map((row) => row.map(number)), rest = labels.map(() => columns.map(() => Z));
  const line = (...record) => records.push(JSON.stringify(record).replace(/[\u007f-\uffff]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));
  need(new Set(labels).size === labels.length && new Set(columns).size === d && w.length === labels.length, "names");
  line("columns", columns);
  for (const label of labels) line("node", label);
  let upper = 0n, minus = 0n;
  samples.forEach((b, m) => {
    const M = b.node.length, S = double(b.strength), weight = b.weight.map(double), total = {}, prices = proof.dual.prices[m];
    const k = b.loss === "multinomial" ? b.parameter : b.loss === "mean" ? d : 1, many = ["multinomial", "mean"].includes(b.loss);
    const tau = ["huber", "quantile"].includes(b.loss) ? double(b.parameter) : 0, par = [rational(tau), rational(1 - tau)];
    need(LOSS[b.loss] && weight.length === M && prices.length === M && b.y.length === M, "a block of samples");
    b.node.forEach((i, r) => { total[i] = (total[i] || 0) + weight[r]; });
    for (let r = 0; r < M; r++) {
      const i = b.node[r], x = b.x && b.x[r].map((v) => rational(double(v))), o = b.offset[r].map(number), a = prices[r].map(number);
      const y = b.loss === "multinomial" ? b.y[r] : many ? b.y[r].map(number) : number(b.y[r]);
      const sign = ["logistic", "hinge", "squared_hinge"].includes(b.loss), base = b.rule === "mean" ? weight[r] / total[i]
        : b.rule === "sum" ? weight[r] : weight[r] * double(b.rule[r]);
      need(a.length === k && S * base > 0 && isFinite(S * base) && (!sign || (mag(y)[0] === 1n && y[1] === 1n)), "a sample");
      need(b.loss !== "poisson" || y[0] >= 0n, "a count");
      const s = rational(S * base), row = [...Array(k).keys()].map((c) => (x ? dot(x, x.map((_, f) => w[i][f * k + c])) : w[i][c]));
      const z = row.map((v, c) => add(v, o[c])), p = a.map((v) => div(v, s));
      upper += up(mul(s, LOSS[b.loss](par, many ? z : z[0], y)));
      minus += up(sub(mul(s, PRICE[b.loss](par, many ? p : p[0], y)), dot(a, o)));
      a.forEach((v, c) => (x || [I]).forEach((t, f) => { const j = x ? f * k + c : c; rest[i][j] = add(rest[i][j], mul(t, v)); }));
      const rule = b.rule === "mean" ? ["mean", spell(total[i])] : b.rule === "sum" ? ["sum", "1"] : b.rule[r];
      line("sample", [labels[i]], null, b.loss, b.parameter, b.strength, rule, b.weight[r], x ? b.x[r] : null, b.y[r], b.offset[r]);
    }
  });
  edges.forEach((b, m) => {
    const S = double(b.strength), one = ["Zero", "Ball", "NonNegative", "Box"].includes(b.penalty), F = b.features, raw = b.parameter;
    const number0 = (v) => (v === null ? null : number(v)), par = b.penalty === "NonNegative" ? F.map(() => [Z, null])
      : raw === null ? null : Array.isArray(raw) ? raw.map((row) => row.map(number0)) : number(raw);
    need(PENALTY[b.penalty] && new Set(F).size === F.length, "a block of edges");
    b.tail.forEach((i, e) => {
      const j = b.head[e], C = S * double(b.weight[e]), c = rational(C), t = proof.dual.flows[m][e].map(number);
      need(C > 0 && isFinite(C) && (!one || C === 1) && i !== j && (j < 0 || (!b.center && !["NonNegative", "Box"].includes(b.penalty))), "an edge");
      need(t.length === (b.penalty === "Quadratic" ? par.length : F.length), "a flow");
      const o = F.map((_, k) => (b.center ? number(b.center[e][k]) : Z)), z = F.map((f, k) => sub(sub(w[i][f], j < 0 ? Z : w[j][f]), o[k]));
      const u = b.penalty === "Quadratic" ? F.map((_, k) => mul(c, dot(par.map((row) => row[k]), t))) : t;
      upper += up(mul(c, PENALTY[b.penalty](par, z)));
      minus += up(add(FLOW[b.penalty](par, c, t), dot(u, o)));
      u.forEach((v, k) => { rest[i][F[k]] = add(rest[i][F[k]], v); if (j >= 0) rest[j][F[k]] = sub(rest[j][F[k]], v); });
      line("edge", (j < 0 ? [labels[i]] : [labels[i], labels[j]]).sort(), F.map((f) => columns[f]), b.penalty, raw, b.strength, b.weight[e], b.center ? b.center[e] : null);
    });
  });
  const within = proof.within === null ? null : number(proof.within);
  rest.flat().forEach((v) => { need(v[0] === 0n || within, "flows and prices do not balance"); if (within) minus += up(mul(within, mag(v))); });
  need(!within || w.flat().every((v) => le(mag(v), within)), "w is not within the box");
  const claims = proof.claims.filter((c) => c.says === "bounds"), low = [-minus, 1n << UNIT], high = [upper, 1n << UNIT];
  need(claims.length && claims.every((c) => le(number(c.lower), low) && le(high, number(c.upper))), "the bounds are not proved");
  const hash = crypto.createHash("sha256").update(["graphreg-proof-1", ...records.sort()].join("\n")).digest("hex");
  return { hash, low, high, left: proof.claims.length - claims.length };
}
const show = (a) => Number((a[0] << 64n) / a[1]) / 2 ** 64;
if (process.argv.length < 3) { console.log("node verify.js proof.json [HASH]"); process.exit(2); }
try {
  const found = check(JSON.parse(fs.readFileSync(process.argv[2], "ascii")));
  need(!process.argv[3] || process.argv[3] === found.hash, "the proof is of another model, " + found.hash);
  console.log(`PROVED for the model ${found.hash}:\n  ${show(found.low)} <= infimum <= ${show(found.high)}`);
  if (found.left) console.log(`  (${found.left} other claims are not looked at here)`);
} catch (error) { console.log("NOT PROVED: " + error.message); process.exit(1); }
