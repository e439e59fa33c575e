// Charts as inline SVG at the real width of the element they stand in.

const MARKERS = ["circle", "square", "triangle", "diamond", "down", "cross"];
const MARKER_PATHS = {
  square: "M-3.4-3.4h6.8v6.8h-6.8z",
  triangle: "M0-4.4L4.2 3.4H-4.2z",
  diamond: "M0-4.6L4.2 0L0 4.6L-4.2 0z",
  down: "M0 4.4L4.2-3.4H-4.2z",
  cross: "M-3.5-3.5L3.5 3.5M-3.5 3.5L3.5-3.5",
  star: "M0-8L2.2-2.8L7.6-2.5L3.4 1.1L4.7 6.5L0 3.5L-4.7 6.5L-3.4 1.1L-7.6-2.5L-2.2-2.8z",
};

// Runs differ by colour and marker, so that neither has to be seen alone.
const runStyle = (i) => ({colour: `c${i % 8}`, marker: MARKERS[i % MARKERS.length]});

function drawMarker(style, x, y) {
  if (style.marker === "circle") return shape("circle", {class: `mark ${style.colour}`, cx: x, cy: y, r: 3.4});
  const className = style.marker === "star" ? "star" : "mark";
  return shape(
      "path",
      {class: `${className} ${style.colour}`, d: MARKER_PATHS[style.marker], transform: `translate(${x} ${y})`});
}

function swatch(style) {
  const icon = shape("svg", {class: "swatch", width: 26, height: 16, viewBox: "0 0 26 16", "aria-hidden": "true"});
  if (style.line !== false) icon.append(shape("path", {class: curveClass(style), d: "M1 8H25"}));
  if (style.marker) icon.append(drawMarker(style, 13, 8));
  return icon;
}

const curveClass = (style) => `curve ${style.colour}${style.dashed ? " dashed" : ""}${style.thin ? " thin" : ""}`;

// Every name shows or hides its series. `toggle` is called with the series.
function legend(series, toggle) {
  const entry = (one) => {
    const button = element(
        "button", {
          type: "button",
          "aria-pressed": "true",
          title: "show or hide",
          click: () => button.setAttribute("aria-pressed", String(toggle(one)))
        },
        swatch(one.style), element("span", {}, one.name));
    return element("li", {}, button);
  };
  return element("ul", {class: "legend"}, ...series.map(entry));
}

// Everything drawn for a width: called with the width that paper has for it, or with none for that of the screen.
const drawn = new Set();

// Draws now, and again whenever the width of `host` changes. Returns what draws once more at the same width.
function drawAtWidth(host, draw) {
  let last = 0;
  const redraw = (paper) => {
    if (!host.isConnected) return drawn.delete(redraw);
    const width = Math.round(paper || host.clientWidth);
    if (width < 40 || width === last) return;
    last = width;
    hideTip();
    host.replaceChildren(draw(width));
  };
  redraw.paperWidth = () => (host.closest(".panels") ? 310 : 640);
  drawn.add(redraw);
  new ResizeObserver(() => redraw()).observe(host);
  redraw();
  return () => {
    last = 0;
    redraw();
  };
}

// Observers do not see the narrower layout of paper, and a wide chart scaled down has unreadable labels.
window.addEventListener("beforeprint", () => [...drawn].forEach((redraw) => redraw(redraw.paperWidth())));
window.addEventListener("beforeprint", () => {
  for (const closed of document.querySelectorAll("details:not([open])")) closed.open = true;
});
window.addEventListener("afterprint", () => [...drawn].forEach((redraw) => redraw()));

// A chart with its heading and legend. `spec`: title, x and y {title, format, log, whole, low, high}, series of
// {name, style, points: [{x, y, name}]}, and `scatter` (with a `short` title per axis) where single points matter
// rather than what happens at an x. `logSwitch` lets the reader choose a logarithmic y axis.
function chartPanel(spec) {
  const series = spec.series.map((one) => ({...one, points: one.points.filter((point) => isDrawable(point, spec))}))
                     .filter((one) => one.points.length > 0);
  const host = element("div", {class: "chart"});
  const hidden = new Set();
  let log = false;
  let again = () => {};
  const toggle = (one) => {
    hidden.has(one) ? hidden.delete(one) : hidden.add(one);
    again();
    return !hidden.has(one);
  };
  const draw = (width) => {
    const now = log ? {...spec, y: {...spec.y, title: `${spec.y.title} (log scale)`, log: true, low: undefined}} : spec;
    const shown = series.filter((one) => !hidden.has(one))
                      .map((one) => ({...one, points: one.points.filter((point) => isDrawable(point, now))}))
                      .filter((one) => one.points.length > 0);
    return shown.length > 0 ? plot({...now, series: shown}, width) : note("All hidden: click a name to show it.");
  };
  const button = spec.logSwitch && series.length > 0 ? element("button", {
    type: "button",
    class: "control small",
    "aria-pressed": "false",
    click: () => {
      log = !log;
      button.setAttribute("aria-pressed", String(log));
      again();
    }
  }, "Log scale") : null;
  const panel = element(
      "div", {class: "panel"}, element("div", {class: "panel-top"}, element("h3", {}, spec.title), button),
      legend(series, toggle), host);
  if (series.length === 0) {
    panel.append(note(spec.empty || "No values yet."));
    return panel;
  }
  // The element gets its width once it stands in the page.
  requestAnimationFrame(() => {
    again = drawAtWidth(host, draw);
  });
  return panel;
}

function isDrawable(point, spec) {
  return isNumber(point.x) && isNumber(point.y) && (!spec.y.log || point.y > 0) && (!spec.x.log || point.x > 0);
}

function axisOver(values, settings, count) {
  const low = Math.min(...values, settings.low ?? Infinity);
  const high = Math.max(...values, settings.high ?? -Infinity);
  return settings.log ? logAxis(low * (settings.roomy ? 0.85 : 1), high * (settings.roomy ? 1.18 : 1), count) :
                        linearAxis(low, high, count, settings.whole);
}

// As many digits as it takes to tell the labels apart: in three, 99.9 and 99.95 are one.
function tickLabels({ticks}, format) {
  for (let digits = 3;; ++digits) {
    const texts = ticks.map((tick) => format(tick, digits));
    if (digits === 12 || new Set(texts).size === texts.length) return texts;
  }
}

function plot(spec, width) {
  const points = spec.series.flatMap((one) => one.points);
  const height = spec.height || Math.max(210, Math.min(300, width * 0.5));
  const yAxis = axisOver(points.map((point) => point.y), spec.y, 5);
  const xAxis = axisOver(points.map((point) => point.x), spec.x, Math.max(4, Math.floor(width / 70)));
  const labelWidth = Math.max(...tickLabels(yAxis, spec.y.format).map((text) => text.length));
  const frame = {left: 14 + 7 * labelWidth, right: width - 14, top: 26, bottom: height - 38};
  const toX = (value) => frame.left + xAxis.place(value) * (frame.right - frame.left);
  const toY = (value) => frame.bottom - yAxis.place(value) * (frame.bottom - frame.top);
  const drawing = shape("svg", {
    viewBox: `0 0 ${width} ${height}`,
    role: "img",
    "aria-label": `${spec.title}: ${spec.y.title} against ${spec.x.title}. Arrow keys read the values.`
  });
  drawAxes(drawing, spec, frame, xAxis, yAxis, toX, toY);
  drawSeries(drawing, spec, toX, toY);
  const cursor = shape("g", {});
  drawing.append(cursor);
  const stops = spec.scatter ? pointStops(spec, toX, toY) : columnStops(spec, toX, toY);
  readStops(drawing, cursor, stops, frame, spec.scatter);
  return drawing;
}

function drawAxes(drawing, spec, frame, xAxis, yAxis, toX, toY) {
  const [xLabels, yLabels] = [tickLabels(xAxis, spec.x.format), tickLabels(yAxis, spec.y.format)];
  yAxis.ticks.forEach((tick, i) => {
    const y = toY(tick);
    drawing.append(
        shape(
            "line",
            {class: tick === 0 && yAxis.low < 0 ? "zero" : "grid", x1: frame.left, x2: frame.right, y1: y, y2: y}),
        shape("text", {x: frame.left - 7, y: y + 4, "text-anchor": "end"}, yLabels[i]));
  });
  xAxis.ticks.forEach((tick, i) => {
    const x = toX(tick);
    drawing.append(
        shape("line", {class: "axis", x1: x, x2: x, y1: frame.bottom, y2: frame.bottom + 4}),
        shape("text", {x, y: frame.bottom + 17, "text-anchor": "middle"}, xLabels[i]));
  });
  drawing.append(
      shape("line", {class: "axis", x1: frame.left, x2: frame.right, y1: frame.bottom, y2: frame.bottom}),
      shape("text", {x: frame.right, y: frame.bottom + 33, "text-anchor": "end"}, spec.x.title),
      shape("text", {x: 2, y: 13}, spec.y.title));
}

function drawSeries(drawing, spec, toX, toY) {
  const turns = turnsOf(spec.series);
  const places =
      spec.series.map(({points}) => points.map((point) => [toX(point.x).toFixed(1), toY(point.y).toFixed(1)]));
  const fromBelow = [...spec.series.keys()].sort((a, b) => turns[a].turn - turns[b].turn);
  for (const at of fromBelow) {
    const {style} = spec.series[at];
    if (style.line === false || places[at].length < 2) continue;
    const {turn, count} = turns[at];
    const dash = 6;
    drawing.append(shape("path", {
      class: curveClass(style),
      d: "M" + places[at].map((place) => place.join(" ")).join("L"),
      "stroke-dasharray": turn > 0 ? `${dash} ${dash * (count - 1)}` : null,
      "stroke-dashoffset": turn > 0 ? -dash * turn : null
    }));
  }
  spec.series.forEach((series, at) => {
    // Enough markers to tell the curves apart, not so many that they hide them.
    const every = spec.scatter ? 1 : Math.ceil(places[at].length / 8);
    places[at].forEach(([x, y], i) => {
      if (series.style.marker && (i % every === turns[at].turn % every || i === places[at].length - 1))
        drawing.append(drawMarker(series.style, x, y));
    });
    if (series.named)
      series.points.forEach(
          (point, i) => drawing.append(pointName(point.name, Number(places[at][i][0]), places[at][i][1], drawing)));
  });
}

// Lines that lie on one another, as learning rates do, take turns in dashes; the last would hide the others. The longest
// is whole, below them. Those that have dashes of their own are left out.
function turnsOf(series) {
  const groups = [];
  for (const one of [...series].sort((a, b) => b.points.length - a.points.length)) {
    if (one.style.dashed || one.style.line === false || one.points.length < 2) continue;
    const group = groups.find(([longest]) => isSameLine(longest, one));
    if (group)
      group.push(one);
    else
      groups.push([one]);
  }
  return series.map((one) => {
    const group = groups.find((members) => members.includes(one)) || [one];
    return {turn: group.indexOf(one), count: group.length};
  });
}

// As far as the shorter one goes.
function isSameLine(one, other) {
  const length = Math.min(one.points.length, other.points.length);
  return one.points.slice(0, length).every(({x, y}, i) => x === other.points[i].x && y === other.points[i].y);
}

function pointName(name, x, y, drawing) {
  const toTheLeft = x > drawing.viewBox.baseVal.width / 2;
  return shape(
      "text",
      {class: "point-name", x: x + (toTheLeft ? -11 : 11), y, dy: 4, "text-anchor": toTheLeft ? "end" : "start"}, name);
}

// One stop per x, with the values of all series there.
function columnStops(spec, toX, toY) {
  const stops = new Map();
  for (const one of spec.series) {
    for (const point of one.points) {
      const stop = stops.get(point.x) ||
          {x: toX(point.x), title: `${spec.x.title} ${spec.x.format(point.x)}`, rows: [], dots: []};
      stop.rows.push({swatch: swatch(one.style), name: one.name, value: (spec.y.exact || spec.y.format)(point.y)});
      stop.dots.push([toX(point.x), toY(point.y)]);
      stops.set(point.x, stop);
    }
  }
  const sorted = [...stops.values()].sort((a, b) => a.x - b.x);
  for (const stop of sorted) stop.y = Math.min(...stop.dots.map((dot) => dot[1]));
  return sorted;
}

function pointStops(spec, toX, toY) {
  const stops = spec.series.flatMap((one) => one.points.map((point) => {
    const [x, y] = [toX(point.x), toY(point.y)];
    return {
      x,
      y,
      dots: [[x, y]],
      title: point.name,
      rows: [
        {name: spec.y.short, value: (spec.y.exact || spec.y.format)(point.y)},
        {name: spec.x.short, value: (spec.x.exact || spec.x.format)(point.x)}
      ]
    };
  }));
  return stops.sort((a, b) => a.x - b.x);
}

function readStops(drawing, cursor, stops, frame, scatter) {
  readout(drawing, {
    nearest: (x, y) => {
      const distance = (stop) => Math.hypot(stop.x - x, scatter ? stop.y - y : 0);
      return stops.reduce((best, stop, i) => (distance(stop) < distance(stops[best]) ? i : best), 0);
    },
    step: (place, key) => {
      if (place === null) return stops.length - 1;
      const move = key === "ArrowRight" || key === "ArrowUp" ? 1 : -1;
      return Math.max(0, Math.min(stops.length - 1, place + move));
    },
    describe: (place) => stops[place],
    mark: (place) => {
      cursor.replaceChildren();
      if (place === null) return;
      const {x, dots} = stops[place];
      if (!scatter) cursor.append(shape("line", {class: "cursor", x1: x, x2: x, y1: frame.top, y2: frame.bottom}));
      for (const dot of dots)
        cursor.append(shape("circle", {class: "cursor", cx: dot[0], cy: dot[1], r: scatter ? 9 : 5.5}));
    },
  });
}

// --- shades ---

const SHADES = 10;

// The top of a scale that starts at 0: the first round number that all values fit under.
function scaleTop(largest) {
  const tops = [0.02, 0.03, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.8, 1];
  return tops.find((top) => largest <= top + 1e-9) || 1;
}

const shade = (value, top) => `h${Math.max(0, Math.min(SHADES - 1, Math.floor((value / top) * SHADES)))}`;

// Shades by the square root, so that a wide histogram shows beside one that has gathered in a single bin.
const rootShade = (value, top) => shade(Math.sqrt(value / top), 1);

function scaleLegend(text, top, middle) {
  const icon = shape("svg", {
    width: 140,
    height: 12,
    viewBox: "0 0 140 12",
    role: "img",
    "aria-label": `shades from 0 to ${percent(top, 0)}`
  });
  for (let i = 0; i < SHADES; ++i)
    icon.append(shape("rect", {class: `cell h${i}`, x: i * 14, y: 0, width: 14.2, height: 12}));
  const ends = element("span", {}, "0 %", icon, percent(top, 0));
  return element(
      "div", {class: "scale"}, element("span", {}, text), ends,
      middle ? element("span", {}, `(half-way: ${percent(middle, 0)})`) : null);
}

// A strip of histograms. `spec`: title, epochs, columns (a list of fractions from low to high, or null, per epoch), top.
function strip(spec, width) {
  const height = 250;
  const bins = Math.max(...spec.columns.map((column) => (column ? column.length : 0)));
  const frame = {left: 44, right: width - 14, top: 26, bottom: height - 38};
  const count = spec.epochs.length;
  const [cellWidth, cellHeight] = [(frame.right - frame.left) / count, (frame.bottom - frame.top) / bins];
  const drawing = shape(
      "svg",
      {viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${spec.title}. Arrow keys read the values.`});
  const corner = (i, j) => [frame.left + i * cellWidth, frame.bottom - (j + 1) * cellHeight];
  drawing.append(shape("rect", {
    class: "cell h0",
    x: frame.left,
    y: frame.top,
    width: frame.right - frame.left,
    height: frame.bottom - frame.top
  }));
  spec.columns.forEach((column, i) => (column || []).forEach((value, j) => {
    const tone = rootShade(value, spec.top);
    if (tone === "h0") return;
    const [x, y] = corner(i, j);
    // A little overlap hides the seams between neighbours.
    drawing.append(shape("rect", {
      class: `cell ${tone}`,
      x: x.toFixed(2),
      y: y.toFixed(2),
      width: (cellWidth + 0.4).toFixed(2),
      height: (cellHeight + 0.4).toFixed(2)
    }));
  }));
  stripAxes(drawing, spec, frame, cellWidth);
  const cursor = shape("rect", {class: "cursor", width: cellWidth, height: cellHeight, visibility: "hidden"});
  drawing.append(cursor);
  readGrid(drawing, cursor, {
    columns: count,
    rows: bins,
    corner,
    cellWidth,
    cellHeight,
    locate: (x, y) => [Math.floor((x - frame.left) / cellWidth), Math.floor((frame.bottom - y) / cellHeight)],
    describe: (i, j) => ({
      title: `Epoch ${spec.epochs[i]}`,
      rows: [{
        name: `max P ${(j / bins).toFixed(2)} to ${((j + 1) / bins).toFixed(2)}`,
        value: percent(spec.columns[i] ? spec.columns[i][j] : null, 1)
      }]
    }),
  });
  return drawing;
}

function stripAxes(drawing, spec, frame, cellWidth) {
  for (const tick of [0, 0.25, 0.5, 0.75, 1]) {
    const y = frame.bottom - tick * (frame.bottom - frame.top);
    drawing.append(
        shape("line", {class: "axis", x1: frame.left - 4, x2: frame.left, y1: y, y2: y}),
        shape("text", {x: frame.left - 8, y: y + 4, "text-anchor": "end"}, tick.toFixed(2)));
  }
  const {ticks} = linearAxis(
      spec.epochs[0], spec.epochs[spec.epochs.length - 1], Math.max(4, Math.floor((frame.right - frame.left) / 70)),
      true);
  spec.epochs.forEach((epoch, i) => {
    if (!ticks.includes(epoch)) return;
    const x = frame.left + (i + 0.5) * cellWidth;
    drawing.append(shape("text", {x, y: frame.bottom + 17, "text-anchor": "middle"}, String(epoch)));
  });
  drawing.append(
      shape("text", {x: frame.right, y: frame.bottom + 33, "text-anchor": "end"}, "Epoch"),
      shape("text", {x: 2, y: 13}, "max P of a slice"));
}

// Reads a drawing of equal cells; a place is [column, row].
function readGrid(drawing, cursor, grid) {
  const inside = ([i, j]) => i >= 0 && j >= 0 && i < grid.columns && j < grid.rows;
  const moves =
      {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, grid.upwards ?? 1], ArrowDown: [0, -(grid.upwards ?? 1)]};
  readout(drawing, {
    nearest: (x, y) => {
      const place = grid.locate(x, y);
      return inside(place) ? place : null;
    },
    step: (place, key) => {
      if (place === null) return [grid.columns - 1, grid.rows - 1];
      const next = [place[0] + moves[key][0], place[1] + moves[key][1]];
      return inside(next) ? next : place;
    },
    describe: ([i, j]) => {
      const [x, y] = grid.corner(i, j);
      return {x: x + grid.cellWidth / 2, y: y + grid.cellHeight / 2, ...grid.describe(i, j)};
    },
    mark: (place) => {
      cursor.setAttribute("visibility", place === null ? "hidden" : "visible");
      if (place === null) return;
      const [x, y] = grid.corner(place[0], place[1]);
      cursor.setAttribute("x", x);
      cursor.setAttribute("y", y);
    },
  });
}
