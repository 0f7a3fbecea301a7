// The selector: finds the outcome that envsolve computed for the chosen machine and shows its texts.
// Nothing is solved here. Which drivers are alike, and every sentence, comes with the data.
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const form = document.getElementById("selector");
const answer = document.getElementById("answer");
const PLACES = /@(gpu|driver|platform|command)@/g;

/* ---- the state, which is the part of the address after # ---- */

const KEYS = ["gpu", "driver", "platform", "manager", "framework"];

function stateOf(parameters) {
  const state = Object.fromEntries(KEYS.map((key) => [key, parameters.get(key) || ""]));
  const frameworks = parameters.getAll("framework").filter((name) => data.frameworks.includes(name));
  state.framework = frameworks.sort().slice(0, data.together);
  if (!data.steps[state.platform]) state.platform = Object.keys(data.steps)[0];
  if (!data.managers.some((it) => it.name === state.manager)) state.manager = data.managers[0].name;
  if (isCpu(state)) state.driver = "";
  return state;
}

/** Whether no GPU was chosen; it has no driver either. */
const isCpu = (state) => state.gpu === "none";

function addressOf(state) {
  const pairs = KEYS.flatMap((key) => [state[key]].flat().filter(Boolean).map((value) => [key, value]));
  return "#" + new URLSearchParams(pairs);
}

const stateOfAddress = () => stateOf(new URLSearchParams(location.hash.slice(1)));
const stateOfForm = () => stateOf(new URLSearchParams(new FormData(form)));

/* ---- from a state to an outcome ---- */

/** The numbers of a driver as envsolve reads them: 580.65.06, 566.36, 580 or R580; null for anything else. */
function driverParts(text) {
  const found = /^\s*R?(\d{3})(?:\.(\d{1,3}))?(?:\.(\d{1,3}))?\s*$/i.exec(text);
  return found && found.slice(1).filter((part) => part !== undefined).map(Number);
}

/** Whether a driver is at least `floor`, as far as both state their parts. */
function meets(parts, floor) {
  for (let at = 0; at < Math.min(parts.length, floor.length); at++) {
    if (parts[at] !== floor[at]) return parts[at] > floor[at];
  }
  return true;
}

/** A name without its brand; a compute capability as 8.6, whether written so, 86 or sm_86. */
const plainName = (name) => name.toLowerCase().trim().replace(/^nvidia /, "").replace(/^geforce /, "")
  .replace(/^(?:sm_)?(\d{1,2})(\d)$/, "$1.$2");
const names = new Map([...Object.keys(data.gpus), ...Object.keys(data.ambiguous)].map((it) => [plainName(it), it]));

/** The product that a text names, spelled as the data has it; "" for none. */
const productOf = (text) => (text in data.gpus || text in data.ambiguous ? text : names.get(plainName(text)) || "");

/** The number of the outcome for a state, or the sentence that says what is missing. */
function find(state) {
  const gpu = productOf(state.gpu);
  if (!gpu) return state.gpu ? data.words.unknownGpu : data.words.chooseGpu;
  if (!state.framework.length) return data.words.chooseFramework;
  if (gpu in data.ambiguous) return data.ambiguous[gpu];
  const parts = driverParts(state.driver);
  if (state.driver && !parts) return data.words.unknownDriver;
  const manager = data.managers.find((it) => it.name === state.manager);
  const runs = data.index[state.framework.join(",")][`${state.platform} ${manager.kind}`][data.gpus[gpu]];
  if (!parts) return runs[runs.length - 1];
  let step = data.steps[state.platform].filter((floor) => meets(parts, floor)).length - 1;
  for (let at = 0; ; at += 2) {
    if (step < runs[at]) return runs[at + 1];
    step -= runs[at];
  }
}

/** As a shell reads one word. */
const quoted = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);

/** A text about a GPU of which only the compute capability is known, as envsolve words it. */
const nameless = (text) => text.replace(/@gpu@ \(([\d.]+)\)/g, "compute capability $1")
  .replace(/@gpu@ \((compute capability [\d.]+)(?:, (\w+))?\)/g, (_, it, life) => life ? `${it} (${life})` : it);

/** The same for a line of a file. */
const namelessLine = (text) => nameless(text.replace(/@gpu@ \(([\d.]+)\)/g, "a GPU of $1"));

/** What fills the places in texts and in commands, where a GPU stands in quotes; and the command of the state. */
function filler(state) {
  const manager = data.managers.find((it) => it.name === state.manager);
  const driver = state.driver.trim().replace(/^R/i, "");
  const values = { gpu: productOf(state.gpu), driver, platform: state.platform };
  const isNamed = !/^\d+\.\d$/.test(values.gpu);
  const fill = (text) => (isNamed ? text : nameless(text)).replace(PLACES, (_, key) => values[key]);
  const fillLine = (text) => fill(isNamed ? text : namelessLine(text));
  const fillCommand = (text) => fill(text.replaceAll("'@gpu@'", () => quoted(values.gpu)));
  const kind = isCpu(state) && !state.platform.startsWith("win") ? 2 : driver ? 1 : 0;
  values.command = fillCommand(data.commands[state.framework.join(",")][kind] + manager.option);
  return { fill, fillLine, fillCommand, command: `${values.command} -o ${manager.file}` };
}

/** The texts of an outcome: `releases`, `file`, `notes` and `because` of a stack, else `message`, `because`, `ways`. */
function outcomeOf(number, state) {
  const { fill, fillLine, fillCommand, command } = filler(state);
  const text = (id) => fill(data.texts[id]);
  const reasons = (ids) => pairs(ids, 2).map(([id, source]) => ({ text: text(id), source: data.sources[source] }));
  const parts = data.outcomes[number];
  if (Array.isArray(parts[0])) {
    const [files, notes, because, releases] = parts;
    const manager = data.managers.find((it) => it.name === state.manager);
    const file = files[manager.place].map((id) => fillLine(data.texts[id])).join("\n");
    return { command, file, notes: notes.map(text), because: reasons(because), releases: releases.map(text) };
  }
  const [code, message, because, ways] = parts;
  const wayOf = ([id, typed, address]) =>
    ({ text: text(id), command: fillCommand(data.texts[typed]), state: data.texts[address] });
  return { code: text(code), message: text(message), because: reasons(because), ways: pairs(ways, 3).map(wayOf) };
}

const pairs = (list, size) => Array.from({ length: list.length / size }, (_, at) => list.slice(at * size, (at + 1) * size));

/** The state that a way out means: what it does not say stays. */
function stateOfWay(way, state) {
  const said = new URLSearchParams(way.state);
  for (const [key, value] of [...said]) {
    if (value === "@gpu@") said.set(key, productOf(state.gpu));
    if (value === "@driver@") said.set(key, state.driver);
  }
  return stateOf(new URLSearchParams([...said, ["manager", state.manager]]));
}

/* ---- showing it ---- */

/** An element with attributes and children. */
function make(name, attributes, ...children) {
  const element = Object.assign(document.createElement(name), attributes);
  element.append(...children);
  return element;
}

const copyButton = (text) =>
  make("button", { type: "button", textContent: "Copy", onclick: (event) => copy(text, event.target) });

async function copy(text, button) {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
}

function saveButton(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  return make("a", { href: address, download: name, textContent: `Download ${name}` });
}

const code = (text, name) => make("pre", { className: name, tabIndex: 0 }, make("code", {}, text));
const sourceOf = (parts) =>
  pairs(parts, 2).map(([text, address]) => (address ? make("a", { href: address, rel: "noreferrer" }, text) : text));

const reasonList = (because) =>
  make("ul", { className: "because" }, ...because.map(({ text, source }) =>
    make("li", {}, source.length ? withSource(text, source) : text)));

const withSource = (text, source) =>
  make("details", {}, make("summary", {}, text), make("div", { className: "source" }, ...sourceOf(source)));

function shownStack(found, state) {
  const manager = data.managers.find((it) => it.name === state.manager);
  return [
    make("h2", { className: "releases" }, found.releases.join(", ")),
    code(found.command, "command"),
    make("div", { className: "bar" }, copyButton(found.command), manager.remark),
    make("h2", {}, manager.shown),
    code(found.file, "file"),
    make("div", { className: "bar" }, copyButton(found.file), saveButton(found.file, manager.shown)),
    ...(found.notes.length ? [make("h2", {}, "Notes")] : []),
    make("ul", { className: "notes" }, ...found.notes.map((text) => make("li", {}, text))),
    make("h2", {}, "Why these versions"),
    reasonList(found.because),
  ];
}

function shownRefusal(found, state) {
  const ways = found.ways.map((way) =>
    make("li", {},
      way.state ? make("a", { href: addressOf(stateOfWay(way, state)) }, way.text) : make("span", {}, way.text),
      ...(way.command && !way.state ? [code(way.command, "command"), copyButton(way.command)] : [])));
  return [
    make("div", { className: "refused" }, make("h2", {}, found.code), make("p", { className: "message" }, found.message)),
    make("h2", {}, "Why"),
    reasonList(found.because),
    ...(ways.length ? [make("h2", {}, "Ways out"), make("ul", { className: "ways" }, ...ways)] : []),
  ];
}

function show() {
  const state = stateOfAddress();
  showInForm(state);
  const number = find(state);
  if (typeof number === "string") return say(number, [make("p", {}, number)]);
  const found = outcomeOf(number, state);
  if (found.message === undefined) say(found.releases.join(", "), shownStack(found, state));
  else say(found.message, shownRefusal(found, state));
}

/** Show an answer; a screen reader says it in a few words. */
function say(words, parts) {
  document.getElementById("status").textContent = words;
  answer.replaceChildren(...parts);
}

function showInForm(state) {
  for (const field of form.elements) {
    if (!field.name) continue;
    if (["checkbox", "radio"].includes(field.type)) field.checked = [state[field.name]].flat().includes(field.value);
    else if (field !== document.activeElement) field.value = state[field.name];
    if (field.type === "checkbox") field.disabled = !field.checked && state.framework.length >= data.together;
  }
  form.elements.cpu.checked = form.elements.driver.disabled = isCpu(state);
  const kind = data.gpus[productOf(state.gpu)];
  const family = document.getElementById("family");
  family.hidden = kind === undefined;
  if (kind === undefined) return;
  if (!data.kinds[kind]) return void Object.assign(family, { textContent: data.words.noGpu, className: "family" });
  const [capability, generation, colour] = data.kinds[kind];
  family.textContent = `${generation}, compute capability ${capability}`;
  family.className = `family of of${colour}`;
}

/** The driver and the first GPU in what nvidia-smi prints, as a table or with -L or -q. */
function readSmi(text) {
  const driver = /Driver Version\s*:\s*([\d.]+)/.exec(text);
  const lines = text.replace(/NVIDIA-SMI.*/g, "").toLowerCase();
  const known = [...names.keys()].filter((name) => lines.includes(name)).sort((one, other) => other.length - one.length);
  const state = stateOfForm();
  if (driver) state.driver = driver[1];
  if (known.length) state.gpu = names.get(known[0]);
  location.hash = addressOf(state);
}

form.addEventListener("input", (event) => {
  if (event.target.id === "cpu") form.elements.gpu.value = event.target.checked ? "none" : "";
  if (event.target.id === "smi") readSmi(event.target.value);
  else history.replaceState(null, "", addressOf(stateOfForm())), show();
});
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", show);
document.getElementById("products").append(
  ...[...names.values()].sort().map((name) => make("option", { value: name })));
show();
