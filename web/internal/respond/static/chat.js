// Helps to write on the chat page: offers agents, commands and models of the chosen repository or directory, and sends with the keyboard.
// Loaded after task.js, which shows the answer as it is written. Names come from checkouts, so they are set as text, never as markup.
"use strict";

const form = document.querySelector("form.write");

function choices(list, names) {
  list.replaceChildren(...names.map(({ name, title }) => {
    const option = document.createElement("option");
    option.value = name;
    if (title) option.label = title;
    return option;
  }));
}

function commands(list) {
  const box = $("commands"), lines = [];
  for (const c of list) {
    const name = document.createElement("button"), term = document.createElement("dt"), about = document.createElement("dd");
    name.type = "button";
    name.textContent = `/${c.name}`;
    name.addEventListener("click", () => {
      form.message.value = `/${c.name} ${form.message.value}`;
      form.message.focus();
    });
    term.append(name);
    about.textContent = displayed([c.argument, c.description].filter(Boolean).join(" · "));
    lines.push(term, about);
  }
  box.querySelector("dl").replaceChildren(...lines);
  box.hidden = lines.length === 0;
}

let requests = 0; // only the response to the last one counts

// offer loads what the chosen repository or directory offers.
async function offer() {
  const mine = ++requests, place = new URLSearchParams();
  for (const name of ["repo", "projectPath"]) {
    const value = form.elements[name]?.value.trim();
    if (value) place.set(name, value);
  }
  $("offer").textContent = place.size ? "Loading agents and commands…" : "";
  let offered = {}, problem = "";
  try {
    const answer = await fetch(`/api/agents?${place}`, { headers: { Accept: "application/json" } });
    offered = await answer.json();
    if (!answer.ok) problem = offered.detail || answer.statusText;
  } catch {
    problem = "Agents and commands could not be loaded: the server does not answer.";
  }
  if (mine !== requests) return;
  choices($("agents"), (offered.agents || []).map((a) => ({ name: a.name, title: a.description })));
  choices($("models"), (offered.models || []).map((m) => ({ name: m.name, title: m.title })));
  choices($("efforts"), [...new Set((offered.models || []).flatMap((m) => m.efforts || []))].map((name) => ({ name })));
  commands(offered.commands || []);
  $("offer").textContent = problem;
}

// attach adds pasted files to the chosen ones.
function attach(paste) {
  if (!paste.clipboardData.files.length) return;
  paste.preventDefault();
  const all = new DataTransfer();
  for (const file of [...form.file.files, ...paste.clipboardData.files]) all.items.add(file);
  form.file.files = all.files;
  showFiles();
}

const showFiles = () => form.file.classList.toggle("none", !form.file.files.length);

// keepDraft restores a message that was not sent, because the login had ended or the server did not answer, to the person
// who wrote it. The address says once that a message was sent: other ways lead to the latest part of a conversation, too.
function keepDraft() {
  const author = document.querySelector(".user .name")?.textContent;
  const [fresh, here] = ["", form.elements.thread?.value || ""].map((thread) => `draft ${author} ${thread}`);
  if (location.search === "?sent") {
    for (const key of [fresh, here]) sessionStorage.removeItem(key);
    history.replaceState(history.state, "", location.pathname + location.hash);
  }
  form.message.value ||= sessionStorage.getItem(here) || "";
  form.addEventListener("submit", () => sessionStorage.setItem(here, form.message.value));
}

const fingers = matchMedia("(pointer: coarse)").matches; // their keyboards have no Shift+Enter

if (form) {
  form.querySelector(".keys").hidden = fingers;
  form.message.addEventListener("keydown", (key) => {
    if (key.key !== "Enter" || key.shiftKey || key.isComposing || fingers) return;
    key.preventDefault();
    form.requestSubmit();
  });
  form.message.addEventListener("paste", attach);
  form.file.addEventListener("change", showFiles);
  showFiles();
  form.addEventListener("submit", () => { form.querySelector(".send").disabled = true; });
  window.addEventListener("pageshow", () => { form.querySelector(".send").disabled = false; }); // returned with the back button
  for (const name of ["repo", "projectPath"]) form.elements[name]?.addEventListener("change", offer);
  const folded = document.querySelector("details.with"); // in a conversation it is folded
  if (folded) folded.addEventListener("toggle", offer, { once: true });
  else offer();
  keepDraft();
}
