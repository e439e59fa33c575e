// Tables, theme, and putting the page together.

// --- summary ---

// Of a run whose files are damaged.
const UNKNOWN = "–";

function summarySection(runs) {
  const heads = [
    ["Run"], ["Network", "width"], ["Method", "settings"], ["Epochs", "done / total"], ["Soft", "final test"],
    ["Hard", "final test"], ["Best hard", "test"], ["Params", "words"], ["MACs", "one image"], ["Activations", "words"],
    ["Wall time"]
  ];
  const row = (run, i) =>
      [element("td", {title: run.label}, swatch(runStyle(i)), run.name),
       element(
           "td", {}, run.network ?? UNKNOWN,
           run.width === null ? null : element("span", {class: "unit faint"}, String(run.width))),
       methodCell(run.method), numberCell(`${run.epochs_done} / ${run.epochs_total ?? UNKNOWN}`),
       numberCell(percent(run.final_soft)), numberCell(percent(run.final_hard)),
       numberCell(percent(run.best_hard), run.best_epoch === null ? "" : `epoch ${run.best_epoch}`),
       numberCell(thousands(run.params)), numberCell(thousands(run.macs)), numberCell(thousands(run.activations)),
       numberCell(duration(run.wall_s))];
  const table = element(
      "table", {},
      element(
          "thead", {},
          element(
              "tr", {},
              ...heads.map(
                  ([text, unit], i) => element(
                      "th", {scope: "col", class: i > 2 ? "number" : null}, text,
                      unit ? element("span", {class: "unit"}, unit) : null)))),
      element("tbody", {}, ...runs.map((run, i) => element("tr", {}, ...row(run, i)))));
  const waiting = runs.filter((run) => run.epochs_total !== null && run.epochs_done < run.epochs_total);
  const damage = runs.flatMap((run) => run.notices.map((text) => note(`Not shown of ${run.name}: ${text}`)));
  return [
    scrollBox("Summary of the runs", "scroll", table),
    waiting.length > 0 ? note(`Not finished when this page was made: ${waiting.map((run) => run.name).join(", ")}.`) :
                         null,
    ...damage
  ];
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
    element("div", {class: "controls"}, runChooser, element("label", {}, "Filter", filter), shown),
    scrollBox(
        "Counts by layer", "scroll tall",
        element("table", {}, element("thead", {}, element("tr", {}, ...heads)), body, foot))
  ];
}

// Large numbers are what one looks for first, names from a to z.
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
  const {version, runs, paper} = JSON.parse(document.getElementById("data").textContent);
  nameRuns(runs);
  const labels = runs.map((run) => run.label).join(", ");
  startTheme();
  startContents();
  document.title = `onetap report: ${labels}`;
  document.getElementById("about").textContent = runs.length === 1 ? labels : `${runs.length} runs: ${labels}`;
  document.getElementById("foot").textContent = `Made by onetap ${version}.`;
  fillSection("summary", summarySection(runs));
  fillSection("curves", curvesSection(runs));
  fillSection("gap", gapSection(runs));
  fillSection("maps", mapsSection(runs));
  fillSection("sureness", surenessSection(runs));
  fillSection("agreement", agreementSection(runs));
  fillSection("memory", memorySection(runs, paper));
  fillSection("layers", layersSection(runs));
}

start();
