// Elements, numbers and the read-out box. Data reaches the page as text nodes and attributes only, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function fillElement(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function")
      node.addEventListener(name, value);
    else if (value !== null && value !== false)
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function element(tag, attributes = {}, ...children) {
  return fillElement(document.createElement(tag), attributes, children);
}

function shape(tag, attributes = {}, ...children) {
  return fillElement(document.createElementNS(SVG, tag), attributes, children);
}

// What a control says, on paper, where controls are hidden.
function onPaper(text = "") { return element("p", {class: "on-paper"}, text); }

function note(text) { return element("p", {class: "note"}, text); }

// --- numbers as text ---

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);

const thousands = (value) => (isNumber(value) ? value.toLocaleString("en", {maximumFractionDigits: 1}) : "–");

const percent = (value, digits = 2) => (isNumber(value) ? `${(100 * value).toFixed(digits)} %` : "–");

function significant(value, digits = 4) {
  if (!isNumber(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 1e-3 || Math.abs(value) >= 1e6)) {
    return value.toExponential(digits - 2).replace(/\.?0+e/, "e");
  }
  return String(Number(value.toPrecision(digits)));
}

function compact(value, digits = 3) {
  for (const [size, letter] of [[1e9, " G"], [1e6, " M"], [1e3, " k"]]) {
    if (Math.abs(value) >= size) return `${Number((value / size).toPrecision(digits))}${letter}`;
  }
  return String(value);
}

function duration(seconds) {
  if (!isNumber(seconds) || seconds <= 0) return "–";
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const pair = (value, large, small) =>
      `${Math.floor(value / 60)} ${large} ${String(value % 60).padStart(2, "0")} ${small}`;
  return seconds < 3599.5 ? pair(Math.round(seconds), "min", "s") : pair(Math.round(seconds / 60), "h", "min");
}

// Runs are often long paths. Where room is short, a run goes by what its path adds to the folders all runs share.
function nameRuns(runs) {
  const paths = runs.map((run) => run.label.replace(/\/+$/, "").split("/"));
  const shared = (depth) => paths.every((path) => path.length > depth + 1 && path[depth] === paths[0][depth]);
  let depth = 0;
  while (shared(depth)) ++depth;
  runs.forEach((run, i) => {
    run.name = paths[i].slice(depth).join("/") || run.label;
  });
}

// --- axes ---

function niceStep(span, count) {
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= raw * 0.999);
}

function linearAxis(low, high, count, whole = false) {
  if (low === high)
    [low, high] = [low - (whole ? 1 : Math.abs(low) * 0.05 || 1), high + (whole ? 1 : Math.abs(high) * 0.05 || 1)];
  const step = whole ? Math.max(1, niceStep(high - low, count)) : niceStep(high - low, count);
  const first = whole ? low : Math.floor(low / step + 1e-9) * step;
  const last = whole ? high : Math.ceil(high / step - 1e-9) * step;
  const ticks = [];
  for (let i = Math.ceil(first / step - 1e-9); i * step <= last + step * 1e-6; ++i)
    ticks.push(Number((i * step).toPrecision(12)));
  return {low: first, high: last, ticks, place: (value) => (value - first) / (last - first)};
}

function logAxis(low, high, count) {
  if (low === high) [low, high] = [low / 2, high * 2];
  const [first, last] = [Math.log10(low), Math.log10(high)];
  const span = last - first;
  const factors = span > 3.5 ? [1] : span > 1.7 ? [1, 3] : span > 0.9 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 6, 8];
  let ticks = [];
  for (let power = Math.floor(first); power <= Math.ceil(last); ++power) {
    for (const factor of factors) ticks.push(Number((factor * 10 ** power).toPrecision(6)));
  }
  const inside = (tick) => tick >= low * 0.999 && tick <= high * 1.001;
  ticks = ticks.filter(inside);
  // A range too short for round powers is as good as linear.
  if (ticks.length < 2) ticks = linearAxis(low, high, count).ticks.filter(inside);
  const skip = Math.ceil(ticks.length / count);
  return {
    low,
    high,
    ticks: ticks.filter((_, i) => i % skip === 0),
    place: (value) => (Math.log10(value) - first) / (last - first)
  };
}

// --- controls ---

function chooser(text, id, options, onChange) {
  const select = element("select", {id, change: () => onChange(select.value)});
  for (const option of options) {
    if (!option.group)
      select.append(element("option", {value: option.value}, option.text));
    else {
      const items = option.group.map((item) => element("option", {value: item.value}, item.text));
      select.append(element("optgroup", {label: option.text}, ...items));
    }
  }
  return element("label", {}, text, select);
}

function radioSwitch(text, name, options, onChange) {
  const buttons = options.map(
      (option, i) => element(
          "label", {},
          element(
              "input",
              {type: "radio", name, value: option.value, checked: i === 0, change: () => onChange(option.value)}),
          element("span", {}, option.text)));
  return element("fieldset", {class: "switch"}, element("legend", {class: "hidden-text"}, text), ...buttons);
}

// A box that scrolls sideways or down must be reachable by keyboard. An edge behind which there is more is shaded.
function scrollBox(text, className, table) {
  const box = element("div", {class: className, tabindex: 0, role: "region", "aria-label": text}, table);
  const edges = element("div", {class: "edges"}, box, element("div", {class: "below"}));
  const foot = table.querySelector("tfoot");  // stays in view, below what scrolls
  const mark = () => {
    edges.classList.toggle("more-left", box.scrollLeft > 1);
    edges.classList.toggle("more-right", box.scrollWidth - box.clientWidth - box.scrollLeft > 1);
    edges.classList.toggle("more-below", box.scrollHeight - box.clientHeight - box.scrollTop > 1);
    edges.style.setProperty("--bar-below", `${box.offsetHeight - box.clientHeight - 2 + (foot === null ? 0 : foot.offsetHeight)}px`);
    edges.style.setProperty("--bar", `${box.offsetWidth - box.clientWidth - 2}px`);
  };
  box.addEventListener("scroll", mark, {passive: true});
  const observer = new ResizeObserver(mark);
  observer.observe(box);
  observer.observe(table);
  return edges;
}

// --- the read-out box ---

const tip = document.getElementById("tip");
const spoken = document.getElementById("spoken");

function showTip(clientX, clientY, title, rows) {
  tip.replaceChildren(element("strong", {}, title));
  for (const row of rows)
    tip.append(element("div", {}, row.swatch || null, element("span", {}, row.name), element("span", {}, row.value)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const right = clientX + 14 + box.width < window.innerWidth;
  const left = right ? clientX + 14 : Math.max(4, clientX - 14 - box.width);
  const top = Math.max(4, Math.min(clientY + 14, window.innerHeight - box.height - 4));
  tip.style.transform =
      `translate(${Math.round(Math.min(left, window.innerWidth - box.width - 4))}px, ${Math.round(top)}px)`;
}

function hideTip() { tip.hidden = true; }

// Lets pointer, touch and keyboard read values off a drawing. A place is whatever the drawing says it is:
//   nearest(x, y) and step(place, key) give one, describe(place) says {x, y, title, rows}, mark(place) shows it.
function readout(drawing, reader) {
  let place = null;
  const scale = () => {
    const box = drawing.getBoundingClientRect();
    return {box, factor: drawing.viewBox.baseVal.width / (box.width || 1)};
  };
  const show = (next, speak) => {
    place = next;
    reader.mark(place);
    if (place === null) return hideTip();
    const {x, y, title, rows} = reader.describe(place);
    const {box, factor} = scale();
    showTip(box.left + x / factor, box.top + y / factor, title, rows);
    if (speak) spoken.textContent = `${title}: ${rows.map((row) => `${row.name} ${row.value}`).join(", ")}`;
  };
  const follow = (event) => {
    const {box, factor} = scale();
    show(reader.nearest((event.clientX - box.left) * factor, (event.clientY - box.top) * factor), false);
  };
  drawing.setAttribute("tabindex", 0);
  drawing.addEventListener("pointermove", follow);
  drawing.addEventListener("pointerdown", follow);
  drawing.addEventListener("pointerleave", () => show(null, false));
  drawing.addEventListener("blur", () => show(null, false));
  drawing.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return show(null, false);
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    show(reader.step(place, event.key), true);
  });
}
