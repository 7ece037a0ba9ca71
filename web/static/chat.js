// Helps with writing on the chat page: what there is to ask for by name where the task would work, and sending by the keyboard. Loaded after
// task.js, which shows the answer as it comes. Names come from checkouts, so they are set as text, never as markup.
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
    about.textContent = legible([c.argument, c.description].filter(Boolean).join(" · "));
    lines.push(term, about);
  }
  box.querySelector("dl").replaceChildren(...lines);
  box.hidden = lines.length === 0;
}

let asked = 0; // only the answer to the last question counts

// offer asks what the place offers that is chosen now.
async function offer() {
  const mine = ++asked, place = new URLSearchParams();
  for (const name of ["repo", "projectPath"]) {
    const value = form.elements[name]?.value.trim();
    if (value) place.set(name, value);
  }
  $("offer").textContent = place.size ? "Looking at what is offered there…" : "";
  let told = {}, problem = "";
  try {
    const answer = await fetch(`/api/agents?${place}`, { headers: { Accept: "application/json" } });
    told = await answer.json();
    if (!answer.ok) problem = told.detail || answer.statusText;
  } catch {
    problem = "What is offered there could not be asked: the server does not answer.";
  }
  if (mine !== asked) return;
  choices($("agents"), (told.agents || []).map((a) => ({ name: a.name, title: a.description })));
  choices($("models"), (told.models || []).map((m) => ({ name: m.name, title: m.title })));
  choices($("efforts"), [...new Set((told.models || []).flatMap((m) => m.efforts || []))].map((name) => ({ name })));
  commands(told.commands || []);
  $("offer").textContent = problem;
}

if (form) {
  form.message.addEventListener("keydown", (key) => {
    if (key.key === "Enter" && (key.ctrlKey || key.metaKey)) form.requestSubmit();
  });
  form.addEventListener("submit", () => { form.querySelector(".send").disabled = true; });
  window.addEventListener("pageshow", () => { form.querySelector(".send").disabled = false; }); // back from what was sent
  for (const name of ["repo", "projectPath"]) form.elements[name]?.addEventListener("change", offer);
  const folded = document.querySelector("details.with"); // in a conversation, where few look
  if (folded) folded.addEventListener("toggle", offer, { once: true });
  else offer();
}
