// Frames asynqmon's pages as the console's: with its title, its icon and, in place of the logo, links to its pages and
// from a delivery to its task.
"use strict";

document.title = "Queues · errand";
for (const icon of document.querySelectorAll("link[rel~=icon]")) {
  icon.removeAttribute("sizes");
  Object.assign(icon, { type: "image/svg+xml", href: "/static/icon.svg" });
}

const style = document.createElement("style");
style.textContent = `
#root header svg[width="200"], #root a[href*="hibiken"] { display: none; }
#errand { display: flex; gap: 1rem; padding: .45rem 1rem; border-radius: 1rem; background: #1f2328; font: 14px system-ui, sans-serif; }
#errand a { color: #fff; white-space: nowrap; }`;
document.head.append(style);

const bar = document.createElement("nav");
bar.id = "errand";
bar.setAttribute("aria-label", "Console");

function link(text, href) {
  const a = document.createElement("a");
  a.textContent = text;
  a.href = href;
  return a;
}

const task = link("This task", "");
bar.append(link("errand", "/"), link("Fleet", "/fleet"));

// asynqmon changes pages without loading them.
function update() {
  const header = document.querySelector("#root header > div") || document.body;
  if (bar.parentNode !== header) {
    header.append(bar);
    const menu = document.querySelector("#root .MuiDrawer-paper");
    if (innerWidth < 600 && menu?.offsetWidth > 100) { // it covers half of a phone
      header.querySelector("[aria-label='open drawer']")?.click();
    }
  }
  const delivery = /^\/queues\/queues\/[^/]+\/tasks\/([^/]+)$/.exec(location.pathname);
  if (!delivery) return task.remove();
  const href = "/queues/tasks/" + delivery[1];
  if (task.getAttribute("href") !== href) task.href = href;
  if (!task.isConnected) bar.append(task);
}

new MutationObserver(update).observe(document.getElementById("root"), { childList: true, subtree: true });
update();
