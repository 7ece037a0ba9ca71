// Keeps the parts of a page that are marked data-live up to date: it requests the page again and replaces the parts that differ. The server
// has escaped all text of people and agents.
"use strict";

const every = 3000, most = 30000; // ms between two requests, and at most if the server does not answer
let tag = "", wait = every;

// busy reports whether the reader has selected text in a part, which replacing it would undo.
function busy(part) {
  const s = document.getSelection();
  return s && !s.isCollapsed && s.containsNode(part, true);
}

function replaceParts(html) {
  const page = new DOMParser().parseFromString(html, "text/html");
  let all = true;
  for (const old of document.querySelectorAll("[data-live]")) {
    const part = page.getElementById(old.id);
    if (!part || part.innerHTML === old.innerHTML) continue;
    if (busy(old)) {
      all = false;
      continue;
    }
    const at = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(document.adoptNode(part));
    if (at) part.querySelector(`[href="${CSS.escape(at)}"]`)?.focus({ preventScroll: true });
  }
  return all;
}

async function poll() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html", "If-None-Match": tag } });
      if (answer.status === 401) return location.reload(); // to log in again
      if (answer.ok && replaceParts(await answer.text())) tag = answer.headers.get("ETag") || "";
      wait = answer.ok || answer.status === 304 ? every : Math.min(2 * wait, most);
    } catch {
      wait = Math.min(2 * wait, most); // the server does not answer
    }
    document.body.classList.toggle("away", wait !== every);
  }
  setTimeout(poll, wait);
}

setTimeout(poll, every);
