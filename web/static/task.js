// Adds to the page of a task what its run does from now on. Everything is set as text, never as markup. At the end the page is
// loaded again, for the answer.
"use strict";

const list = document.getElementById("events");
const atEnd = () => window.innerHeight + window.scrollY >= document.body.scrollHeight - 80;

// add does what taskView.add in taskpage.go does with the events before.
function add(e) {
  if (e.kind === "turn_end") return;
  const parent = e.parent || "", follows = atEnd();
  let item = list.lastElementChild;
  const joins = e.kind === "text" || e.kind === "thinking";
  if (!joins || !item || item.dataset.kind !== e.kind || item.dataset.parent !== parent) {
    item = document.createElement("li");
    item.className = e.kind;
    item.classList.toggle("error", Boolean(e.error));
    item.classList.toggle("sub", parent !== "");
    item.dataset.kind = e.kind;
    item.dataset.parent = parent;
    const time = document.createElement("time");
    time.textContent = new Date(e.time).toISOString().slice(11, 19);
    item.append(time, document.createElement("pre"));
    list.append(item);
  }
  item.lastElementChild.textContent += e.text || "";
  if (follows) window.scrollTo(0, document.body.scrollHeight);
}

if (list && list.dataset.live) {
  const source = new EventSource(list.dataset.live); // it comes back by itself, with the last id
  source.onmessage = (m) => {
    const state = document.getElementById("state");
    const e = JSON.parse(m.data);
    state.textContent = e.kind === "absorbed" && !e.tool ? "absorbed" : "running"; // without an author: by the run of another task
    state.className = "state " + state.textContent;
    if (e.kind === "asked" || e.kind === "replied") return location.reload(); // for the form, or without it
    add(e);
  };
  source.onerror = () => { // refused, which is for good: the server was away when it came back
    if (source.readyState === EventSource.CLOSED) setTimeout(() => location.reload(), 5000);
  };
  source.addEventListener("end", () => {
    source.close();
    location.reload();
  });
}
