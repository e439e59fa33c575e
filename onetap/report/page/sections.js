// The sections with charts. Each takes the runs and returns what stands under its heading.

const EPOCH_AXIS = {
  title: "Epoch",
  format: (value) => String(value),
  whole: true
};

function column(run, key) {
  const {epoch} = run.curves;
  return run.curves[key].map((value, i) => ({x: epoch[i], y: value}));
}

const axisNumber = (value, digits = 3) => significant(value, digits);

const inPercent = (points) => points.map((point) => ({...point, y: isNumber(point.y) ? 100 * point.y : null}));

// --- learning curves ---

// The set that all runs are tested on after an epoch; null if it is the test set of some and the validation set of others.
const watchedByAll = (runs) => (runs.every((run) => run.watched === runs[0].watched) ? runs[0].watched : null);

const capital = (text) => text[0].toUpperCase() + text.slice(1);

function curvesSection(runs) {
  const single = runs.length === 1;
  const watched = watchedByAll(runs);
  const named = (run, kind) => (single ? kind : `${run.name}, ${kind}`);
  const tested = (run, kind) => named(run, watched === null ? `${run.watched} ${kind}` : kind);
  const losses = () => runs.flatMap(
      (run, i) =>
          [{name: named(run, "train"), style: {...runStyle(i), dashed: true}, points: column(run, "train_loss")},
           {name: named(run, run.watched), style: runStyle(i), points: column(run, "test_loss")}]);
  // Without a soft form both are one network, and one line.
  const accuracies = () => runs.flatMap((run, i) => {
    const curve = (key, name, dashed) =>
        ({name, style: {...runStyle(i), dashed}, points: inPercent(column(run, key))});
    if (!run.sal) return [curve("soft", single || watched === null ? named(run, run.watched) : run.name, false)];
    // So it is where training itself is hard (straight-through): the second line would hide the first.
    if (run.curves.soft.every((soft, at) => soft === run.curves.hard[at])) {
      return [curve("hard", tested(run, "soft and hard"), false)];
    }
    return [curve("soft", tested(run, "soft"), true), curve("hard", tested(run, "hard"), false)];
  });
  const one = (key, name) =>
      runs.map((run, i) => ({name: single ? name : run.name, style: runStyle(i), points: column(run, key)}));
  const plain = {format: axisNumber, exact: (value) => significant(value, 4)};
  return [element(
      "div", {class: "panels"}, chartPanel({
        title: "Loss",
        x: EPOCH_AXIS,
        y: {title: "Cross-entropy", ...plain},
        logSwitch: true,
        series: losses()
      }),
      chartPanel({
        title: watched === null ? "Accuracy" : `${capital(watched)} accuracy`,
        x: EPOCH_AXIS,
        y: {title: "Accuracy (%)", format: axisNumber, exact: (value) => `${value.toFixed(2)} %`},
        series: accuracies()
      }),
      chartPanel({
        title: "Learning rate",
        x: EPOCH_AXIS,
        y: {title: "Learning rate", low: 0, ...plain},
        logSwitch: true,
        series: one("lr", "learning rate")
      }),
      chartPanel({
        title: "Temperature",
        x: EPOCH_AXIS,
        y: {title: "T (log scale)", log: true, ...plain},
        series: one("temperature", "T"),
        empty: runs.some((run) => run.sal) ? null : "No run here has a temperature: none learns its taps by attention."
      }))];
}

function gapSection(runs) {
  const withAttention = runs.filter((run) => run.sal);
  if (withAttention.length === 0) return [note("No run here learns its taps by attention: soft and hard are the same network.")];
  const watched = watchedByAll(withAttention);
  const named = (run) => (watched === null ? `${run.name}, ${run.watched}` : run.name);
  return [chartPanel({
    title: `Soft minus hard ${watched === null ? "" : `${watched} `}accuracy`,
    x: EPOCH_AXIS,
    height: 240,
    y: {
      title: "Percentage points",
      low: 0,
      format: axisNumber,
      exact: (value) => `${value.toFixed(2)} points`
    },
    series: withAttention.map(
        (run) => ({name: named(run), style: runStyle(runs.indexOf(run)), points: inPercent(column(run, "gap"))}))
  })];
}

// --- attention ---

function noAttention(runs) {
  const trained = runs.filter((run) => run.sal);
  if (trained.length === 0) return note("No run here learns its taps by attention: there is none to show.");
  const started = trained.some((run) => run.epochs_done > 0);
  return note(
      started ? "These runs have no attention.jsonl: their attention was not recorded." :
                "No epoch is done yet: no attention has been recorded.");
}

const attentive = (runs) => runs.map((run, i) => ({run, i})).filter(({run}) => run.attention !== null);

const runOptions = (choices) => choices.map(({run, i}) => ({value: i, text: run.name}));

// Of several runs, the one that is shown; on the screen a chooser names it, if there is one.
function shownRun(run, runs, choices) {
  if (runs.length === 1) return null;
  return choices.length > 1 ? onPaper(run.name) : element("p", {class: "shown-run"}, run.name);
}

function mapsSection(runs) {
  const choices = attentive(runs);
  if (choices.length === 0) return [noAttention(runs)];
  const host = element("div", {});
  const show = (i) => {
    const parts = [shownRun(runs[i], runs, choices), ...mapsOfRun(runs[i].attention)];
    host.replaceChildren(...parts.filter((part) => part !== null));
  };
  show(choices[0].i);
  const controls = choices.length > 1 ?
      element("div", {class: "controls"}, chooser("Run", "maps-run", runOptions(choices), show)) :
      null;
  return [controls, host];
}

function mapsOfRun(attention) {
  const state = {at: attention.epoch.length - 1, what: "kept", all: false};
  const grids = element("div", {class: "maps"});
  const scale = element("div", {});
  const epochName = element("output", {"for": "maps-epoch"});
  const printed = onPaper();
  let maps = [];
  const update = () => {
    const top = scaleTop(largestFraction(attention, state.what));
    scale.replaceChildren(scaleLegend(state.what === "kept" ? "Fraction of kept taps" : "Mean of P", top));
    const temperature = attention.temperature[state.at];
    epochName.textContent =
        `${attention.epoch[state.at]}, ${isNumber(temperature) ? `T = ${significant(temperature, 3)}` : "taps fixed"}`;
    printed.textContent = `Epoch ${epochName.textContent}` +
        (maps.length < attention.layers.length ? `; first and last four of ${attention.layers.length} layers` : "");
    for (const map of maps) map.update(state, top);
  };
  const arrange = () => {
    maps = chosenLayers(attention.layers.length, state.all).map((layer) => layerMap(attention, layer, state));
    grids.replaceChildren(...maps.map((map) => map.figure));
    update();
  };
  const controls = element(
      "div", {class: "controls"}, whatSwitch(state, update),
      element("label", {}, "Epoch", epochSlider(state, update), epochName),
      attention.layers.length > 8 ? layersButton(state, attention.layers.length, arrange) : null);
  arrange();
  return [controls, printed, scale, grids];
}

function whatSwitch(state, update) {
  const options = [{value: "kept", text: "Kept taps"}, {value: "mean_p", text: "Mean of P"}];
  return radioSwitch("What the cells show", "maps-what", options, (value) => {
    state.what = value;
    update();
  });
}

function epochSlider(state, update) {
  const move = (event) => {
    state.at = Number(event.target.value);
    update();
  };
  return element(
      "input", {type: "range", id: "maps-epoch", min: 0, max: state.at, value: state.at, step: 1, input: move});
}

function layersButton(state, count, arrange) {
  const text = () => (state.all ? "First and last four" : `All ${count} layers`);
  const toggle = (event) => {
    state.all = !state.all;
    event.target.textContent = text();
    arrange();
  };
  return element("button", {type: "button", id: "maps-all", class: "control", click: toggle}, text());
}

function chosenLayers(count, all) {
  const every = [...Array(count).keys()];
  return all || count <= 8 ? every : [...every.slice(0, 4), ...every.slice(-4)];
}

// Fractions per position: counts of kept taps are divided by their sum.
function fractionOf(attention, what, at, layer) {
  const values = attention[what][at][layer];
  if (!values) return null;
  if (what === "mean_p") return values;
  const sum = values.reduce((total, value) => total + value, 0);
  return values.map((value) => (sum > 0 ? value / sum : 0));
}

// Over all layers and epochs, so that neither the slider nor the choice of layers changes the colours.
function largestFraction(attention, what) {
  attention.largest = attention.largest || {};
  if (attention.largest[what] === undefined) {
    let largest = 0;
    attention.epoch.forEach((_, at) => attention.layers.forEach((_layer, layer) => {
      for (const value of fractionOf(attention, what, at, layer) || []) largest = Math.max(largest, value);
    }));
    attention.largest[what] = largest;
  }
  return attention.largest[what];
}

function layerMap(attention, layer, state) {
  const {name, h, w} = attention.layers[layer];
  const side = 40;
  const drawing = shape("svg", {viewBox: `0 0 ${w * side} ${h * side}`, role: "img"});
  const cells = [];
  for (let row = 0; row < h; ++row) {
    for (let at = 0; at < w; ++at) {
      const text = shape("text", {x: (at + 0.5) * side, y: (row + 0.5) * side});
      text.style.fontSize = `${(w * side * (w > 5 ? 9 : 11)) / 130}px`;
      const cell = shape("g", {}, shape("rect", {x: at * side, y: row * side, width: side, height: side}), text);
      cells.push({cell, text});
      drawing.append(cell);
    }
  }
  const cursor = shape("rect", {class: "cursor", width: side, height: side, visibility: "hidden"});
  drawing.append(cursor);
  readGrid(drawing, cursor, {
    columns: w,
    rows: h,
    cellWidth: side,
    cellHeight: side,
    upwards: -1,
    corner: (i, j) => [i * side, j * side],
    locate: (x, y) => [Math.floor(x / side), Math.floor(y / side)],
    describe: (i, j) => describeCell(attention, layer, state, i, j),
  });
  const update = (now, top) => {
    const values = fractionOf(attention, now.what, now.at, layer) || [];
    cells.forEach(({cell, text}, i) => {
      const known = isNumber(values[i]);
      cell.setAttribute("class", `cell ${known ? shade(values[i], top) : "h0"}`);
      text.textContent = w > 7 ? "" : known ? `${Math.round(100 * values[i])}${w > 4 ? "" : "%"}` : "–";
    });
    drawing.setAttribute("aria-label", `${name}: ${values.map((value) => percent(value, 0)).join(", ")}`);
  };
  return {figure: element("figure", {}, element("figcaption", {}, name), drawing), update};
}

function describeCell(attention, layer, state, i, j) {
  const {name, h, w} = attention.layers[layer];
  const at = j * w + i;
  const offset = (value, size) => {
    const d = value - Math.floor(size / 2);
    return d > 0 ? `+${d}` : `${d}`;
  };
  const values = fractionOf(attention, state.what, state.at, layer) || [];
  const rows = [{name: state.what === "kept" ? "fraction of kept taps" : "mean of P", value: percent(values[at], 1)}];
  const kept = attention.kept[state.at][layer];
  if (state.what === "kept" && kept) rows.push({name: "kept taps", value: thousands(kept[at])});
  return {title: `${name}, shift ${offset(j, h)} down, ${offset(i, w)} right`, rows};
}

// "All layers" of every run, and each layer; values are "run:layer", layer -1 for all.
function layerOptions(runs, choices, everything) {
  const items = ({run, i}) =>
      [{value: `${i}:-1`, text: everything},
       ...run.attention.layers.map((layer, at) => ({value: `${i}:${at}`, text: layer.name}))];
  if (choices.length === 1) return items(choices[0]);
  return choices.map((choice) => ({text: choice.run.name, group: items(choice)}));
}

function confidenceSection(runs) {
  const choices = attentive(runs);
  if (choices.length === 0) return [noAttention(runs)];
  const host = element("div", {});
  const show = (value) => {
    const [i, layer] = value.split(":").map(Number);
    const {attention, name} = runs[i];
    const columns = attention.epoch.map((_, at) => (layer < 0 ? attention.mean_max_p[at] : attention.max_p[at][layer]));
    const top = scaleTop(columns.reduce((largest, values) => Math.max(largest, ...(values || [])), 0));
    const title = `${layer < 0 ? "All layers" : attention.layers[layer].name}, ${name}`;
    const chart = element("div", {class: "chart"});
    host.replaceChildren(element(
        "div", {class: "panel"}, element("h3", {}, title), chart, scaleLegend("Fraction of slices", top, top / 4)));
    requestAnimationFrame(
        () => drawAtWidth(chart, (width) => strip({title, epochs: attention.epoch, columns, top}, width)));
  };
  show(`${choices[0].i}:-1`);
  return [
    element(
        "div", {class: "controls"},
        chooser("Layers", "confidence-layer", layerOptions(runs, choices, "all layers"), show)),
    host
  ];
}

function agreementSection(runs) {
  const choices = attentive(runs);
  if (choices.length === 0) return [noAttention(runs)];
  const host = element("div", {});
  const line = (attention, values) => inPercent(attention.epoch.map((epoch, at) => ({x: epoch, y: values(at)})));
  const show = (value) => {
    const [chosen, layer] = value.split(":").map(Number);
    const series = choices.map(({run, i}) => ({
                                 name: `${run.name}, mean over layers`,
                                 style: runStyle(i),
                                 points: line(run.attention, (at) => run.attention.mean_agreement[at])
                               }));
    if (layer >= 0) {
      const {attention, name} = runs[chosen];
      series.push({
        name: `${name}, ${attention.layers[layer].name}`,
        style: {colour: "ink", dashed: true},
        points: line(attention, (at) => attention.agreement[at][layer])
      });
    }
    host.replaceChildren(chartPanel({
      title: "Taps kept again",
      x: EPOCH_AXIS,
      height: 250,
      series,
      empty: "Needs two records of the attention.",
      y: {
        title: "Kept taps (%)",
        high: 100,
        format: axisNumber,
        exact: (number) => `${number.toFixed(2)} %`
      }
    }));
  };
  show(`${choices[0].i}:-1`);
  const still = choices.filter(({run}) => run.attention.still !== null).map(({run}) => stillNote(run));
  return [
    element(
        "div", {class: "controls"},
        chooser("Compare with", "agreement-layer", layerOptions(runs, choices, "no layer"), show)),
    host, ...still
  ];
}

// Full agreement that nothing was learned for.
function stillNote(run) {
  const {still, epoch} = run.attention;
  return note(
      still === "tie" ?
          `${run.name}: no taps were learned. P is the same at every position, and the kept taps are the first ones, ` +
              `as in a tie: 100 % does not mean that a choice was learned.` :
          `${run.name}: the kept taps never changed from the first record (epoch ${epoch[0]}) on: no taps were learned ` +
              `after it, and 100 % does not show that a choice was learned before.`);
}

// --- memory ---

// On all of its test images.
const isCifar10 = ({test_set: set}) => set !== null && /^cifar10($|:)/.test(set) && !/[:,]limit=\d+/.test(set);

// "folder:photos,limit=100" of "folder:/home/me/photos,limit=100": what a heading has room for. Where CIFAR lies does not
// matter.
function testSetName(run) {
  if (run.test_set === null) return "unknown data";
  if (isCifar10(run)) return "CIFAR-10";
  const [kind, path] = run.test_set.split(/:(.*)/s);
  const limit = /[:,](limit=\d+)/.exec(run.test_set);
  if (kind.startsWith("cifar")) return limit ? `${kind}, ${limit[1]}` : kind;
  return path ? `${kind}:${path.replace(/\/+$/, "").split("/").pop()}` : kind;
}

// The paper's points are for CIFAR-10: runs with other test images have charts of their own.
function memorySection(runs, paper) {
  const groups = new Map();
  for (const run of runs.filter((one) => isNumber(one.memory))) {
    const set = isCifar10(run) ? "CIFAR-10" : run.test_set;
    groups.set(set, [...(groups.get(set) || []), run]);
  }
  if (groups.size === 0) return [note("No run has a network that can be read.")];
  const panels = [...groups].map(([set, ours]) => memoryPanel(testSetName(ours[0]), ours, set === "CIFAR-10" ? paper : []));
  if (!groups.has("CIFAR-10")) panels.push(note("The paper’s points are not shown: they are for the whole test set of CIFAR-10, and no run here uses it."));
  return panels;
}

function memoryPanel(name, runs, paper) {
  const curves = [...new Set(paper.map((point) => point.curve))];
  const named = (run) => (run.tested ? run.name : `${run.name} (validation)`);
  const paperName = (point) => `${point.curve}${point.width === null ? "" : `, width ${point.width}`} (paper)`;
  const published =
      curves.map((curve, i) => ({
                   name: curve,
                   style: {...runStyle(i), thin: true},
                   points: paper.filter((point) => point.curve === curve)
                               .map((point) => ({x: point.memory, y: point.accuracy, name: paperName(point)}))
                               .sort((a, b) => a.x - b.x)
                 }));
  const ours = runs.map((run) => ({
                          name: named(run),
                          named: true,
                          style: {colour: "ink", marker: "star", line: false},
                          points: [{
                            x: run.memory,
                            y: isNumber(run.final_hard) ? 100 * run.final_hard : null,
                            name: named(run)
                          }]
                        }));
  return chartPanel({
    title: `Accuracy against memory, ${name}`,
    scatter: true,
    height: paper.length > 0 ? 400 : 260,
    series: [...published, ...ours],
    x: {
      title: "Memory (32-bit words, log scale)",
      short: "memory, words",
      log: true,
      roomy: true,
      format: compact,
      exact: thousands
    },
    y: {
      title: "Test accuracy (%)",
      short: "accuracy",
      format: axisNumber,
      exact: (value) => `${value.toFixed(2)} %`
    }
  });
}
