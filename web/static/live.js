// Keeps what is marked data-live as it is on the server: it asks for the page again and takes these parts from it, where they differ.
// Nothing is made here of what people and agents wrote; the server has escaped it.
"use strict";

const every = 3000, most = 30000; // ms between two questions, and when the server does not answer
let tag = "", wait = every;

// busy is a reader who marks something, which a change would undo.
function busy(part) {
  const s = document.getSelection();
  return s && !s.isCollapsed && s.containsNode(part, true);
}

function take(html) {
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

async function look() {
  if (!document.hidden) {
    try {
      const answer = await fetch(location.href, { cache: "no-store", headers: { Accept: "text/html", "If-None-Match": tag } });
      if (answer.status === 401) return location.reload(); // to log in again
      if (answer.ok && take(await answer.text())) tag = answer.headers.get("ETag") || "";
      wait = answer.ok || answer.status === 304 ? every : Math.min(2 * wait, most);
    } catch {
      wait = Math.min(2 * wait, most); // the server is away
    }
    document.body.classList.toggle("away", wait !== every);
  }
  setTimeout(look, wait);
}

setTimeout(look, every);
