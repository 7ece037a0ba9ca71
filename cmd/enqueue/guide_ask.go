package main

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"time"

	xterm "golang.org/x/term"

	"github.com/errand-fleet/errand/cmd/enqueue/internal/term"
)

// ask prints a question and reads a line for each field. An empty first answer leaves out the others.
func (t *terminal) ask(_ context.Context, q question) (map[string]string, error) {
	if q.Problem == "" {
		t.say(q.Text)
	} else {
		printf(t.stderr, "%s\n", t.stderr.Paint(term.Red, q.Problem))
	}
	answers := map[string]string{}
	for _, f := range q.Fields {
		answer, err := t.readLine(f.Label, f.Secret)
		if err != nil {
			return nil, err
		}
		if answers[f.Name] = answer; answer == "" {
			break
		}
	}
	return answers, nil
}

func (t *terminal) say(text string) { printf(t.stderr, "\n%s\n", text) }

// readLine reads a line, without showing it if it is a secret.
func (t *terminal) readLine(label string, secret bool) (string, error) {
	if secret {
		label += " (not shown)"
	}
	printf(t.stderr, "%s: ", label)
	if f, ok := t.world.stdin.(*os.File); ok && t.stdin.tty && secret {
		line, err := xterm.ReadPassword(int(f.Fd()))
		printf(t.stderr, "\n")
		if err != nil {
			return "", fmt.Errorf("read answer: %w", err)
		}
		return strings.TrimSpace(string(line)), nil
	}
	if t.lines == nil {
		t.lines = bufio.NewReader(t.stdin)
	}
	line, err := t.lines.ReadString('\n')
	if errors.Is(err, io.EOF) && line == "" {
		return "", errors.New("read answer: standard input has ended")
	}
	return strings.TrimSpace(line), nil
}

// forms puts questions to a browser on this machine. Its path is secret, because other pages of the browser and other
// users of the machine reach its port too.
type forms struct {
	path    string
	answers chan map[string]string

	mu   sync.Mutex
	said []string
	open *question // nil: none

	over   bool          // nothing more is said
	served chan struct{} // full once the last page was served
}

func newForms() *forms {
	return &forms{
		path: "/" + rand.Text() + "/", answers: make(chan map[string]string, 1), served: make(chan struct{}, 1),
	}
}

func (f *forms) say(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.said = append(f.said, text)
}

// finish waits until the browser has loaded the last page, which it does by itself, or until it seems to be closed.
func (f *forms) finish(ctx context.Context) {
	f.mu.Lock()
	f.over = true
	f.mu.Unlock()
	select {
	case <-f.served:
	case <-time.After(guidePause + time.Second):
	case <-ctx.Done():
	}
}

func (f *forms) ask(ctx context.Context, q question) (map[string]string, error) {
	f.mu.Lock()
	f.open = &q
	f.mu.Unlock()
	select {
	case answers := <-f.answers:
		return answers, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

var formsPage = template.Must(template.New("").Funcs(template.FuncMap{"lines": linked}).Parse(`<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">
{{if not (or .Open .Over)}}<meta http-equiv="refresh" content="2">{{end}}<title>Set up errand</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
label,input,button{display:block;font:inherit}input{width:100%;box-sizing:border-box;padding:.4rem;margin:.2rem 0 1rem}button{padding:.4rem 1rem}
p{white-space:pre-line}a{display:inline-block;max-width:100%;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;vertical-align:bottom}.problem{color:#c62828}section{border-top:1px solid #8886}</style></head>
<body><h1>Set up errand</h1>
{{range .Said}}<section><p>{{lines .}}</p></section>
{{end}}{{with .Open}}<section><form method="post"><p>{{lines .Text}}</p>
{{with .Problem}}<p class="problem" role="alert">{{.}}</p>{{end}}
{{range $i, $f := .Fields}}<label>{{$f.Label}}<input name="{{$f.Name}}" autocomplete="off" {{if eq $i 0}}autofocus {{end}}{{if $f.Secret}}type="password"{{end}}></label>
{{end}}<button>Continue</button></form></section>{{end}}
</body></html>
`))

var webAddress = regexp.MustCompile(`https?://\S*[^\s.,;:]`)

// linked returns a text with its URLs as links.
func linked(text string) template.HTML {
	link := `<a href="$0" target="_blank" rel="noreferrer">$0</a>`
	return template.HTML(webAddress.ReplaceAllString(template.HTMLEscapeString(text), link)) //nolint:gosec // escaped
}

// ServeHTTP shows what was said and the open question, and takes its answers.
func (f *forms) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Content-Security-Policy",
		"default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; frame-ancestors 'none'")
	switch r.Method {
	case http.MethodGet:
		f.mu.Lock()
		defer f.mu.Unlock()
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = formsPage.Execute(w, map[string]any{"Said": f.said, "Open": f.open, "Over": f.over})
		if f.over && len(f.served) == 0 {
			f.served <- struct{}{}
		}
	case http.MethodPost:
		f.receive(w, r)
	default:
		http.Error(w, "The page is read with GET and answered with POST.", http.StatusMethodNotAllowed)
	}
}

func (f *forms) receive(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if err := r.ParseForm(); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answers := map[string]string{}
	for name := range r.PostForm {
		answers[name] = strings.TrimSpace(r.PostForm.Get(name))
	}
	f.mu.Lock()
	if f.open != nil {
		f.open = nil // so that each question has one answer
		f.answers <- answers
	}
	f.mu.Unlock()
	http.Redirect(w, r, f.path, http.StatusSeeOther)
}
