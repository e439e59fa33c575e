// Tables, theme, and putting the page together.

// --- summary ---

// Of a run whose files are damaged.
const UNKNOWN = "–";

// Accuracy stands first: it is what a narrow screen shows without scrolling.
const SUMMARY_COLUMNS = [
  {text: "Run", csv: (run) => run.label},
  {text: "Hard", unit: "final test", number: true, cell: (run) => testedCell(run, run.final_hard), csv: (run) => run.final_hard},
  {text: "Soft", unit: "final test", number: true, cell: (run) => testedCell(run, run.final_soft), csv: (run) => run.final_soft},
  {
    text: "Best hard",
    number: true,
    cell: (run) => numberCell(
        percent(run.best_hard),
        run.best_epoch === null ? "" : `${run.watched === "test" ? "" : "validation, "}epoch ${run.best_epoch}`),
    csv: (run) => run.best_hard
  },
  {
    text: "Epochs",
    unit: "done / total",
    number: true,
    cell: (run) => numberCell(`${run.epochs_done} / ${run.epochs_total ?? UNKNOWN}`, run.ended_early ? "ended early" : ""),
    csv: (run) => run.epochs_done
  },
  {
    text: "Network",
    cell: (run) => element(
        "td", {}, run.network ?? UNKNOWN,
        run.width === null ? null : element("span", {class: "unit faint"}, `width ${run.width}`)),
    csv: (run) => run.network
  },
  {text: "Method", cell: (run) => methodCell(run.method), csv: (run) => run.method},
  {text: "Params", unit: "words", number: true, cell: (run) => numberCell(thousands(run.params)), csv: (run) => run.params},
  {text: "MACs", unit: "one image", number: true, cell: (run) => numberCell(thousands(run.macs)), csv: (run) => run.macs},
  {
    text: "Activations",
    unit: "words",
    number: true,
    cell: (run) => numberCell(thousands(run.activations)),
    csv: (run) => run.activations
  },
  {
    text: "File",
    unit: "bytes",
    number: true,
    optional: true,
    cell: (run) => numberCell(thousands(run.file_bytes)),
    csv: (run) => run.file_bytes
  },
  {
    text: "Latency",
    unit: "one thread",
    number: true,
    optional: true,
    cell: (run) => numberCell(milliseconds(run.latency_ms)),
    csv: (run) => run.latency_ms
  },
  {
    text: "int8 accuracy",
    unit: "by quantize",
    number: true,
    optional: true,
    cell: (run) => numberCell(percent(run.int8_accuracy)),
    csv: (run) => run.int8_accuracy
  },
  {
    text: "int8 file",
    unit: "bytes",
    number: true,
    optional: true,
    cell: (run) => numberCell(thousands(run.int8_bytes)),
    csv: (run) => run.int8_bytes
  },
  {
    text: "int8 latency",
    unit: "one thread",
    number: true,
    optional: true,
    cell: (run) => numberCell(milliseconds(run.int8_latency_ms)),
    csv: (run) => run.int8_latency_ms
  },
  {text: "Wall time", number: true, cell: (run) => numberCell(duration(run.wall_s)), csv: (run) => run.wall_s}
];

const milliseconds = (value) => (isNumber(value) ? `${significant(value, 3)} ms` : UNKNOWN);

// Without a test of its own yet, a run with a validation set has the accuracy of that.
const testedCell = (run, value) => numberCell(percent(value), run.tested ? "" : "validation");

function summarySection(runs) {
  const columns = SUMMARY_COLUMNS.filter((column) => !column.optional || runs.some((run) => isNumber(column.csv(run))));
  const named = (run, i) => element("span", {class: "named"}, swatch(runStyle(i)), element("span", {}, run.name));
  const cell = (column, run, i) => {
    const made = column.cell ? column.cell(run) : element("td", {title: run.label}, named(run, i));
    made.dataset.label = column.unit ? `${column.text}, ${column.unit}` : column.text;
    return made;
  };
  const table = element(
      "table", {},
      element(
          "thead", {},
          element(
              "tr", {},
              ...columns.map(
                  ({text, unit, number}) => element(
                      "th", {scope: "col", class: number ? "number" : null}, text,
                      unit ? element("span", {class: "unit"}, unit) : null)))),
      element(
          "tbody", {},
          ...runs.map((run, i) => element("tr", {}, ...columns.map((column) => cell(column, run, i))))));
  const short = runs.filter((run) => run.epochs_total !== null && run.epochs_done < run.epochs_total);
  const listed = (text, some) => (some.length > 0 ? note(`${text}: ${some.map((run) => run.name).join(", ")}.`) : null);
  const damage = runs.flatMap((run) => run.notices.map((text) => note(`Damaged files of ${run.name} are not shown: ${text}`)));
  const remarks = runs.flatMap((run) => run.remarks.map((text) => note(`${text}.`)));
  const said = headline(runs);
  return [
    said ? element("p", {class: "headline"}, said) : null,
    scrollBox("Summary of the runs", "scroll", table),
    element(
        "p", {class: "downloads"}, csvLink("Summary as CSV", "onetap-summary.csv", summaryCsv(runs)), " ",
        csvLink("Curves as CSV", "onetap-curves.csv", curvesCsv(runs))),
    listed("Not finished when this page was made", short.filter((run) => !run.ended_early)),
    listed("Ended early, when the accuracy no longer rose (patience)", short.filter((run) => run.ended_early)),
    testSets(runs) > 1 ? note("Not all runs are tested on the same images (data and limit differ): only accuracies on the same images can be compared.") :
                         null,
    ...remarks, ...damage
  ];
}

const testSets = (runs) => new Set(runs.filter((run) => run.test_set !== null).map((run) => run.test_set)).size;

// The most accurate pruned run against the most accurate dense run of the same network, width and test images; without
// one, against a larger dense network of the same architecture; without one, against its own size with every tap.
function headline(runs) {
  const byAccuracy = runs.filter((run) => run.tested && isNumber(run.final_hard) && isNumber(run.params))
                         .sort((a, b) => b.final_hard - a.final_hard);
  const pruned = byAccuracy.filter((run) => isNumber(run.dense_params) && run.dense_params > run.params);
  if (pruned.length === 0) return null;
  const isDense = (one, run) => one.method === "dense" && one.network === run.network && run.test_set !== null &&
      one.test_set === run.test_set;
  const pairBy = (isBase) => pruned.map((run) => ({run, base: byAccuracy.find((one) => isDense(one, run) && isBase(one, run))}))
                                 .find(({base}) => base);
  const {run, base} = pairBy((one, of) => one.params === of.dense_params) ||
      pairBy((one, of) => one.params > of.params) || {run: pruned[0], base: null};
  const on = testSets(runs) > 1 ? ` (${testSetName(run)})` : "";
  const fewer = `${((base ? base.params : run.dense_params) / run.params).toFixed(1)}x fewer words`;
  if (!base) return `${run.name}: ${fewer} than the same network with every tap, ${percent(run.final_hard)} hard accuracy${on}`;
  const points = 100 * (run.final_hard - base.final_hard);
  const faster = isNumber(base.latency_ms) && isNumber(run.latency_ms) ?
      `, ${(base.latency_ms / run.latency_ms).toFixed(1)}x as fast` : "";
  return `${run.name} against ${base.name}: ${fewer}, ${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(1)} points${faster}${on}`;
}

// --- CSV ---

function csvText(rows) {
  const field = (value) => {
    const given = value === null || value === undefined ? "" : String(value);
    // As csv_field() of base/text.h: no text is a formula of a spreadsheet.
    const text = /^[=+\-@\t\r]/.test(given) && Number.isNaN(Number(given)) ? `'${given}` : given;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => row.map(field).join(",") + "\r\n").join("");
}

function summaryCsv(runs) {
  const name = (column) => column.text.toLowerCase().replaceAll(" ", "_");
  return csvText([
    [...SUMMARY_COLUMNS.map(name), "width", "data", "seed"],
    ...runs.map((run) => [...SUMMARY_COLUMNS.map((column) => column.csv(run)), run.width, run.data, run.seed])
  ]);
}

function curvesCsv(runs) {
  const keys = ["epoch", "train_loss", "test_loss", "soft", "hard", "train_acc", "lr", "temperature"];
  return csvText([
    ["run", "watched", ...keys],
    ...runs.flatMap((run) => run.curves.epoch.map(
                        (_, i) => [run.label, run.watched, ...keys.map((key) => run.curves[key][i])]))
  ]);
}

function csvLink(text, file, csv) {
  return element("a", {download: file, href: `data:text/csv;charset=utf-8,${encodeURIComponent(csv)}`}, text);
}

// --- where the runs come from ---

function provenanceSection(runs, defaults) {
  const extensions = (run) => Object.entries(run.provenance)
                                  .filter(([key]) => key.startsWith("extended_"))
                                  .sort(([a], [b]) => a.localeCompare(b, "en", {numeric: true}));
  const facts = (run) => [
    ["Command", run.provenance.command], ...extensions(run).map(([, command]) => ["Extended by", command]),
    ["Data", run.data], ["Seed", run.seed],
    ["Started", run.provenance.started], ["onetap", run.provenance.onetap], ["LibTorch", run.provenance.libtorch],
    ["CPU", run.provenance.cpu]
  ].filter(([, value]) => value !== null && value !== undefined);
  const listed = runs.map(
      (run, i) => element(
          "details", {open: runs.length === 1}, element("summary", {}, swatch(runStyle(i)), run.name),
          element(
              "dl", {},
              ...facts(run).flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]))));
  return [...listed, recipeDifference(runs, defaults)];
}

// Settings that differ between the runs; of one run, those that are not the default.
function recipeDifference(runs, defaults) {
  const known = runs.filter((run) => run.recipe !== null);
  if (known.length === 0) return null;
  const single = known.length === 1;
  const others = single ? [defaults] : known.slice(1).map((run) => run.recipe);
  const keys = Object.keys(known[0].recipe).filter((key) => others.some((other) => other[key] !== known[0].recipe[key]));
  const heading = element("h3", {}, single ? "Settings that are not the default" : "Settings that differ");
  if (keys.length === 0) return element("div", {}, heading, note("None: the runs have the same recipe."));
  const columns = single ? [["default", defaults], [known[0].name, known[0].recipe]] :
                           known.map((run) => [run.name, run.recipe]);
  const table = element(
      "table", {},
      element(
          "thead", {},
          element(
              "tr", {}, element("th", {scope: "col"}, "Setting"),
              ...columns.map(([name]) => element("th", {scope: "col"}, name)))),
      element(
          "tbody", {},
          ...keys.map(
              (key) => element(
                  "tr", {}, element("td", {}, key),
                  ...columns.map(([, recipe]) => element("td", {}, recipe[key] === "" ? UNKNOWN : recipe[key]))))));
  return element("div", {id: "recipe-difference"}, heading, scrollBox("Settings", "scroll", table));
}

// --- classes ---

function classesSection(runs) {
  const choices = runs.map((run, i) => ({run, i})).filter(({run}) => run.classes !== null);
  if (choices.length === 0) return [note("Not measured. ‘onetap eval RUN --per-class’ measures it and stores the result in the run.")];
  const host = element("div", {});
  const show = (i) => {
    const parts = [shownRun(runs[i], runs, choices), ...classTables(runs[i].classes)];
    host.replaceChildren(...parts.filter((part) => part !== null));
  };
  show(choices[0].i);
  return [
    choices.length > 1 ?
        element("div", {class: "controls"}, chooser("Run", "classes-run", runOptions(choices), show)) : null,
    host
  ];
}

function classTables({form, step, top5, names, confusion}) {
  const at = (label, answer) => confusion[label * names.length + answer];
  const images = names.map((_, label) => names.reduce((sum, _name, answer) => sum + at(label, answer), 0));
  const rows = names.map((name, label) => {
    const others = names.map((_, answer) => (answer === label ? 0 : at(label, answer)));
    const worst = others.indexOf(Math.max(...others));
    return element(
        "tr", {}, element("td", {}, name), numberCell(thousands(images[label])),
        numberCell(percent(images[label] > 0 ? at(label, label) / images[label] : null)),
        element("td", {}, others[worst] > 0 ? `${names[worst]} (${others[worst]})` : ""));
  });
  const head = (...texts) => element("thead", {}, element("tr", {}, ...texts.map(
      (text, i) => element("th", {scope: "col", class: i === 1 || i === 2 ? "number" : null}, text))));
  const table = scrollBox(
      "Accuracy of every class", "scroll tall",
      element("table", {}, head("Class", "Images", "Accuracy", "Most frequent error"), element("tbody", {}, ...rows)));
  const facts = `The ${form} network after step ${thousands(step)}` +
      (names.length > 5 ? `; top-5 accuracy ${percent(top5)}.` : ".");
  const most = 40;
  return [element("p", {class: "lede"}, facts), table, names.length <= most ? confusionMap(names, at, images) : null].filter(
      (part) => part !== null);
}

function confusionMap(names, at, images) {
  const cell = (label, answer) => {
    const fraction = images[label] > 0 ? at(label, answer) / images[label] : 0;
    return element(
        "td", {class: `heat ${shade(fraction, 1)}`, title: `${names[label]} predicted as ${names[answer]}: ${percent(fraction)}`},
        at(label, answer) > 0 ? String(at(label, answer)) : "");
  };
  return element(
      "div", {id: "confusion"}, element("h3", {}, "Confusion matrix: rows are the classes, columns the predictions"),
      scrollBox(
          "Confusion matrix", "scroll",
          element(
              "table", {},
              element(
                  "thead", {},
                  element("tr", {}, element("th", {}), ...names.map((name) => element("th", {scope: "col"}, name)))),
              element(
                  "tbody", {},
                  ...names.map(
                      (name, label) => element(
                          "tr", {}, element("th", {scope: "row"}, name),
                          ...names.map((_, answer) => cell(label, answer))))))));
}

// "sal taps=1 share=1" on two lines: the table is wide enough as it is.
function methodCell(method) {
  const [name, ...settings] = (method ?? UNKNOWN).split(" ");
  return element(
      "td", {}, name, settings.length > 0 ? element("span", {class: "unit faint"}, settings.join(" ")) : null);
}

function numberCell(text, faint = "") {
  return element("td", {class: "number"}, text, faint ? element("span", {class: "unit faint"}, faint) : null);
}

// --- counts by layer ---

const LAYER_COLUMNS = [
  {key: "index", text: "#", number: true}, {key: "name", text: "Layer"}, {key: "op", text: "Op"},
  {key: "shape", text: "Output"}, {key: "method", text: "Method"},
  {key: "params", text: "Params", number: true, sum: true}, {key: "macs", text: "MACs", number: true, sum: true},
  {key: "activations", text: "Activations", number: true, sum: true}
];

function layersSection(runs) {
  const state = {run: 0, key: "index", up: true, filter: ""};
  const body = element("tbody", {});
  const foot = element("tfoot", {});
  const shown = element("span", {class: "faint", "aria-live": "polite"});
  const printed = onPaper();
  const heads = LAYER_COLUMNS.map(
      (column) => element(
          "th", {scope: "col", class: column.number ? "number" : null},
          element(
              "button", {
                type: "button",
                click: () => {
                  sortBy(state, column);
                  draw();
                }
              },
              column.text)));
  const draw = () => {
    const rows = layerRows(runs[state.run], state);
    body.replaceChildren(...rows.map(layerRow));
    foot.replaceChildren(sumRow(rows));
    shown.textContent = `${rows.length} of ${runs[state.run].layers.length} nodes`;
    printed.textContent = [
      runs.length > 1 ? runs[state.run].name : "",
      state.filter ? `${shown.textContent}, with “${state.filter}”` : ""
    ].filter((text) => text).join(": ");
    heads.forEach(
        (head, i) => head.setAttribute(
            "aria-sort",
            LAYER_COLUMNS[i].key !== state.key ? "none" :
                state.up                       ? "ascending" :
                                                 "descending"));
  };
  const filter = element("input", {
    type: "search",
    id: "layers-filter",
    placeholder: "name, op or method",
    input: () => {
      state.filter = filter.value.trim().toLowerCase();
      draw();
    }
  });
  const runChooser =
      runs.length > 1 ? chooser("Run", "layers-run", runs.map((run, i) => ({value: i, text: run.name})), (i) => {
        state.run = Number(i);
        draw();
      }) : null;
  draw();
  return [
    element("div", {class: "controls"}, runChooser, element("label", {}, "Filter", filter), shown), printed,
    scrollBox(
        "Counts by layer", "scroll tall",
        element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body, foot))
  ];
}

// Large numbers first, names from a to z.
function sortBy(state, column) {
  state.up = state.key === column.key ? !state.up : !column.sum;
  state.key = column.key;
}

function layerRows(run, state) {
  const matches = (row) => [row.name, row.op, row.method].some((text) => text.toLowerCase().includes(state.filter));
  const rows = run.layers.map((row, index) => ({index: index + 1, ...row})).filter(matches);
  const compare = (a, b) => (typeof a === "number" ? a - b : a.localeCompare(b, "en", {numeric: true}));
  return rows.sort((a, b) => (state.up ? 1 : -1) * compare(a[state.key], b[state.key]) || a.index - b.index);
}

function layerRow(row) {
  return element("tr", {}, ...LAYER_COLUMNS.map((column) => {
    const value = row[column.key];
    if (!column.number) return element("td", {}, value);
    return element("td", {class: "number"}, column.sum && value === 0 ? "" : thousands(value));
  }));
}

function sumRow(rows) {
  return element("tr", {}, ...LAYER_COLUMNS.map((column) => {
    if (column.key === "name") return element("td", {}, "Sum of the rows shown");
    return element(
        "td", {class: column.number ? "number" : null},
        column.sum ? thousands(rows.reduce((sum, row) => sum + row[column.key], 0)) : "");
  }));
}

// --- theme ---

// The system's choice until the button is pressed, then the reader's.
function startTheme() {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const apply = () => {
    const theme = chosen || (system.matches ? "dark" : "light");
    root.dataset.theme = theme;
    button.textContent = theme === "dark" ? "Light theme" : "Dark theme";
  };
  system.addEventListener("change", apply);
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    apply();
  });
  apply();
}

// --- the page ---

function startContents() {
  const links = document.querySelector(".contents");
  for (const section of document.querySelectorAll("main section")) {
    links.append(element("a", {href: `#${section.id}`}, section.dataset.short));
  }
}

function fillSection(id, parts) {
  document.querySelector(`#${id} .body`).append(...parts.filter((part) => part !== null));
}

function start() {
  const {version, runs, paper, defaults} = JSON.parse(document.getElementById("data").textContent);
  nameRuns(runs);
  const labels = runs.map((run) => run.label).join(", ");
  startTheme();
  startContents();
  document.title = `onetap report: ${labels}`;
  document.getElementById("about").textContent = runs.length === 1 ? labels : `${runs.length} runs: ${labels}`;
  document.getElementById("foot").textContent = `Made by onetap ${version}.`;
  fillSection("summary", summarySection(runs));
  fillSection("provenance", provenanceSection(runs, defaults));
  fillSection("curves", curvesSection(runs));
  fillSection("classes", classesSection(runs));
  fillSection("gap", gapSection(runs));
  fillSection("maps", mapsSection(runs));
  fillSection("confidence", confidenceSection(runs));
  fillSection("agreement", agreementSection(runs));
  fillSection("memory", memorySection(runs, paper));
  fillSection("layers", layersSection(runs));
}

start();
