package slack

import (
	"bytes"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/fake/slackfake"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// brief returns the agent's text about a task, and the directory for its files.
func (f *frontDoor) brief(t tasks.Task) (prompt, dir string) {
	f.Helper()
	dir = f.TempDir()
	b, err := f.source.Brief(f.Context(), t, dir)
	if err != nil {
		f.Fatal(err)
	}
	return b.Prompt.Text, dir
}

func (f *frontDoor) briefed(t tasks.Task) tasks.Brief {
	f.Helper()
	b, err := f.source.Brief(f.Context(), t, f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	return b
}

// An edited message brings its present files, and not the ones that were removed from it.
func TestFilesOfACorrection(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Pulls: somePulls}, rights.Policy{})
	edit := func(text, was string, files ...any) {
		t.Helper()
		ts := mustOrigin(t, f.tasks()[len(f.tasks())-1]).TS
		message := map[string]any{
			"user": ann, "text": at + text, "ts": ts, "files": files,
			"edited": map[string]any{"user": ann, "ts": ts[:16] + "1"},
		}
		f.send(map[string]any{
			"type": "message", "subtype": changed, "channel": general, "channel_type": "channel", "ts": ts,
			"message": message, "previous_message": map[string]any{"user": ann, "text": at + was, "ts": ts},
		}, 200)
	}
	_, err := f.Post(t.Context(), slackfake.Message{
		Channel: general, User: ann, Text: at + "review acme/api#3",
		Files: []slackfake.File{{Name: "old.txt", Data: []byte("x")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	f.begin()
	edit("review acme/web#3", "review acme/api#3",
		map[string]any{"name": "new.txt", "url_private": "https://elsewhere.example/new.txt"})
	correction := f.tasks()[0]
	b := f.briefed(correction)
	if !strings.Contains(b.Prompt.Text, `"new.txt"`) || strings.Contains(b.Prompt.Text, "old.txt") {
		t.Errorf("prompt %q", b.Prompt.Text)
	}
	equal(t, "where", []any{correction.Repo, b.Diff, strings.Contains(b.System, "acme/web")},
		[]any{"acme/api", false, false})
}

// Files are saved for the agent under a name that leads nowhere else, and the prompt describes them.
func TestFilesAreFetched(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	shot := append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)
	m := slackfake.Message{Channel: "D0ANN", User: ann, Text: "why?", Files: []slackfake.File{
		{Name: "shot of \"it\".png", Type: "image/png", Data: shot},
		{Name: "../../etc/passwd", Type: "text/plain", Data: []byte("root")},
		{Name: "...", Data: []byte("x")},
	}}
	ts, err := f.Post(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	task := f.one()
	prompt, dir := f.brief(task)
	equal(t, "prompt", prompt, strings.ReplaceAll(`why?

Attached files:
- DIR/TS-1-F1000000001-shot_of_it_.png ("shot of \"it\".png", image/png)
- DIR/TS-2-F1000000002-_.._etc_passwd ("../../etc/passwd", text/plain; charset=utf-8)
- DIR/TS-3-F1000000003-file ("...", text/plain; charset=utf-8)`, "DIR/TS", filepath.Join(dir, ts)))
	got, err := os.ReadFile(filepath.Join(dir, ts+"-1-F1000000001-shot_of_it_.png"))
	if err != nil || !bytes.Equal(got, shot) {
		t.Errorf("read %q, %v", got, err)
	}
	equal(t, "stored prompt", task.Prompt, "why?")
	equal(t, "origin", mustOrigin(t, task).TS, ts)
}

// The model sees the first five pictures themselves. A file that only claims to be a picture stays a file.
func TestPicturesAreShown(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	var dot bytes.Buffer
	if err := png.Encode(&dot, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	m := slackfake.Message{
		Channel: "D0ANN", User: ann, Text: "why?",
		Files: []slackfake.File{{Name: "broken.png", Type: "image/png", Data: dot.Bytes()[:60]}},
	}
	for range agent.MaxPictures + 1 {
		m.Files = append(m.Files, slackfake.File{Name: "shot", Type: "text/plain", Data: dot.Bytes()})
	}
	if _, err := f.Post(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b := f.briefed(f.one())
	want := agent.File{Name: "shot", Type: "image/png", Data: dot.Bytes()}
	equal(t, "pictures", b.Prompt.Files, []agent.File{want, want, want, want, want})
	if !strings.Contains(b.Prompt.Text, `("broken.png"`) ||
		strings.Count(b.Prompt.Text, `("shot"`) != agent.MaxPictures+1 {
		t.Errorf("prompt %q", b.Prompt.Text)
	}
}

// Files without text are a request, too, in a channel as well.
func TestOnlyFiles(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	if _, err := f.Mention(t.Context(), slackfake.Message{
		Channel: general, User: ann, Files: []slackfake.File{{Name: "a.txt", Data: []byte("x")}},
	}); err != nil {
		t.Fatal(err)
	}
	equal(t, "prompt", f.one().Prompt, onlyFiles)
	if prompt, _ := f.brief(f.one()); !strings.Contains(prompt, `("a.txt", text/plain; charset=utf-8)`) {
		t.Errorf("prompt %q", prompt)
	}
}

// A file that cannot be fetched is reported, and affects neither the other files nor the run.
func TestFilesThatAreNotFetched(t *testing.T) {
	t.Parallel()
	var asked []string
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
	}))
	t.Cleanup(other.Close)
	f := newFrontDoor(t, Config{}, rights.Policy{})
	m := slackfake.Message{Channel: "D0ANN", User: ann, Text: "why?", Files: []slackfake.File{
		{Name: "elsewhere", URL: other.URL + "/steal"},
		{Name: "tricky", URL: strings.Replace(f.URL(), "http://", "http://x@", 1) + "/files-pri/F1/x"},
		{Name: "no address", URL: ":"},
		{Name: "announced", Data: []byte("x"), Size: maxFile + 1},
		{Name: "large", Data: make([]byte, maxFile+1), Size: 1},
		{Name: "largest", Data: make([]byte, maxFile)},
		{Name: "page", Type: "text/html", Data: []byte("<html>")},
		{Name: "gone", URL: f.URL() + "/files-pri/F1/gone"},
		{Name: "moved", URL: f.URL() + "/?moved"},
		{Name: "ten", Data: []byte("x")},
		{Name: "eleven", Data: []byte("x")},
	}}
	if _, err := f.Post(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	prompt, dir := f.brief(f.one())
	for _, want := range []string{
		`"elsewhere" could not be downloaded from Slack: it is not stored in Slack`,
		`"tricky" could not be downloaded from Slack: it is not stored in Slack`,
		`"no address" could not be downloaded from Slack: it is not stored in Slack`,
		`"announced" could not be downloaded from Slack: it is larger than 20 MB`,
		`"large" could not be downloaded from Slack: it is larger than 20 MB`,
		`-6-F1000000006-largest ("largest", application/octet-stream)`,
		`-7-F1000000007-page ("page", text/html; charset=utf-8)`,
		`"gone" could not be downloaded from Slack: Slack did not answer as expected`,
		`"moved" could not be downloaded from Slack: Slack did not answer as expected`,
		`-10-F1000000010-ten ("ten"`,
		"- and 1 more, which you do not get: at most 10 are downloaded",
	} {
		if !strings.Contains(prompt, want) {
			t.Errorf("missing: %s\n%s", want, prompt)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 3 || len(asked) > 0 {
		t.Errorf("left %v, %v; asked elsewhere for %q", left, err, asked)
	}
}

// An app without the scope gets a message that says so; the token is sent nowhere else.
func TestFilesWithoutScope(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	if _, err := f.Post(t.Context(), slackfake.Message{
		Channel: "D0ANN", User: ann, Files: []slackfake.File{{Name: "a", Data: []byte("x")}},
	}); err != nil {
		t.Fatal(err)
	}
	f.source.files.token = "xoxb-without"
	if prompt, _ := f.brief(f.one()); !strings.Contains(prompt, "may lack the scope files:read") {
		t.Errorf("prompt %q", prompt)
	}
	f.source.files.api, _ = url.Parse("https://slack.com/api/")
	for address, want := range map[string]bool{
		"https://files.slack.com/files-pri/T1-F1/x": true, "https://slack.com/x": true,
		"http://files.slack.com/x": false,
		"https://notslack.com/x":   false, "https://slack.com.evil.org/x": false,
		"https://files.slack.com@evil.org/x": false, "": false,
	} {
		if f.source.files.isSlack(address) != want {
			t.Errorf("%s is Slack's: %t", address, !want)
		}
	}
}

// Files that come with an answer reach the agent beside it, once.
func TestFilesOfAnAnswer(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task, claim := f.running("paint it")
	f.ask(task, claim, colours())
	ts, err := f.Post(t.Context(), slackfake.Message{
		Channel: general, User: ann, Text: at + "like this", ThreadTS: mustOrigin(t, task).TS,
		Files: []slackfake.File{{Name: "sky.png", Data: []byte("x")}},
	})
	if err == nil {
		err = f.Redeliver(t.Context(), ts, slackfake.AppMention)
	}
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "answer", f.heard(task, claim, colours()).Text, "like this")
	equal(t, "tasks", len(f.tasks()), 2)
	rec, ok, err := claim.Take(t.Context(), false, []byte(`{}`))
	if err != nil || !ok || rec.ID != f.tasks()[0].ID {
		t.Fatalf("taken up %+v, %t, %v", rec, ok, err)
	}
	if prompt, _ := f.brief(f.tasks()[0]); !strings.Contains(prompt, "attached to my answer") ||
		!strings.Contains(prompt, `("sky.png"`) {
		t.Errorf("prompt %q", prompt)
	}
	equal(t, "sign", f.Reactions(general, ts), []string{check})
}

// However many files fail to arrive, the run waits for them once.
func TestFilesThatDoNotCome(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, maxFiles)
	hung := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(hung.Close)
	w := newWorkspace(t, Config{})
	w.source.files.api, _ = url.Parse(hung.URL + "/api/")
	w.source.files.limit = 2 * time.Second
	files := attachments{
		{Name: "a", URL: hung.URL + "/a"}, {Name: "b", URL: hung.URL + "/b"}, {Name: "c", URL: hung.URL + "/c"},
	}
	task := w.task("")
	o := mustOrigin(t, task)
	o.Files = files
	said, _ := w.source.files.attachments(t.Context(), task, o, nil, t.TempDir())
	equal(t, "files that did not come", strings.Count(said, "could not be downloaded"), len(files))
	equal(t, "waits", len(asked), 1)
}

// An unusual file affects only itself, and the agent learns of it.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	ts := f.recently()[:16]
	for i, files := range []any{"none", []any{7, map[string]any{"name": 7}, map[string]any{"name": "a"}}, nil} {
		f.send(map[string]any{
			"type": "message", "channel_type": "im", "user": ann, "channel": "D0ANN",
			"ts": ts + string(rune('0'+i)), "text": "count", "files": files,
		}, 200)
	}
	var n []int
	for _, task := range f.tasks() {
		n = append(n, len(mustOrigin(t, task).Files))
	}
	equal(t, "files", n, []int{0, 2, 0})
}

// In channels that are shared with another organisation an event has the IDs of files only, and names the organisation
// that the channel or the author is from. A thread is one conversation there, too.
func TestSharedChannel(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{Access: Access{People: []string{ann, "U0THEIRS"}}}, rights.Policy{}, slackfake.Config{
		Users:    []slackfake.User{{ID: "U0THEIRS", TeamID: "T0THEIRS"}},
		Channels: []slackfake.Channel{{ID: general, External: true}},
	})
	root, err := f.Mention(t.Context(), slackfake.Message{
		Channel: general, User: "U0THEIRS", Text: "why?", Files: []slackfake.File{{Name: "a.txt", Data: []byte("x")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	first := f.one()
	prompt, dir := f.brief(first)
	equal(t, "prompt", prompt, "why?\n\nAttached files:\n- "+dir+"/"+root+`-1-F1000000001-a.txt ("a.txt", text/plain; charset=utf-8)`)
	// a reply of the app's own workspace, without a mention
	if _, err := f.Post(t.Context(), slackfake.Message{
		Channel: general, User: ann, Text: "and then?", ThreadTS: root,
	}); err != nil {
		t.Fatal(err)
	}
	if list := f.tasks(); len(list) != 2 || list[0].Thread != list[1].Thread {
		t.Errorf("tasks %+v", list)
	}
}

// The files that people have posted in the thread are part of what a request is about, such as the picture in the
// message that began it, and the agent learns whose they are. What is in the thread's directory is not given again,
// unless the task that has brought it is tried again. Another worker has no such directory.
func TestFilesOfTheThread(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	file := func(name string) []slackfake.File {
		return []slackfake.File{{Name: name, Type: "text/plain", Data: []byte(name)}}
	}
	dir := t.TempDir()
	briefed := func(task tasks.Task) string {
		t.Helper()
		b, err := f.source.Brief(t.Context(), task, dir)
		if err != nil {
			t.Fatal(err)
		}
		return b.Prompt.Text
	}
	root := f.seed(slackfake.Message{User: bob, Text: "it looks like this", Files: file("shot.txt")})
	ask := func(text string, files ...slackfake.File) (tasks.Task, string) {
		t.Helper()
		if _, err := f.Mention(t.Context(), slackfake.Message{
			Channel: general, User: ann, Text: at + text, ThreadTS: root, Files: files,
		}); err != nil {
			t.Fatal(err)
		}
		task := f.tasks()[0]
		return task, briefed(task)
	}
	first, prompt := ask("fix it", file("own.txt")...)
	own, shot := strings.Index(prompt, `"own.txt"`), strings.Index(prompt, `"shot.txt"`)
	if between := strings.Index(prompt, earlierFiles); own < 0 || between < own || shot < between {
		t.Errorf("prompt %q", prompt)
	}
	if _, prompt := ask("and quickly"); prompt != "and quickly" {
		t.Errorf("while the first request runs: %q", prompt)
	}
	if again := briefed(first); again != prompt {
		t.Errorf("the first request again: %q", again)
	}
	r := f.open(f.source, first)
	if err := r.Close(t.Context(), answered("Fine.")); err != nil {
		t.Fatal(err)
	}
	f.seed(slackfake.Message{User: bob, ThreadTS: root, Files: file("second.txt")})
	if _, prompt := ask("and now?"); strings.Count(prompt, "\n- ") != 1 || !strings.Contains(prompt, `("second.txt" of @`+bob+", ") {
		t.Errorf("what came meanwhile: %q", prompt)
	}
	dir = t.TempDir()
	_, prompt = ask("and here?", file("own2.txt")...)
	for _, name := range []string{"own2.txt", "shot.txt", "own.txt", "second.txt"} {
		if strings.Count(prompt, `("`+name+`"`) != 1 {
			t.Errorf("%s, on another worker: %q", name, prompt)
		}
	}

	for range maxFiles {
		f.seed(slackfake.Message{User: bob, ThreadTS: root, Files: file("later.txt")})
	}
	last, _ := ask("this one")
	o := mustOrigin(t, last)
	o.About, dir = root, t.TempDir()
	last.Origin = o.json()
	prompt = briefed(last)
	if strings.Count(prompt, `("later.txt"`) != maxFiles-1 || !strings.Contains(prompt, `("shot.txt"`) {
		t.Errorf("about the message with the file: %q", prompt)
	}
}

// A file that is in several messages, or the request's own, is given once. Those of other services may have no ID.
func TestEachFileOnce(t *testing.T) {
	t.Parallel()
	file := func(id, by string) posted { return posted{attachment{ID: id}, by} }
	o := origin{TS: "2", Files: attachments{{ID: "own"}}}
	got := notGiven(t.TempDir(), o, []posted{
		file("a", "ann"), file("", "ann"), file("own", "bob"), file("b", "bob"), file("", "bob"), file("a", "bob"),
	}, 4)
	var named []string
	for _, f := range got {
		named = append(named, f.ID+" of "+f.by)
	}
	equal(t, "files", named, []string{" of ann", "b of bob", " of bob", "a of bob"})
}
