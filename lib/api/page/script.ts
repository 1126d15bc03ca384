// Owns: what the status page does in the browser: asks, follows the event stream, draws. Must not: use innerHTML, or anything of elsewhere.
// Plain JavaScript without a template's ` and ${, for it is sent as it stands.

export const script = String.raw`
"use strict";
const byId = (id) => document.getElementById(id);
const make = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const state = { status: null, askedAt: 0, skew: 0, epochs: new Map(), handoffs: [], events: [], lastSeq: 0, pid: 0,
  counts: new Map(), spanMs: 0, problem: "" };
let key = sessionStorage.getItem("epochd-key") || "";

const headers = (more) => Object.assign(key ? { authorization: "Bearer " + key } : {}, more);
const time = (ms) => new Date(ms).toLocaleTimeString([], { hour12: false });
const span = (ms) => {
  const seconds = Math.max(0, ms / 1000);
  if (seconds < 1) return Math.round(ms) + " ms";
  if (seconds < 60) return (seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)) + " s";
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return minutes + "m " + Math.round(seconds % 60) + "s";
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? hours + "h " + (minutes % 60) + "m" : Math.floor(hours / 24) + "d " + (hours % 24) + "h";
};

async function ask(path) {
  const response = await fetch(path, { headers: headers(), cache: "no-store" });
  if (response.status === 401 || response.status === 403) {
    const problem = await response.json().catch(() => ({}));
    askForKey(response.status === 401 ? "This listener wants an API key of role read." : problem.detail || "refused");
    throw new Error("not let in");
  }
  if (!response.ok) throw new Error(path + ": " + response.status);
  return await response.json();
}

function askForKey(why) {
  byId("why").textContent = why;
  byId("login").hidden = false;
}

async function refresh() {
  try {
    const before = Date.now();
    const status = await ask("v1/status?connections=true");
    byId("login").hidden = true;
    if (status.pid !== state.pid) Object.assign(state, { pid: status.pid, epochs: new Map(), counts: new Map() });
    Object.assign(state, { status, askedAt: before, problem: "" });
    if (state.spanMs === 0) state.spanMs = (spans.find(([, ms]) => ms > before - status.startedAtMs) || spans[1])[1];
    for (const [service, of] of Object.entries(status.services)) {
      for (const epoch of of.epochs) noteEpoch(service, epoch);
      const census = (status.connections || {})[service];
      if (census) note(service, before, census);
    }
  } catch (error) {
    state.problem = String(error.message || error);
  }
  draw();
}

async function readHistory() {
  try {
    state.handoffs = (await ask("v1/history?kind=handoff")).handoffs;
    draw();
  } catch { /* The next event asks again. */ }
}

function note(service, at, census) {
  const counts = state.counts.get(service) || [];
  counts.push({ at, active: census.active });
  while (counts.length > 600) counts.shift();
  state.counts.set(service, counts);
}

function epochOf(service, attempt, number) {
  const id = service + " " + attempt;
  if (!state.epochs.has(id)) state.epochs.set(id, { service, attempt, epoch: number });
  return state.epochs.get(id);
}

/** What the supervisor no longer tells as an event, its status still knows. */
function noteEpoch(service, told) {
  const epoch = epochOf(service, told.attempt, told.epoch);
  const now = state.askedAt;
  if (epoch.spawned === undefined) epoch.spawned = now - told.ageMs;
  if (epoch.live === undefined && told.liveForMs !== undefined) epoch.live = now - told.liveForMs;
  if (told.role === "predecessor" && epoch.drains === undefined) epoch.drains = now;
}

const newestOf = (service, number) => [...state.epochs.values()].filter((one) => one.service === service && one.epoch === number).pop();

function take(record) {
  const { service, wallMs, fact, level } = record;
  state.lastSeq = record.seq;
  if (fact.kind === "epoch_spawned") epochOf(service, fact.attempt, fact.epoch).spawned = wallMs;
  else if (fact.kind === "epoch_live") set(newestOf(service, fact.epoch), "live", wallMs);
  else if (fact.kind === "handoff_live" || fact.kind === "successor_attached") set(newestOf(service, fact.from ?? fact.epoch), "drains", wallMs);
  else if (fact.kind === "drain_began") set(newestOf(service, fact.epoch), "drains", wallMs);
  else if (fact.kind === "epoch_exited") {
    const epoch = epochOf(service, fact.attempt, fact.epoch);
    epoch.ended = wallMs;
    epoch.died = fact.role === "child" || fact.exit.code !== 0;
    if (epoch.spawned === undefined) epoch.spawned = wallMs - fact.livedMs;
  }
  if (level !== "debug") state.events.unshift(record);
  if (state.events.length > 60) state.events.pop();
  if (/^(handoff_|foreign_|epoch_live|ended)/.test(fact.kind)) later(readHistory);
  later(refresh);
}

function set(epoch, field, value) {
  if (epoch) epoch[field] = value;
}

/** Once for all that happen together. */
const waiting = new Set();
function later(act) {
  if (waiting.has(act)) return;
  waiting.add(act);
  setTimeout(() => {
    waiting.delete(act);
    act();
  }, 60);
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function follow() {
  for (;;) {
    // Each refused request is a line in the audit log: nothing is asked without a key that may work.
    while (!state.status || !byId("login").hidden) await pause(200);
    try {
      const response = await fetch("v1/events", { headers: headers({ "last-event-id": String(state.lastSeq) }), cache: "no-store" });
      if (!response.ok) throw new Error("events: " + response.status);
      link(true);
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        const blocks = (rest + piece.value).split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
          const data = block.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
          if (data) take(JSON.parse(data));
        }
      }
    } catch { /* Below. */ }
    link(false);
    await pause(1000);
  }
}

function link(isLive) {
  const node = byId("link");
  node.textContent = isLive ? "live" : "no connection, trying again";
  node.className = "badge push " + (isLive ? "good" : "bad");
}

function draw() {
  const { status } = state;
  byId("problem").hidden = state.problem === "" || !byId("login").hidden;
  byId("problem").textContent = "What is shown is of " + time(state.askedAt) + ": " + state.problem;
  if (!status) return;
  const names = Object.keys(status.services);
  const ready = names.filter((name) => status.services[name].ready).length;
  document.title = (ready === names.length ? "ready" : "NOT READY") + " - epochd";
  byId("what").textContent = "version " + status.version + ", pid " + status.pid + ", up " + span(Date.now() - status.startedAtMs) + (status.stopping ? ", stopping" : "");
  byId("services").replaceChildren(...configNotices(status.config), ...names.map((name) => card(name, status.services[name])));
  byId("handoffs").replaceChildren(...handoffRows());
  byId("events").replaceChildren(...state.events.map(eventLine));
  drawSparks();
}

function configNotices(config) {
  if (!config) return [];
  const notices = [];
  if (config.refused) notices.push(make("p", "notice warn", "The configuration file was not taken (" + config.refused.name + "): " + config.refused.detail));
  if (config.differences) notices.push(make("p", "notice warn", "Running and file differ: " + config.differences.map(({ field }) => field).join(", ")));
  return notices;
}

function card(name, service) {
  const section = make("section", "card");
  const head = make("div", "head");
  head.append(make("h2", "", name), make("span", "badge " + (service.ready ? "good" : "bad"), service.ready ? "ready" : "not ready"),
    make("span", "soft", service.phase.replaceAll("_", " ") + (service.step ? " (" + service.step.replaceAll("_", " ") + ")" : "")));
  if (service.waiting) head.append(make("span", "badge warn", "a trigger by " + service.waiting.sources.join(", ") + " waits"));
  section.append(head);
  if (service.note) section.append(make("p", "notice " + (service.ready ? "warn" : "bad"), service.note));
  const { liveForMs = Infinity } = service.epochs.find(({ role }) => role === "newest") ?? {};
  // Before it was LIVE, it is history.
  for (const { refusal, agoMs } of service.refused.filter(({ agoMs }) => agoMs <= liveForMs)) {
    section.append(make("p", "notice warn", "Refused " + span(agoMs) + " ago (" + refusal.name + "): " + refusal.detail));
  }
  section.append(figures(name, service), timeline(name));
  return section;
}

function figures(name, service) {
  const row = make("div", "figures");
  const figure = (value, label, more) => {
    const node = make("div", "figure");
    node.append(make("b", "", String(value)), make("span", "", label));
    if (more) node.append(more);
    row.append(node);
  };
  const newest = service.epochs.find(({ role }) => role === "newest");
  figure(newest ? newest.epoch : "-", newest ? "epoch, Envoy " + (newest.version || "?") + ", for " + span(newest.liveForMs || 0) : "no epoch serves");
  const census = (state.status.connections || {})[name];
  const spark = make("canvas");
  spark.dataset.service = name;
  figure(census ? census.active : "-", "connections", spark);
  const drains = service.epochs.find(({ role }) => role === "predecessor");
  if (drains) {
    const held = census && census.draining !== undefined ? census.draining : "?";
    const bar = make("div", "bar");
    const fill = make("i");
    const whole = (drains.endsInMs || 0) + ((newest && newest.liveForMs) || 0);
    fill.style.width = whole ? 100 * (drains.endsInMs || 0) / whole + "%" : "0";
    bar.append(fill);
    figure(held, "connections of epoch " + drains.epoch + ", which drains" + (drains.endsInMs === undefined ? "" : " and ends in " + span(drains.endsInMs)), bar);
  }
  figure(service.handoffs, "handoffs since the start");
  return row;
}

function timeline(name) {
  const box = make("div");
  const title = make("h3", "", "Epochs");
  title.append(spanButtons());
  box.append(title);
  const now = Date.now();
  const from = now - state.spanMs;
  const place = (at) => 100 * Math.min(1, Math.max(0, (at - from) / state.spanMs));
  const shown = [...state.epochs.values()].filter((one) => one.service === name && (one.ended ?? now) >= from).sort((a, b) => b.attempt - a.attempt).slice(0, 12);
  for (const epoch of shown) {
    const row = make("div", "row");
    const end = epoch.ended ?? now;
    const track = make("div", "track");
    const part = (className, a, b) => {
      if (a === undefined || b < from || b < a) return;
      const node = make("i", className);
      node.style.left = place(a) + "%";
      node.style.width = place(b) - place(a) + "%";
      track.append(node);
    };
    part("begin", epoch.spawned, epoch.live ?? end);
    part("serve", epoch.live, epoch.drains ?? end);
    part("drain", epoch.drains, end);
    if (epoch.died) {
      const mark = make("i", "died");
      mark.style.left = "min(calc(100% - 4px), " + place(end) + "%)";
      track.append(mark);
    }
    const what = epoch.ended === undefined ? (epoch.drains ? "drains" : epoch.live ? "serves" : "starts") : epoch.died ? "died" : "ended";
    track.title = "epoch " + epoch.epoch + " " + what + (epoch.spawned ? ", started " + time(epoch.spawned) : "") + (epoch.ended ? ", ended " + time(epoch.ended) : "");
    const label = make("div", "name", "epoch " + epoch.epoch + " ");
    label.append(make("span", "soft", what));
    row.append(label, track);
    box.append(row);
  }
  const axis = make("div", "axis");
  axis.append(make("span", "", time(from)), make("span", "", time(from + state.spanMs / 2)), make("span", "", "now"));
  const legend = make("div", "legend");
  for (const [className, text] of [["begin", "starts"], ["serve", "serves"], ["drain", "drains"], ["died", "died"]]) legend.append(make("i", className), text);
  box.append(axis, legend);
  return box;
}

const spans = [["2 min", 120e3], ["15 min", 900e3], ["1 h", 3600e3], ["6 h", 21600e3]];

function spanButtons() {
  const box = make("span", "spans");
  for (const [label, ms] of spans) {
    const button = make("button", "", label);
    button.setAttribute("aria-pressed", String(state.spanMs === ms));
    button.addEventListener("click", () => {
      state.spanMs = ms;
      draw();
    });
    box.append(button);
  }
  return box;
}

const outcomes = { done: "good", failed: "bad", cut_short: "warn", under_way: "warn" };
function handoffRows() {
  return state.handoffs.slice(0, 12).map((entry) => {
    const row = make("tr");
    const cell = (text, className) => row.append(make("td", className || "", text));
    cell(new Date(entry.beganAt).toLocaleString([], { hour12: false, dateStyle: "short", timeStyle: "medium" }));
    cell(entry.service + " " + entry.from + " \u2192 " + entry.to);
    const outcome = make("td");
    outcome.append(make("span", "badge " + outcomes[entry.outcome], entry.outcome.replaceAll("_", " ")));
    row.append(outcome);
    cell((entry.who || entry.source));
    cell(entry.liveMs === undefined ? "-" : span(entry.liveMs));
    cell(entry.drainMs === undefined ? "-" : span(entry.drainMs));
    cell(entry.connectionsAtDrain === undefined ? "-" : entry.connectionsAtDrain + " \u2192 " + (entry.connectionsAtEnd ?? "?"));
    cell(entry.refusal ? entry.refusal.name + ": " + entry.refusal.detail : entry.envoyVersion ? "Envoy " + entry.envoyVersion : "", "wide");
    return row;
  });
}

const tones = { warn: "warn", error: "bad" };
function eventLine({ seq, service, wallMs, fact, level, message }) {
  const line = make("div");
  line.append(make("time", "", time(wallMs)), make("span", "soft", service + " "), make("span", tones[level] ? "tone " + tones[level] : "", message));
  line.title = "event " + seq + ", " + JSON.stringify(fact);
  return line;
}

function drawSparks() {
  for (const canvas of document.querySelectorAll("canvas")) {
    const counts = (state.counts.get(canvas.dataset.service) || []).slice(-180);
    if (counts.length < 2) continue;
    const scale = devicePixelRatio || 1;
    const [width, height] = [canvas.clientWidth, canvas.clientHeight];
    Object.assign(canvas, { width: width * scale, height: height * scale });
    const pen = canvas.getContext("2d");
    pen.scale(scale, scale);
    const most = Math.max(1, ...counts.map(({ active }) => active));
    pen.strokeStyle = getComputedStyle(document.documentElement).getPropertyValue("--spark");
    pen.lineWidth = 1.5;
    pen.beginPath();
    counts.forEach(({ active }, at) => pen.lineTo(at * width / (counts.length - 1), height - 2 - active * (height - 4) / most));
    pen.stroke();
  }
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  key = byId("key").value.trim();
  sessionStorage.setItem("epochd-key", key);
  byId("key").value = "";
  refresh();
  readHistory();
});
setInterval(() => document.hidden || !byId("login").hidden || refresh(), 1000);
refresh().then(() => state.status && readHistory());
follow();
`;
