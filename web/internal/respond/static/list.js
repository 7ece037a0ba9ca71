// Moves through the list of tasks with the keyboard, and keeps views: filters that the reader has named. They are in the browser's storage,
// because not every login says who the reader is.
"use strict";

const titles = () => [...document.querySelectorAll("#tasks li .title")];
const last = "task"; // in the storage of the tab: the row that had the focus

// move focuses the title of the next or previous row. Without a focus it begins where the reader was last.
function move(step) {
  const all = titles(), row = document.activeElement.closest("#tasks li") || document.getElementById(sessionStorage.getItem(last) || "none");
  const at = all.findIndex((title) => title.closest("li") === row);
  all[Math.min(Math.max(at + step, 0), all.length - 1)]?.focus();
}

document.addEventListener("focusin", (event) => {
  const row = event.target.closest("#tasks li[id]");
  if (row) sessionStorage.setItem(last, row.id);
});

const keys = {
  j: () => move(1),
  k: () => move(-1),
  "/": () => document.querySelector(".search input").select(),
  "?": () => document.getElementById("keys").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && event.target.matches(".search input")) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.target.closest("input, textarea, select, dialog[open]")) return;
  const act = keys[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

// Back from a task, the row that led there has the focus again.
if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") {
  document.getElementById(sessionStorage.getItem(last) || "none")?.querySelector(".title")?.focus({ preventScroll: true });
}

const views = document.getElementById("views"), save = document.getElementById("save");
const where = `views of ${views.dataset.visitor}`;

// filter returns the filter in the address, in a fixed order and without the page.
function filter() {
  const query = new URLSearchParams([...new URLSearchParams(location.search)].filter(([name, value]) => value && name !== "before"));
  query.sort();
  return query.toString();
}

function read() {
  try {
    const list = JSON.parse(localStorage.getItem(where) || "[]");
    return list.filter((v) => typeof v.name === "string" && typeof v.query === "string");
  } catch {
    return []; // blocked or damaged
  }
}

function write(list) {
  try {
    localStorage.setItem(where, JSON.stringify(list));
  } catch {
    document.getElementById("status").textContent = "The browser does not store views.";
  }
  show();
}

// show lists the saved views.
function show() {
  document.getElementById("saved").replaceChildren(...read().map((view) => {
    const item = document.createElement("li"), link = document.createElement("a"), remove = document.createElement("button");
    link.href = `/?${view.query}`;
    link.textContent = view.name;
    if (view.query === filter()) link.setAttribute("aria-current", "page");
    remove.type = "button";
    remove.textContent = "×";
    remove.setAttribute("aria-label", `Remove the view ${view.name}`);
    remove.addEventListener("click", () => {
      write(read().filter((v) => v.name !== view.name));
      views.querySelector("summary").focus();
    });
    item.append(link, remove);
    return item;
  }));
  save.hidden = !filter();
}

save.addEventListener("submit", (event) => {
  event.preventDefault();
  const field = save.querySelector("input"), name = field.value.trim();
  if (!name) return;
  write([...read().filter((v) => v.name !== name), { name, query: filter() }]);
  field.value = "";
  document.getElementById("status").textContent = `Saved the view ${name}.`;
});
views.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !views.open) return;
  views.open = false;
  views.querySelector("summary").focus();
});
document.addEventListener("click", (event) => { if (!views.contains(event.target) && event.target.isConnected) views.open = false; });
window.addEventListener("storage", (event) => { if (event.key === where) show(); });
show();
