// The search of the site: without a library and without a server.

// Words that say nothing about what is asked.
const common = new Set(("a an and any are as at be can do does for from have how i in is it its me my of on or our " +
  "that the to we what when where which who why with you your").split(" "));

// find returns the sections that fit a query, the best first.
function find(sections, query) {
  let words = query.toLowerCase().match(/[\p{L}\p{N}_]+/gu) || [];
  if (words.some((word) => !common.has(word))) words = words.filter((word) => !common.has(word));
  if (words.length === 0) return [];
  // A word counts at the beginning of a word, and with another ending: "rotated" finds "rotate".
  const stem = (word) => (word.length > 3 ? word.replace(/(s|es|ed|ing|e)$/, "") : word);
  const patterns = words.map((word) => new RegExp("(?<![\\p{L}\\p{N}])" + stem(word), "giu"));
  const count = (pattern, text) => (text.match(pattern) || []).length;
  const weights = patterns.map((pattern) => {
    const having = sections.filter((s) => count(pattern, s.page + " " + s.heading + " " + s.text) > 0).length;
    return Math.log(1 + sections.length / (1 + having));
  });
  const found = [];
  for (const s of sections) {
    let score = 0, matched = 0;
    patterns.forEach((pattern, i) => {
      const body = count(pattern, s.text);
      const points = 4 * Math.min(1, count(pattern, s.heading)) + 2 * Math.min(1, count(pattern, s.page)) +
        (2 * body) / (body + 1 + s.text.length / 2000);
      if (points > 0) matched += weights[i];
      score += weights[i] * points;
    });
    if (score > 0) found.push({ section: s, score: score * (matched / weights.reduce((a, b) => a + b)) ** 2, patterns });
  }
  return found.sort((a, b) => b.score - a.score).slice(0, 12);
}

// excerpt returns the part of a section's text around the first words of the query.
function excerpt({ section, patterns }) {
  const places = patterns.map((pattern) => section.text.search(pattern)).filter((place) => place >= 0);
  const from = Math.max(0, Math.min(...places, section.text.length) - 60);
  const begin = places.length === 0 || from === 0 ? 0 : section.text.indexOf(" ", from) + 1;
  const part = section.text.slice(begin, begin + 200);
  const cut = begin + 200 < section.text.length ? part.replace(/\s\S*$/, " …") : part;
  return (begin > 0 ? "… " : "") + cut;
}

if (typeof document !== "undefined") {
  const form = document.getElementById("search"), input = form.elements.q, list = document.getElementById("found");
  const root = form.dataset.root;
  const show = () => {
    const query = input.value.trim();
    const found = query && window.errandSections ? find(window.errandSections, query) : [];
    list.replaceChildren(...found.map((f) => {
      const link = document.createElement("a"), text = document.createElement("span");
      link.href = root + f.section.url;
      link.textContent = f.section.page + (f.section.heading === f.section.page ? "" : " › " + f.section.heading);
      text.textContent = excerpt(f);
      const item = document.createElement("li");
      item.append(link, text);
      return item;
    }));
    list.hidden = !query;
    if (query && window.errandSections && found.length === 0) {
      const item = document.createElement("li");
      item.textContent = "Nothing was found.";
      list.append(item);
    }
  };
  // The index is large, so it is loaded when a reader begins to search.
  const load = () => {
    if (form.dataset.loaded) return;
    form.dataset.loaded = "yes";
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = show;
    document.head.append(script);
  };
  input.addEventListener("focus", load);
  input.addEventListener("input", () => { load(); show(); });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    list.querySelector("a")?.click();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    }
    if (event.key === "Escape" && !list.hidden) {
      input.value = "";
      show();
    }
  });
  form.hidden = false;
}
