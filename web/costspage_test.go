package web

import (
	"net/http"
	"testing"
)

func TestCostsPage(t *testing.T) {
	t.Parallel()
	h := settled(t)
	h.contains(h.get("/costs"), http.StatusOK, `<a href="/costs" aria-current="page">Costs</a>`, "<b>$3.25</b>",
		"<b>3</b> runs", "to today",
		`<a href="/costs?by=person">person</a>`, `aria-current="page">30 days</a>`,
		`<a href="/costs?days=7">7 days</a>`,
		`href="/api/costs?format=csv"`, "93.0k", ">600<", "!costs several", "!<script>",
		`<meter max="1" value="1.000"`)
	h.contains(h.get("/costs?by=person"), http.StatusOK, "<b>$3.25</b>",
		`<a href="/costs?person=test%2Fann">test/ann</a>`, "&lt;script&gt;alert(1)&lt;/script&gt;&#34;", "!<script>",
		`<a href="/?person=test%2Fann">tasks</a>`)
	h.contains(h.get("/costs?days=1"), http.StatusOK, "<b>$3.25</b>")
	h.contains(h.get("/costs?by=repository"), http.StatusOK, "<i>no repository</i>",
		`<a href="/?repository=acme%2Fapi">tasks</a>`)
	h.contains(h.get("/costs?by=channel&days=7&person=ann"), http.StatusOK, "person <b>ann</b>",
		"<b>2</b> runs", "!no channel",
		`<a href="/?channel=test%2FC1&amp;person=ann">tasks</a>`, `<a href="/costs?by=channel&amp;days=7">clear</a>`,
		`name="person" value="ann"`)
	h.contains(h.get("/costs?by=model"), http.StatusOK, "under $0.01", "!>tasks</a>")
	h.contains(h.get("/costs?by=day&by=person&by=model&model=opus"), http.StatusOK, "costs several",
		"<b>1</b> run<", "!>tasks</a>")
	h.contains(h.get("/costs?person=nobody"), http.StatusOK, "No runs in this period match the filter.", "!<table")

	// The list links to the costs, and can be filtered by channel.
	h.contains(h.get("/"), http.StatusOK, `<a href="/costs?by=person&amp;days=1"><b>$3.25</b> today</a>`)
	h.contains(h.get("/?channel=test/C1"), http.StatusOK, `name="channel" value="test/C1"`,
		"<details open>", "!&lt;script")
}
