package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// look is what a page is looked at with.
type look struct {
	name          string
	width, height int64
	scheme        string // light or dark
}

// looks are those of the tests. 360 pixels are what small phones have.
var looks = []look{
	{"light", 1280, 800, "light"},
	{"dark", 1280, 800, "dark"},
	{"phone", 360, 740, "light"},
}

// tab is a browser tab with separate cookies. Only its test's goroutine may use it.
type tab struct {
	*testing.T
	ctx  context.Context
	base string // the only server that pages may ask

	mu      sync.Mutex // guards what follows: Chromium's events come on a goroutine of chromedp's
	faults  []string
	allowed []string
}

// newTab opens a tab and sees to it, when the test ends, that nothing went wrong in it.
func newTab(t *testing.T, base string) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(chromium, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	tb := &tab{T: t, ctx: ctx, base: base}
	if err := chromedp.Listen(ctx, tb.hear); err != nil {
		t.Fatal(err)
	}
	_, err := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	tb.must(err)
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{
		Source: `addEventListener("securitypolicyviolation", (v) => console.error("policy violated: " + v.violatedDirective + " by " + v.blockedURI + " " + v.sample), true)`,
	})
	tb.must(err)
	tb.as(looks[0])
	t.Cleanup(tb.check)
	return tb
}

// hear notes what should not happen.
func (t *tab) hear(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			text := ""
			for _, a := range e.Args {
				text += " " + string(a.Value) + a.Description
			}
			t.fault("console: %s", text)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		t.fault("exception: %s", text)
	case *log.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			t.fault("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *page.EventJavascriptDialogOpening:
		t.fault("dialog: %s", e.Message)
		go func() { // not here: the answer would wait for this
			_, _ = chromedp.Call(t.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{})
		}()
	case *network.EventRequestWillBeSent:
		if u := e.Request.URL; !strings.HasPrefix(u, t.base+"/") && !strings.HasPrefix(u, "data:") {
			t.fault("request to elsewhere: %.200s", u)
		}
	}
}

func (t *tab) fault(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, fmt.Sprintf(format, args...))
}

// allow says of a fault that it is none, by a part of its words.
func (t *tab) allow(words string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.allowed = append(t.allowed, words)
}

// check reports the faults so far.
func (t *tab) check() {
	t.Helper()
	if t.Failed() && t.ctx.Err() != nil {
		return
	}
	eval[bool](t, "true") // whatever was under way has been heard before this is answered
	t.mu.Lock()
	defer t.mu.Unlock()
faults:
	for _, f := range t.faults {
		for _, words := range t.allowed {
			if strings.Contains(f, words) {
				continue faults
			}
		}
		t.Error(f)
	}
	t.faults = nil
}

func (t *tab) must(err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// do runs actions.
func (t *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	for _, action := range actions {
		t.must(again(func() error { return chromedp.Do(ctx, action) }))
	}
}

// again repeats an action whose element the page replaced after the look-up: the action itself has not begun then.
func again(act func() error) error {
	for {
		err := act()
		if err == nil || !strings.Contains(err.Error(), "Could not find node with given id") {
			return err
		}
	}
}

// open goes to a page of the server's, or to a whole address.
func (t *tab) open(path string) {
	t.Helper()
	if strings.HasPrefix(path, "/") {
		path = t.base + path
	}
	t.do(chromedp.Navigate(path))
}

// eval evaluates an expression in the page.
func eval[T any](t *tab, expression string) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatalf("evaluate %.200s: %v", expression, err)
	}
	return v
}

// often is how often wait evaluates its expression. Changes of the DOM alone would not do: what a document's
// readyState, its address and the values of its fields become is none.
const often = 20 * time.Millisecond

// wait waits until an expression is true in the page, whichever page that is by then.
func (t *tab) wait(expression string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(often),
			chromedp.WithPollingTimeout(0)))
		if ctx.Err() != nil {
			t.Fatalf("wait for %s, in vain; the page is\n%s", expression, eval[string](t, "document.body.innerText"))
		}
		if err == nil && ok {
			return
		} // else the page was left while it was watched
	}
}

// find waits until an element is there that fits the selector and has the words.
func (t *tab) find(selector, words string) {
	t.Helper()
	t.wait(fmt.Sprintf("[...document.querySelectorAll(%q)].some((e) => e.textContent.includes(%q))", selector, words))
}

// press clicks what fits the selector.
func (t *tab) press(selector string) {
	t.Helper()
	t.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// leave clicks what fits the selector, and waits for the page that this leads to.
func (t *tab) leave(selector string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	t.must(again(func() error {
		_, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
		return err
	}))
}

// as changes what the page is looked at with.
func (t *tab) as(l look) {
	t.Helper()
	t.do(chromedp.EmulateViewport(l.width, l.height))
	_, err := chromedp.Call(t.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: l.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
	t.must(err)
}

// scripts turns them on or off, for the pages that are opened then.
func (t *tab) scripts(on bool) {
	t.Helper()
	_, err := chromedp.Call(t.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: !on})
	t.must(err)
}

// shoot takes a picture of what there is to see, or of the whole page.
func (t *tab) shoot(whole bool) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{CaptureBeyondViewport: &whole})
	t.must(err)
	return shot.Data
}

func (t *tab) keep(file string, picture []byte) {
	t.Helper()
	t.must(os.MkdirAll(filepath.Dir(file), 0o755))
	t.must(os.WriteFile(file, picture, 0o644))
}

// shows checks that a page that was opened without scripts has the words.
func (t *tab) shows(words string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.ctx, patience)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.TextContent(chromedp.CSS("main")))
	t.must(err)
	if !strings.Contains(text, words) {
		t.Errorf("%q is not on the page:\n%s", words, text)
	}
}

// sendKeys types into what fits the selector.
func sendKeys(selector, keys string) chromedp.Action[chromedp.Void] {
	return chromedp.SendKeys(chromedp.CSS(selector), keys, chromedp.NodeVisible)
}
