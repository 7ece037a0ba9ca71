package web

import (
	"bytes"
	"context"
	"errors"
	"html"
	"image"
	"image/png"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/people"
	"github.com/errand-fleet/errand/web/console"
)

// poster is a source that submits a form as a task, and refuses messages that begin with "no".
type poster struct{}

func (poster) Post(ctx context.Context, d *desk.Desk, form url.Values,
	pictures []tasks.Picture,
) (desk.Receipt, string, error) {
	if strings.HasPrefix(form.Get("message"), "no") {
		return desk.Receipt{}, "", &tasks.InputError{Sentence: "Say something <else>."}
	}
	r, err := d.Submit(ctx, tasks.Task{
		ID: tasks.NewID(time.Now(), "chat", form.Get("message")), Source: "chat", Kind: "chat", Thread: "chat/t-1",
		Class: tasks.Interactive, Profile: agent.Write, Repo: form.Get("repo"), Actor: people.Actor(ctx),
		Prompt: form.Get("message"), Options: tasks.Options{
			Agent: form.Get("agent"), Model: form.Get("model"), Plan: form.Get("plan") != "",
		}, Pictures: pictures,
	})
	return r, "t-1", err
}

func newChat(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t, func(c *Config) {
		c.Chat = console.Chat{
			Source: poster{}, Repositories: []string{"acme/api"}, Models: []string{"opus"},
			Dirs: []string{"/srv/projects"},
		}
	})
	if _, err := h.Store.Workers.Beat(t.Context(),
		store.Worker{ID: "w", Host: "m", Health: []byte(`{"ok":true}`)}); err != nil {
		t.Fatal(err)
	}
	return h
}

// say posts the form like a browser, and follows the redirect to the conversation.
func (h *harness) say(form url.Values) answer {
	h.Helper()
	a := h.do(http.MethodPost, "/chat", form.Encode(), "Content-Type", "application/x-www-form-urlencoded",
		"Accept", "text/html")
	if a.StatusCode == http.StatusSeeOther {
		if to := a.Header.Get("Location"); to != "/chat/t-1?sent#latest" {
			h.Errorf("it leads to %s", to)
		}
		return h.get("/chat/t-1", "Accept", "text/html")
	}
	return a
}

// A conversation from the first message to an answer works without scripts.
func TestChat(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	h.contains(h.get("/chat", "Accept", "text/html"), http.StatusOK, `<option>acme/api</option>`,
		`<option>opus</option>`, `name="projectPath"`,
		`<textarea name="message"`, `aria-current="page">Chat</a>`, "!Recent", "!banner")

	page := h.say(url.Values{"message": {"Hi <b>"}, "repo": {"acme/api"}, "agent": {"strategist"}, "model": {"opus"}})
	id := h.only()
	h.contains(page, http.StatusOK, "Hi &lt;b&gt;", "in acme/api", "@strategist",
		`data-events="/api/tasks/`+id+`/events"`, `<button class="stop">Stop</button>`,
		`name="thread" value="t-1"`, `name="repo" value="acme/api"`, `name="agent" value="strategist"`,
		`<option selected>opus</option>`)

	c := h.Claim(id)
	h.Append(c, agent.Event{Kind: agent.Text, Text: "Good <i>", Time: time.Now()})
	h.contains(h.get("/chat/t-1"), http.StatusOK, "Good &lt;i&gt;", `id="skeletons"`)
	h.End(c, tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{
			Text: "Good <i>morning, **Ann**", CostUSD: 0.5, Duration: time.Second,
		},
		Published: &tasks.Published{Work: tasks.Work{Repo: "acme/api", Branch: "errand/x"}},
	})
	h.contains(h.get("/chat/t-1"), http.StatusOK,
		`<div class="theirs markdown"><p>Good &lt;i&gt;morning, <strong>Ann</strong></p>`,
		`<div class="published markdown"><p>The changes are on branch errand/x of acme/api.</p>`, "$0.50", "/tasks/"+id,
		"!data-events", "!>Stop<")
	h.contains(h.get("/chat"), http.StatusOK, "Recent", `href="/chat/t-1"`)
}

// The form accepts the same fields as the API, including pictures. After a mistake it keeps their values.
func TestChatOptions(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	post := func(message string, picture []byte) answer {
		t.Helper()
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for name, value := range map[string]string{
			"message": message, "repo": "acme/api", "branch": "next", "budget": "2.50", "timeout": "30m",
			"profile": "read", "plan": "1",
		} {
			if err := form.WriteField(name, value); err != nil {
				t.Fatal(err)
			}
		}
		f, err := form.CreateFormFile("file", "a <b>.png")
		if err == nil {
			_, err = f.Write(picture)
		}
		if err = errors.Join(err, form.Close()); err != nil {
			t.Fatal(err)
		}
		return h.do(http.MethodPost, "/chat", body.String(), "Content-Type", form.FormDataContentType(),
			"Accept", "text/html")
	}
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	fields := []string{
		`name="branch" value="next"`, `name="budget" value="2.50"`, `name="timeout" value="30m"`,
		`name="plan" value="1" checked`, `<option value="read" selected>`,
	}
	h.contains(post("no", dot.Bytes()), http.StatusUnprocessableEntity, append(fields, "Choose the files again")...)
	h.contains(post("hello", []byte("GIF89a\x00")), http.StatusUnprocessableEntity,
		append(fields, "a &lt;b&gt;.png", "cannot be shown to the model", "50 megapixels and 20 MB")...)
	h.contains(post("hello", []byte("a\x00b")), http.StatusUnprocessableEntity, "cannot be shown to the model")
	if to := post("hello", dot.Bytes()); to.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", to.StatusCode, to.Body)
	}
	h.contains(h.get("/chat/t-1"), http.StatusOK, "Pictures: a &lt;b&gt;.png", `name="plan" value="1" checked`,
		`!value="2.50"`, `!value="30m"`)
	h.contains(h.get("/tasks/"+h.only()), http.StatusOK, "plan: nothing is changed", "<dd>a &lt;b&gt;.png</dd>")
}

// A file with text becomes part of the message, which no fence in it can end, and the form keeps only what was typed.
func TestChatTextFile(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	post := func(message string) answer {
		t.Helper()
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		f, err := form.CreateFormFile("file", "notes.md")
		if err == nil {
			_, err = f.Write([]byte("```\nBehind the fence.\n"))
		}
		if err = errors.Join(err, form.WriteField("message", message), form.Close()); err != nil {
			t.Fatal(err)
		}
		return h.do(http.MethodPost, "/chat", body.String(), "Content-Type", form.FormDataContentType(),
			"Accept", "text/html")
	}
	h.contains(post("no"), http.StatusUnprocessableEntity, ">no</textarea>", "Choose the files again")
	post("hello")
	s, err := h.Desk.Status(h.Context(), h.only())
	if want := "hello\n\nAttached file notes.md:\n\n````\n```\nBehind the fence.\n\n````"; err != nil ||
		strings.TrimSpace(s.Task.Prompt) != want {
		t.Errorf("%q, %v", s.Task.Prompt, err)
	}
}

// The changes of the conversation are beside it.
func TestChatChanges(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	h.contains(h.say(url.Values{"message": {"fix it"}, "repo": {"acme/api"}}), http.StatusOK, "!Changes")
	c := h.Claim(h.only())
	h.changed(c, changesOf(goFile))
	h.contains(h.get("/chat/t-1"), http.StatusOK, `<div id="work"><section class="changes"`, ">invoice/total.go</h3>")
	h.End(c, tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "Fixed."}})
	h.say(url.Values{"message": {"thanks"}, "thread": {"t-1"}, "repo": {"acme/api"}})
	h.contains(h.get("/chat/t-1"), http.StatusOK, ">invoice/total.go</h3>")
}

// only returns the ID of the only waiting task.
func (h *harness) only() string {
	h.Helper()
	l, err := h.Desk.List(h.Context(), desk.Filter{State: "waiting"})
	if err != nil || len(l.Tasks) != 1 {
		h.Fatalf("%+v, %v", l, err)
	}
	return l.Tasks[0].Task.ID
}

// A cancelled turn keeps its whole partial answer and is marked as interrupted; the conversation continues.
func TestChatIsCancelled(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	h.say(url.Values{"message": {"count"}})
	id := h.only()
	c := h.Claim(id)
	back := h.do(http.MethodPost, "/tasks/"+id+"/cancel", "thread=t-1", "Content-Type",
		"application/x-www-form-urlencoded")
	if to := back.Header.Get("Location"); to != "/chat/t-1#latest" {
		t.Errorf("Stop leads to %s", to)
	}
	partial := "one " + strings.Repeat("and one more ", 200) + "last"
	h.End(c, tasks.Ending{Kind: tasks.Cancelled, By: "console", Result: agent.Result{Partial: partial}})
	h.contains(h.get("/chat/t-1"), http.StatusOK, `interrupted"><p>`+partial, `cancelled">Stopped</span>`,
		"Stopped in the console")
	h.contains(h.say(url.Values{"message": {"go on"}, "thread": {"t-1"}}), http.StatusOK, partial,
		"go on", "data-events")
	for _, elsewhere := range []string{"//evil.test", "../tasks", "T"} {
		to := h.do(http.MethodPost, "/tasks/"+id+"/cancel", "thread="+url.QueryEscape(elsewhere), "Content-Type", "application/x-www-form-urlencoded").Header.Get("Location")
		if to != "/tasks/"+id {
			t.Errorf("%s leads to %s", elsewhere, to)
		}
	}
}

// An absorbed message is shown with the message whose run absorbed it, above the common answer.
func TestChatShowsWhatWasAbsorbedWithItsRun(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	h.say(url.Values{"message": {"first"}})
	c := h.Claim(h.only())
	h.say(url.Values{"message": {"second"}})
	second := h.only()
	if _, ok, err := c.Take(t.Context(), false, nil); !ok || err != nil {
		t.Fatal(err)
	}
	e := tasks.Ending{
		Kind: tasks.Answered, Result: agent.Result{Text: "To both."}, Covers: []string{second}, At: time.Now(),
	}
	if err := c.EndWith(t.Context(), h.JSON(e), store.Covered{
		IDs: e.Covers, Ending: h.JSON(tasks.Ending{Kind: tasks.Answered, At: e.At}),
	}); err != nil {
		t.Fatal(err)
	}
	page := h.get("/chat/t-1").text
	first, later, said := strings.Index(page, `<p>first`), strings.Index(page,
		`<p>second`), strings.Index(page, "To both.")
	if first < 0 || later < first || said < later || strings.Count(page, "To both.") != 1 {
		t.Errorf("in the wrong order: %s", page)
	}
}

// A mistake is shown above the message, which is kept.
func TestChatKeepsWhatWasWritten(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	h.contains(h.say(url.Values{"message": {"no"}, "agent": {"x y"}}), http.StatusUnprocessableEntity,
		"Say something &lt;else&gt;.", ">no</textarea>", `value="x y"`)
	h.contains(h.get("/chat/unknown", "Accept", "text/html"), http.StatusNotFound, "No such conversation")
	h.contains(h.get("/chat/UPPER", "Accept", "text/html"), http.StatusNotFound, "No such conversation")
	big := h.do(http.MethodPost, "/chat", "message="+strings.Repeat("a", 12<<20), "Content-Type",
		"application/x-www-form-urlencoded")
	h.problem(big, http.StatusBadRequest)
}

// The chat page says why no answer would come, and how to fix it.
func TestChatTellsWhatIsWrongWithTheCLI(t *testing.T) {
	t.Parallel()
	h := newChat(t)
	broken := []byte(`{"ok":false,"problem":"claude has no credential","remedy":"set ANTHROPIC_API_KEY"}`)
	if _, err := h.Store.Workers.Beat(t.Context(), store.Worker{ID: "w", Host: "m", Health: broken}); err != nil {
		t.Fatal(err)
	}
	const words = "No worker can run tasks: claude has no credential (m). Set ANTHROPIC_API_KEY."
	h.contains(h.get("/chat"), http.StatusOK, html.EscapeString(words))

	h.Tell(func(string) string {
		return string(h.JSON(map[string]any{"failed": agent.NewError(agent.ClassCLIMissing, "claude is nowhere")}))
	})
	if detail := h.problem(h.get("/api/agents"), http.StatusServiceUnavailable); !strings.HasPrefix(detail,
		"Claude is nowhere. ") {
		t.Errorf("detail: %s", detail)
	}
	if got := h.handler.view.OfferProblem(t.Context(), errors.New("late")); got != words {
		t.Errorf("without a response: %s", got)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if got := h.handler.view.OfferProblem(gone, context.Canceled); got != "" {
		t.Errorf("a viewer who left is told %q", got)
	}
}
