// Updates the page of a task: new events, older events above them, times. Text of agents and people is set as text, never as markup, except
// text that the server has formatted. New entries are copies of the skeletons in the page. The chat page uses it, too.
"use strict";

const $ = (id) => document.getElementById(id);
const timeline = $("timeline"), events = $("events"), maxDepth = 4, maxKept = 3000;
const last = () => $("latest") || document.body;
const atEnd = () => last().getBoundingClientRect().bottom <= window.innerHeight + 80;
const toEnd = () => window.scrollBy(0, last().getBoundingClientRect().bottom - window.innerHeight + 24);
const one = (list, name) => list.querySelector(`:scope > .${name}, :scope > details .${name}, :scope > .said > .${name}, :scope > .when > .${name}`);

// lasted does the same as took in timeline.go, and for longer times as Lasted of package tasks.
function lasted(ms, coarse) {
  if (!coarse && ms < 9950) return (Math.max(0, ms) / 1000).toFixed(1) + "s";
  const s = Math.max(0, Math.round(ms / 1000)), h = Math.floor(s / 3600), m = Math.floor(s / 60) % 60;
  if (s && s % 60 === 0) return (h ? `${h}h` : "") + (m || !h ? `${m}m` : "");
  return (h ? `${h}h` : "") + (h || m ? `${m}m` : "") + `${s % 60}s`;
}

// displayed does the same as Text of internal/display.
const displayed = (s) => s
  .replace(/\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-~])/g, "")
  .replaceAll("\r\n", "\n")
  .replace(/[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/g, (c) => {
    const n = c.charCodeAt(0).toString(16);
    return n.length > 2 ? "\\u" + n : "\\x" + n.padStart(2, "0");
  });

// formatInput does the same as formatInput in outline.go.
function formatInput(input) {
  if (input === undefined || input === null) return "";
  if (typeof input !== "object" || Array.isArray(input)) return displayed(JSON.stringify(input));
  return displayed(Object.entries(input).map(([name, v]) => {
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
  item.dataset.id = id;
  item.id = "e-" + id;
  item.querySelector("time").dateTime = new Date(time).toISOString();
  item.querySelector(".when a").href = "#e-" + id;
  showTimes(item);
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

const begun = (call) => Date.parse(call.querySelector("time").dateTime);

function setResult(call, e) {
  one(call, "result").textContent = displayed(e.text || "");
  if (e.time && call.dataset.kind === "tool_use") one(call, "took").textContent = lasted(Date.parse(e.time) - begun(call));
  call.classList.add("done");
  call.classList.toggle("error", Boolean(e.error));
}

// code returns a text with what is between backticks as code, as respond.go does.
function code(text) {
  return text.split("`").map((part, i, all) => {
    if (i % 2 === 0) return part;
    if (i === all.length - 1) return "`" + part;
    const element = document.createElement("code");
    element.textContent = part;
    return element;
  });
}

// add does the same as timeline.add in timeline.go.
function add(e, id) {
  if (e.kind === "turn_end") format([...unfinished]);
  if (["taken", "tool_input", "used", "turn_end"].includes(e.kind)) return;
  if (e.kind === "tool_result" && calls.has(e.tool_id)) return setResult(calls.get(e.tool_id), e);
  const list = place(e.parent), before = list.lastElementChild, joins = before && before.dataset.kind === e.kind;
  if (joins && e.kind === "text") return write(before, displayed(e.text || ""));
  if (joins && e.kind === "thinking") return one(before, "words").append(displayed(e.text || ""));
  if (before) format([before]);
  const item = newEntry(e.kind, id, e.time), words = one(item, "words");
  words.textContent = displayed(e.text || "").replace(/^\n+/, "");
  item.classList.toggle("error", Boolean(e.error));
  if (e.tool_id) item.dataset.call = e.tool_id;
  if ((e.kind === "absorbed" || e.kind === "replied") && e.tool) item.querySelector("b").append(` by ${displayed(e.tool)}`);
  if (e.kind === "absorbed" && e.tool_id && !("alone" in timeline.dataset)) { // a guest sees no other task
    const to = document.createElement("a");
    to.href = "/tasks/" + encodeURIComponent(e.tool_id);
    to.append(...item.querySelector("b").childNodes);
    item.querySelector("b").append(to);
  }
  if (e.kind === "tool_use") {
    one(item, "input").textContent = formatInput(e.input);
    calls.set(e.tool_id, item);
  }
  if (e.kind === "tool_result") {
    words.textContent = "Result of an earlier call";
    setResult(item, e);
  }
  if (e.kind === "notice") words.replaceChildren(...code(words.textContent));
  if (["text", "said", "asked"].includes(e.kind)) {
    words.classList.remove("markdown");
    unfinished.add(item);
  }
  list.append(item);
  if (e.kind === "said" || e.kind === "asked") format([item]);
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
    showTimes(events);
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
    countErrors();
    search();
  } catch {
    link.textContent = "Older (could not be loaded, try again)";
  }
}

const count = (n) => n < 1000 ? String(n) : n < 1e6 ? (n / 1e3).toFixed(1) + "k" : (n / 1e6).toFixed(1) + "M";

function meter(e) {
  const u = e.usage || {};
  if ($("tokens")) $("tokens").textContent = `${count((u.input_tokens || 0) + (u.cache_read_input_tokens || 0) + (u.cache_creation_input_tokens || 0))} tokens in, ${count(u.output_tokens || 0)} out`;
  if (e.cost_usd > 0 && $("cost")) $("cost").textContent = e.cost_usd >= 0.005 ? "$" + e.cost_usd.toFixed(2) : "under $0.01";
}

// tick shows the elapsed time of the run and of its unfinished steps.
function tick() {
  const since = $("elapsed") && $("elapsed").dataset.since;
  if (since) $("elapsed").textContent = lasted(Date.now() - Date.parse(since), true);
  for (const call of events.querySelectorAll(".tool_use:not(.done)")) one(call, "took").textContent = lasted(Math.floor((Date.now() - begun(call)) / 1000) * 1000, true);
}

// replacePart replaces a part of the page. It keeps the answers that are being typed, what is unfolded, and the focus.
function replacePart(old, now) {
  const fields = (part) => [...part.querySelectorAll("input[name=answer]")], folds = (part) => [...part.querySelectorAll("details")];
  const key = (field) => field.form.action + " " + field.form.elements.question.value;
  const stops = (part) => [...part.querySelectorAll("a[href], button, summary, input")], name = (e) => e.tagName + e.textContent + (e.getAttribute("href") || "") + (e.value || "");
  const focus = old.contains(document.activeElement) ? document.activeElement : null, pairs = fields(old).map((was) => [was, fields(now).find((is) => key(is) === key(was))]);
  const fold = (d) => d.id || d.className, open = new Map(folds(old).map((d) => [fold(d), d.open]));
  for (const d of folds(now)) d.open = open.get(fold(d)) ?? d.open;
  showTimes(now);
  old.replaceWith(document.adoptNode(now));
  for (const [was, is] of pairs) {
    if (!is) continue;
    is.value = was.value;
    if (was !== focus) continue;
    is.focus({ preventScroll: true });
    is.setSelectionRange(was.selectionStart, was.selectionEnd);
    return;
  }
  if (focus) stops(now).find((e) => name(e) === name(focus))?.focus({ preventScroll: true });
}

let refreshes = 0, quiet = 0; // and the seconds since the last event or refresh

// refresh reloads the parts that events do not change: state, answer, questions, details. Of several calls the last one counts.
async function refresh(failed = () => location.reload()) {
  const mine = ++refreshes;
  quiet = 0;
  try {
    const now = await page(location.pathname), next = now.getElementById("timeline");
    if (!timeline.classList.contains("live") && next.dataset.events) return location.reload(); // the task runs again
    if (mine !== refreshes) return;
    document.title = now.title;
    for (const id of ["head", "outcome", "work", "details"]) {
      if ($(id) && now.getElementById(id)) replacePart($(id), now.getElementById(id));
    }
  } catch {
    failed();
  }
}

// watch refreshes a page without events now and then: a task that is handed back says so by none.
function watch() {
  if (++quiet >= 20 && !document.hidden && timeline.classList.contains("live")) refresh(() => {});
}

// setState shows a state until the page is refreshed.
function setState(e) {
  const state = $("state");
  if (!state || state.classList.contains("stopping") || state.classList.contains("asking")) return; // they stay so until a refresh
  if (!state.classList.contains("running") || e.kind === "started") refresh();
  state.textContent = "Working";
  state.className = "state running";
  const doing = { text: "Writing", thinking: "Thinking", tool_use: displayed(e.text || "") }[e.kind];
  if (doing && $("doing")) $("doing").textContent = doing;
}

let unseen = 0;

// showNews offers to go to the events that came while the reader was elsewhere.
function showNews(n) {
  unseen = n;
  if (!$("news")) return;
  $("news").hidden = n === 0;
  $("news").textContent = `${n} new ↓`;
}

const failed = () => [...events.querySelectorAll(".entry.error")];

function countErrors() {
  if (!$("errors")) return;
  const n = failed().length;
  $("errors").hidden = n === 0;
  $("errors").textContent = `${n} failed`;
}

// nextError goes to the next failed step below the top of the window, and after the last one to the first.
function nextError() {
  const all = failed(), next = all.find((e) => e.getBoundingClientRect().top > 140) || all[0];
  if (next) location.hash = next.id;
}

const found = window.Highlight && CSS.highlights ? new Highlight() : null;

// search shows only the steps that contain the text of the search field, and marks it.
function search(only) {
  const field = $("search") && $("search").querySelector("input");
  if (!field) return;
  const text = field.value.trim().toLowerCase();
  found?.clear();
  for (const item of only ? [only] : events.children) item.hidden = text !== "" && !item.textContent.toLowerCase().includes(text);
  $("search").querySelector("output").textContent = text ? `${events.querySelectorAll(":scope > li:not([hidden])").length} of ${events.children.length}` : "";
  if (!text || !found) return;
  const words = document.createTreeWalker(events, NodeFilter.SHOW_TEXT);
  while (words.nextNode()) {
    const here = words.currentNode.data.toLowerCase();
    for (let at = here.indexOf(text); at >= 0; at = here.indexOf(text, at + text.length)) {
      const range = new Range();
      range.setStart(words.currentNode, at);
      range.setEnd(words.currentNode, at + text.length);
      found.add(range);
    }
  }
}

// openTarget unfolds the step that the address names, and loads the page that has it.
function openTarget() {
  const id = location.hash.slice(1);
  if (!id.startsWith("e-")) return;
  const item = $(id), [ms, n] = id.slice(2).split("-");
  if (item) {
    item.hidden = false;
    for (let up = item; up && up !== events; up = up.parentElement.closest("li, details")) {
      if (up.tagName === "DETAILS") up.open = true;
    }
    const folded = item.querySelector(":scope > details");
    if (folded) folded.open = true;
    item.scrollIntoView({ block: "center" });
  } else if (!location.search && ms && n) {
    location.replace(`${location.pathname}?before=${ms}-${Number(n) + 1}${location.hash}`);
  }
}

function follow() {
  let source, after = timeline.dataset.after;
  const onEvent = (m) => {
    const e = JSON.parse(m.data), follows = atEnd(), steps = events.querySelectorAll("li").length;
    after = m.lastEventId;
    quiet = 0;
    setState(e);
    if (e.kind === "used") meter(e);
    if (e.kind === "started" && $("elapsed") && !$("elapsed").dataset.since) $("elapsed").dataset.since = e.time;
    if (e.kind === "asked" || e.kind === "replied") refresh(); // shows or hides the form
    add(e, m.lastEventId);
    if (e.error) countErrors();
    if ($("search")) $("search").hidden = events.children.length < 2;
    const more = events.querySelectorAll("li").length - steps;
    if (more && $("search")?.querySelector("input").value) search();
    if (follows) {
      prune();
      toEnd();
    } else if (more > 0) {
      showNews(unseen + more);
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
if ($("search")) {
  if (found) CSS.highlights.set("found", found);
  $("search").hidden = events.children.length < 2;
  const field = $("search").querySelector("input");
  field.addEventListener("input", () => search());
  document.addEventListener("keydown", (key) => {
    if (key.key === "Escape" && document.activeElement === field) {
      field.value = "";
      search();
      field.blur();
    }
    if (key.key !== "/" || key.ctrlKey || key.metaKey || key.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return;
    key.preventDefault();
    field.focus();
  });
  $("errors").addEventListener("click", nextError);
  $("news").addEventListener("click", () => { toEnd(); showNews(0); });
  window.addEventListener("scroll", () => { if (unseen && atEnd()) showNews(0); }, { passive: true });
  window.addEventListener("hashchange", openTarget);
  document.addEventListener("click", (click) => { // a menu closes when the reader goes on
    for (const menu of document.querySelectorAll("details.more[open]")) if (!menu.contains(click.target)) menu.open = false;
  });
  countErrors();
  openTarget();
}
if (timeline && timeline.dataset.events) {
  tick();
  setInterval(() => { tick(); watch(); }, 1000);
  follow();
}
