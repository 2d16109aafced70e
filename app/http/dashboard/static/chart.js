// One kind of chart: a count that grows in steps, a dashed line beside it, and its limit.
// Colours are the style sheet's, so that both schemes and any print follow it.

const NAMESPACE = "http://www.w3.org/2000/svg";
const HEIGHT = 240;
const WIDTH_MIN = 240;
const MARGIN = { top: 18, right: 16, bottom: 30, left: 48 };
const LABEL_WIDTH = 84;
const TICK_PIXELS = 45;

/**
 * @typedef {object} Drawing
 * @property {string} label for whoever hears the chart rather than sees it
 * @property {{min: number, max: number, rounds?: number[], format: (value: number) => string}} x
 * @property {{max: number, format: (value: number) => string}} y from 0 on
 * @property {[number, number][]} steps each holds until the next
 * @property {[number, number][]} dashed a straight line, or none
 * @property {number | null} limit
 * @property {string} limitLabel
 */

/** Draw in the place of what was drawn before. */
export function draw(place, /** @type {Drawing} */ drawing) {
  const width = Math.max(WIDTH_MIN, place.clientWidth);
  const scale = scales(drawing, width);
  const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": drawing.label });
  svg.append(...grid(drawing, scale, width), ...lines(drawing, scale), ...limit(drawing, scale, width));
  place.replaceChildren(svg);
}

/**
 * Draw stacked bars in the place of what was drawn before; each part is the number of a colour, and a value.
 *
 * @typedef {{x: number, width: number, parts: [number, number][]}} Bar
 */
export function drawBars(place, /** @type {{label: string, x: object, y: object, bars: Bar[]}} */ drawing) {
  const width = Math.max(WIDTH_MIN, place.clientWidth);
  const scale = scales(drawing, width);
  const svg = make("svg", { viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": drawing.label });
  svg.append(...grid(drawing, scale, width), ...drawing.bars.flatMap((bar) => stacked(bar, scale)));
  place.replaceChildren(svg);
}

function stacked({ x, width, parts }, scale) {
  const left = scale.x(x);
  const across = Math.max(1, round(0.8 * (scale.x(x + width) - left)));
  let below = 0;
  return parts.filter(([, value]) => value > 0).map(([colour, value]) => {
    const top = scale.y(below + value);
    const bar = make("rect", { class: `bar share-${colour}`, x: left, width: across, y: top, height: Math.max(1, round(scale.y(below) - top)) });
    below += value;
    return bar;
  });
}

function scales({ x, y }, width) {
  const inner = { width: width - MARGIN.left - MARGIN.right, height: HEIGHT - MARGIN.top - MARGIN.bottom };
  const span = Math.max(x.max - x.min, Number.EPSILON);
  return {
    x: (value) => round(MARGIN.left + (inner.width * (value - x.min)) / span),
    y: (value) => round(MARGIN.top + inner.height * (1 - value / Math.max(y.max, 1))),
    ticksAcross: Math.max(2, Math.floor(inner.width / LABEL_WIDTH)),
    ticksUp: Math.max(2, Math.floor(inner.height / TICK_PIXELS)),
  };
}

function grid({ x, y }, scale, width) {
  const right = width - MARGIN.right;
  const bottom = HEIGHT - MARGIN.bottom;
  const across = ticks(0, y.max, scale.ticksUp).flatMap((value) => [
    make("line", { class: value === 0 ? "axis" : "grid", x1: MARGIN.left, x2: right, y1: scale.y(value), y2: scale.y(value) }),
    make("text", { x: MARGIN.left - 8, y: scale.y(value) + 4, "text-anchor": "end" }, y.format(value)),
  ]);
  const along = ticks(x.min, x.max, scale.ticksAcross, x.rounds).map((value) => {
    const place = scale.x(value);
    const anchor = place > right - LABEL_WIDTH / 3 ? "end" : place < MARGIN.left + 8 ? "start" : "middle";
    return make("text", { x: place, y: bottom + 20, "text-anchor": anchor }, x.format(value));
  });
  return [...across, ...along];
}

function lines({ x, steps, dashed }, scale) {
  const drawn = [];
  if (dashed.length > 1) {
    drawn.push(make("polyline", { class: "even", points: dashed.map(([a, b]) => `${scale.x(a)},${scale.y(b)}`).join(" ") }));
  }
  const path = steps.map(([a, b], place) => (place === 0 ? `M${scale.x(a)},${scale.y(b)}` : `H${scale.x(a)}V${scale.y(b)}`)).join("");
  const [lastX, lastY] = steps.at(-1);
  drawn.push(
    make("path", { class: "area", d: `${path}V${scale.y(0)}H${scale.x(Math.max(x.min, steps[0][0]))}Z` }),
    make("path", { class: "line", d: path }),
    make("circle", { class: "dot", cx: scale.x(lastX), cy: scale.y(lastY), r: 5 }),
  );
  return drawn;
}

function limit({ limit: value, limitLabel }, scale, width) {
  if (value === null) return [];
  const y = scale.y(value);
  return [
    make("line", { class: "limit", x1: MARGIN.left, x2: width - MARGIN.right, y1: y, y2: y }),
    make("text", { class: "limit-label", x: MARGIN.left + 6, y: y - 6 }, limitLabel),
  ];
}

/** Round numbers from `min` to `max`, `wanted` of them at most: whole ones, or multiples of one of `rounds`. */
function ticks(min, max, wanted, rounds) {
  const span = Math.max(max - min, 1);
  const rough = span / wanted;
  const power = 10 ** Math.floor(Math.log10(rough));
  const known = rounds ?? [1, 2, 5, 10].map((factor) => Math.round(factor * power));
  const step = Math.max(1, known.find((each) => each >= rough) ?? rough);
  const found = [];
  for (let value = Math.ceil(min / step) * step; value <= max; value += step) found.push(value);
  return found;
}

function make(name, attributes, text) {
  const element = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

const round = (value) => Math.round(value * 10) / 10;
