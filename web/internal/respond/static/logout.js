// Forgets what the tab keeps when its person logs out: others may use the same machine.
"use strict";

for (const form of document.querySelectorAll("form[action='/logout']")) {
  form.addEventListener("submit", () => sessionStorage.clear());
}
