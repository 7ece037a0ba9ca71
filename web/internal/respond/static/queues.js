// Adds links to asynqmon's pages: to the list of tasks, and from a delivery to its task.
"use strict";

const bar = document.createElement("nav");
bar.id = "errand";
bar.setAttribute("aria-label", "errand");
Object.assign(bar.style, {
  position: "fixed", right: "1rem", bottom: "1rem", zIndex: "2000", padding: ".5rem .9rem", borderRadius: "1rem",
  background: "#1f2328", font: "14px system-ui, sans-serif", display: "flex", gap: ".9rem",
});

function link(text, href) {
  const a = document.createElement("a");
  a.textContent = text;
  a.href = href;
  a.style.color = "#fff";
  return a;
}

const task = link("This task", "");
bar.append(link("errand", "/"));

// asynqmon changes pages without loading them.
function update() {
  const delivery = /^\/queues\/queues\/[^/]+\/tasks\/([^/]+)$/.exec(location.pathname);
  if (!delivery) return task.remove();
  const href = "/queues/tasks/" + delivery[1];
  if (task.getAttribute("href") !== href) task.href = href;
  if (!task.isConnected) bar.append(task);
}

document.body.append(bar);
new MutationObserver(update).observe(document.getElementById("root"), { childList: true, subtree: true });
update();
