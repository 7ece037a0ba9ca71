// Updates the page of a task: new events, older events above them, the elapsed time. Text of agents and people is set as text, never as
// markup, except text that the server has formatted. New entries are copies of the skeletons in the page.
"use strict";

const $ = (id) => document.getElementById(id);
const timeline = $("timeline"), events = $("events"), maxDepth = 4, maxKept = 3000;
const atEnd = () => window.innerHeight + window.scrollY >= document.body.scrollHeight - 80;
const toEnd = () => window.scrollTo(0, document.body.scrollHeight);
const one = (list, name) => list.querySelector(`:scope > .${name}, :scope > details .${name}, :scope > .said > .${name}`);

// legible does the same as Text of internal/legible.
const legible = (s) => s
  .replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])/g, "")
  .replaceAll("\r\n", "\n")
  .replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, (c) => {
    const n = c.charCodeAt(0).toString(16);
    return n.length > 2 ? "\\u" + n : "\\x" + n.padStart(2, "0");
  });

// formatInput does the same as formatInput in outline.go.
function formatInput(input) {
  if (input === undefined || input === null) return "";
  if (typeof input !== "object" || Array.isArray(input)) return legible(JSON.stringify(input));
  return legible(Object.entries(input).map(([name, v]) => {
    const text = typeof v === "string" ? v : JSON.stringify(v);
    return `${name}: ${text.includes("\n") && typeof v === "string" ? "\n" : ""}${text}`;
  }).join("\n"));
}

const calls = new Map(); // tool calls on the page, by ID

function indexCalls(items) {
  for (const item of items) {
    for (const call of [item, ...item.querySelectorAll(".tool_use")]) {
      if (call.dataset.kind === "tool_use") calls.set(call.dataset.call, call);
    }
  }
}

// place returns the list that the events of a sub-agent are added to.
function place(parent) {
  let call = parent && calls.get(parent), depth = 0;
  if (!call) return events;
  for (let up = call.parentNode; up !== events && up; up = up.parentNode.closest("ol")) depth++;
  return depth < maxDepth ? one(call, "below") : call.parentNode;
}

function newEntry(kind, id, time) {
  const all = $("skeletons").content;
  const item = (all.querySelector(`li.${CSS.escape(kind)}`) || all.querySelector("li.notice")).cloneNode(true);
  const at = new Date(time).toISOString(), clock = item.querySelector("time");
  item.dataset.id = id;
  clock.dateTime = at;
  clock.title = at.slice(0, 19).replace("T", " ") + " UTC";
  clock.textContent = at.slice(11, 19);
  return item;
}

const unfinished = new Set(); // texts that may grow

// write adds a piece to a text, which is shown unformatted until it is complete.
function write(item, piece) {
  const words = one(item, "words");
  if (words.classList.contains("markdown")) {
    words.classList.remove("markdown");
    words.textContent = item.dataset.raw || "";
  }
  words.append(words.textContent ? piece : piece.replace(/^\n+/, ""));
  unfinished.add(item);
}

// format has the server format complete texts. If that fails they stay unformatted.
async function format(items) {
  for (const item of items) {
    if (!unfinished.delete(item)) continue;
    const words = one(item, "words"), text = words.textContent;
    try {
      const answer = await fetch("/format", { method: "POST", body: text });
      if (!answer.ok || unfinished.has(item)) continue; // it has grown since
      const doc = new DOMParser().parseFromString(await answer.text(), "text/html"), follows = atEnd();
      if (unfinished.has(item)) continue;
      item.dataset.raw = text;
      words.replaceChildren(...doc.body.childNodes);
      words.classList.add("markdown");
      if (follows) toEnd();
    } catch { /* the server does not answer */ }
  }
}

function setResult(call, e) {
  one(call, "result").textContent = legible(e.text || "");
  call.classList.add("done");
  call.classList.toggle("error", Boolean(e.error));
}

// add does the same as timeline.add in timeline.go.
function add(e, id) {
  if (e.kind === "turn_end") format([...unfinished]);
  if (e.kind === "taken" || e.kind === "tool_input" || e.kind === "used" || (e.kind === "turn_end" && !e.error)) return;
  if (e.kind === "tool_result" && calls.has(e.tool_id)) return setResult(calls.get(e.tool_id), e);
  const list = place(e.parent), last = list.lastElementChild, joins = last && last.dataset.kind === e.kind;
  if (joins && e.kind === "text") return write(last, legible(e.text || ""));
  if (joins && e.kind === "thinking") return one(last, "words").append(legible(e.text || ""));
  if (last) format([last]);
  const item = newEntry(e.kind, id, e.time), words = one(item, "words");
  words.textContent = legible(e.text || "").replace(/^\n+/, "");
  item.classList.toggle("error", Boolean(e.error));
  if (e.tool_id) item.dataset.call = e.tool_id;
  if ((e.kind === "absorbed" || e.kind === "replied") && e.tool) item.querySelector("b").append(` by ${legible(e.tool)}`);
  if (e.kind === "tool_use") {
    one(item, "input").textContent = formatInput(e.input);
    calls.set(e.tool_id, item);
  }
  if (e.kind === "tool_result") {
    words.textContent = "Result of an earlier call";
    setResult(item, e);
  }
  if (e.kind === "text") {
    words.classList.remove("markdown");
    unfinished.add(item);
  }
  list.append(item);
}

// prune removes the oldest entries of a long run, to save memory. The link "Older" loads them again.
function prune() {
  if (events.childElementCount <= maxKept) return;
  while (events.childElementCount > maxKept - 500) events.firstElementChild.remove();
  let link = $("older");
  if (!link) {
    link = document.createElement("a");
    link.id = "older";
    link.textContent = "Older";
    const line = document.createElement("p");
    line.className = "older";
    line.append(link);
    timeline.prepend(line);
  }
  link.href = `${location.pathname}?before=${events.firstElementChild.dataset.id}`;
  calls.clear();
  indexCalls(events.children);
}

async function page(url) {
  const answer = await fetch(url, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(answer.status);
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// older inserts the page of older events above, and keeps the scroll position.
async function older(click) {
  if (click.target.id !== "older") return;
  click.preventDefault();
  const link = click.target, from = link.getAttribute("href");
  link.textContent = "Loading…";
  try {
    const doc = await page(from), height = document.body.scrollHeight, items = [...doc.getElementById("events").children];
    events.prepend(...items);
    indexCalls(items);
    for (const result of events.querySelectorAll(".tool_result")) { // of calls that are on the page only now
      const call = calls.get(result.dataset.call);
      if (!call) continue;
      one(call, "result").textContent = one(result, "result").textContent;
      call.classList.add("done");
      call.classList.toggle("error", result.classList.contains("error"));
      result.remove();
    }
    const next = doc.getElementById("older");
    if (next) link.replaceWith(next); else link.parentNode.remove();
    window.scrollBy(0, document.body.scrollHeight - height);
  } catch {
    link.textContent = "Older (could not be loaded, try again)";
  }
}

const count = (n) => n < 1000 ? String(n) : n < 1e6 ? (n / 1e3).toFixed(1) + "k" : (n / 1e6).toFixed(1) + "M";

function meter(e) {
  const u = e.usage || {};
  $("tokens").textContent = `${count((u.input_tokens || 0) + (u.cache_read_input_tokens || 0) + (u.cache_creation_input_tokens || 0))} tokens in, ${count(u.output_tokens || 0)} out`;
  if (e.cost_usd > 0) $("cost").textContent = e.cost_usd >= 0.005 ? "$" + e.cost_usd.toFixed(2) : "under $0.01";
}

// tick shows the elapsed time of the run.
function tick() {
  const since = $("elapsed") && $("elapsed").dataset.since;
  if (!since) return;
  const s = Math.max(0, Math.round((Date.now() - Date.parse(since)) / 1000)), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  $("elapsed").textContent = (h ? `${h}h` : "") + (h || m ? `${m}m` : "") + `${s % 60}s`;
}

// replaceHead replaces the top of the page and keeps answers that are being typed.
function replaceHead(old, now) {
  const fields = (part) => [...part.querySelectorAll("input[name=answer]")];
  const key = (field) => field.form.action + " " + field.form.elements.question.value;
  const focus = document.activeElement, pairs = fields(old).map((was) => [was, fields(now).find((is) => key(is) === key(was))]);
  old.replaceWith(document.adoptNode(now));
  for (const [was, is] of pairs) {
    if (!is) continue;
    is.value = was.value;
    if (was !== focus) continue;
    is.focus({ preventScroll: true });
    is.setSelectionRange(was.selectionStart, was.selectionEnd);
  }
}

let refreshes = 0;

// refresh reloads the top of the page: state, answer and questions. Of several calls the last one counts.
async function refresh() {
  const mine = ++refreshes;
  try {
    const now = await page(location.pathname), next = now.getElementById("timeline");
    if (!timeline.classList.contains("live") && next.dataset.events) return location.reload(); // the task runs again
    if (mine === refreshes) replaceHead($("head"), now.getElementById("head"));
  } catch {
    location.reload();
  }
}

function follow() {
  let source, after = timeline.dataset.after;
  const onEvent = (m) => {
    const e = JSON.parse(m.data), follows = atEnd(), state = $("state");
    after = m.lastEventId;
    if (!state.classList.contains("stopping")) { // it stays so until the end
      const waits = e.kind === "notice" && e.tool === "waiting";
      state.textContent = waits ? "waiting" : e.kind === "absorbed" && !e.tool ? "absorbed" : "running"; // without an author: absorbed by the run of another task
      state.className = "state " + state.textContent;
    }
    if (e.kind === "used") meter(e);
    if (e.kind === "started" && !$("elapsed").dataset.since) $("elapsed").dataset.since = e.time;
    if (e.kind === "asked" || e.kind === "replied") refresh(); // shows or hides the form
    add(e, m.lastEventId);
    if (follows) {
      prune();
      toEnd();
    }
  };
  const open = () => {
    source?.close();
    source = new EventSource(`${timeline.dataset.events}?after=${after}`); // reconnects by itself, with the last ID
    source.onmessage = onEvent;
    source.onerror = () => { // closed for good: reconnecting failed
      if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
    };
    source.addEventListener("end", () => {
      document.removeEventListener("visibilitychange", onVisibility);
      source.close();
      timeline.classList.remove("live");
      format([...unfinished]);
      refresh();
    });
  };
  // A browser has few connections per server: a hidden page uses none.
  const onVisibility = () => {
    if (document.hidden) source.close(); else open();
  };
  document.addEventListener("visibilitychange", onVisibility);
  open();
}

if (events) {
  indexCalls(events.children);
  document.addEventListener("click", older);
}
if (timeline && timeline.dataset.events) {
  setInterval(tick, 1000);
  follow();
}
