// Keeps the parts of a page that are marked data-live up to date: it requests the page again and replaces the parts that differ. In a part
// marked data-live="rows", the rows keep their places while the reader points at them or has the focus there. The server has escaped all
// text of people and agents.
"use strict";

const every = 3000, most = 30000; // ms between two requests, and at most if the server does not answer
const pointer = matchMedia("(hover: hover)"); // a finger points at nothing
let tag = "", wait = every;
let page = ""; // the latest response

// busy reports whether the reader has selected text in a part, which replacing it would undo.
function busy(part) {
  const s = document.getSelection();
  return s && !s.isCollapsed && s.containsNode(part, true);
}

// held reports whether the rows of a part must keep their places.
function held(part) {
  return part.dataset.live === "rows" && part.querySelector("li") &&
    (pointer.matches && part.matches(":hover") || part.contains(document.activeElement));
}

// keepFocus makes a change to a part and focuses the same link or button as before.
function keepFocus(part, change) {
  const had = part.contains(document.activeElement) ? document.activeElement : null;
  const at = had?.getAttribute("href"), id = had?.id;
  const now = change();
  if (id) document.getElementById(id)?.focus({ preventScroll: true });
  else if (at) now.querySelector(`[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
}

// updateRows updates the rows that both parts have, and counts, in their places. It returns the number of rows that only the new part has.
function updateRows(old, part) {
  let unseen = 0;
  for (const row of part.querySelectorAll("li[id], .count[id]")) {
    const mine = document.getElementById(row.id);
    if (!mine && row.matches("li")) unseen++;
    if (mine && mine.innerHTML !== row.innerHTML) keepFocus(mine, () => { mine.replaceChildren(...row.cloneNode(true).childNodes); return mine; });
  }
  for (const hint of old.querySelectorAll(".empty[id]")) hint.hidden = !part.querySelector(`#${hint.id}`);
  return unseen;
}

// replace replaces a part. The first row in sight stays where it is on the screen, unless the reader is at the top of the page.
function replace(old, part) {
  const row = scrollY > 0 && [...old.querySelectorAll("li[id]")].find((li) => li.getBoundingClientRect().bottom > 0);
  const top = row && row.getBoundingClientRect().top;
  keepFocus(old, () => { old.replaceWith(document.adoptNode(part)); return part; });
  const now = row && document.getElementById(row.id);
  if (now) scrollBy({ top: now.getBoundingClientRect().top - top, behavior: "instant" });
}

// announce offers to show rows that are held back.
function announce(unseen) {
  const news = document.getElementById("news");
  if (!news) return;
  if (unseen && news.textContent !== `${unseen} new`) document.getElementById("status").textContent = `${unseen} new tasks`;
  news.hidden = !unseen;
  news.textContent = `${unseen} new`;
}

function replaceParts(force) {
  const fresh = new DOMParser().parseFromString(page, "text/html");
  showTimes(fresh);
  let all = true, unseen = 0;
  for (const old of document.querySelectorAll("[data-live]")) {
    const part = fresh.getElementById(old.id);
    for (const open of old.querySelectorAll("details[open][id]")) part?.querySelector("#" + CSS.escape(open.id))?.setAttribute("open", "");
    if (!part || part.innerHTML === old.innerHTML) continue;
    if (busy(old)) {
      all = false;
    } else if (!force && held(old)) {
      all = false;
      unseen += updateRows(old, part);
    } else {
      replace(old, part);
    }
  }
  announce(unseen);
  return all;
}

async function poll() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html", "If-None-Match": tag } });
      if (answer.status === 401) return location.reload(); // to log in again
      if (answer.ok) {
        page = await answer.text();
        tag = replaceParts() && answer.headers.get("ETag") || "";
      }
      wait = answer.ok || answer.status === 304 ? every : Math.min(2 * wait, most);
    } catch {
      wait = Math.min(2 * wait, most); // the server does not answer
    }
    document.body.classList.toggle("away", wait !== every);
  }
  setTimeout(poll, wait);
}

document.getElementById("news")?.addEventListener("click", () => replaceParts(true));
setTimeout(poll, every);
