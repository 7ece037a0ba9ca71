package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// talkingSource receives what the agent says, and passes questions to the test.
type talkingSource struct {
	*fakeSource
	said  chan string
	asked chan tasks.Question
	mute  error // of Ask
	hush  error // of Say

	settled chan tasks.Answer // nil: the test ignores them
}

func (s *talkingSource) Capabilities() tasks.Capabilities {
	can := s.fakeSource.Capabilities()
	can.Say, can.Ask, can.Settle, can.ReadThread, can.Attach = s.say, s.ask, s.settle, s.readThread, s.attach
	return can
}

func (s *talkingSource) say(_ context.Context, _ tasks.Task, text string) error {
	if s.hush == nil {
		s.said <- text
	}
	return s.hush
}

func (s *talkingSource) ask(_ context.Context, _ tasks.Task, q tasks.Question) error {
	s.asked <- q
	return s.mute
}

func (s *talkingSource) settle(_ context.Context, _ tasks.Task, q tasks.Question) error {
	if s.settled != nil {
		s.settled <- *q.Answer
	}
	return s.mute
}

func (s *talkingSource) readThread(_ context.Context, t tasks.Task) (string, error) {
	return "thread " + t.Thread, nil
}

func (s *talkingSource) attach(_ context.Context, _ tasks.Task, name string, data []byte) error {
	s.said <- fmt.Sprintf("%s: %s", name, data)
	return nil
}

// talking is a fleet whose source can ask people; its agent uses the offered tools as the test says.
func talking(t *testing.T, do func(ctx context.Context,
	call func(tool, args string) string) string,
) (*fleet, *talkingSource) {
	f := newFleet(t)
	s := &talkingSource{fakeSource: f.source, said: make(chan string, 10), asked: make(chan tasks.Question, 10)}
	f.agent.do = func(ctx context.Context, spec agent.Spec, _ agent.Host) (agent.Result, error) {
		text := do(ctx, func(tool, args string) string {
			for _, offered := range spec.Tools {
				if offered.Name == tool {
					answer, err := offered.Run(ctx, json.RawMessage(args))
					if err != nil {
						return "error: " + err.Error()
					}
					return answer
				}
			}
			return "no such tool"
		})
		r := answer(text)
		if ctx.Err() != nil {
			r.Outcome, r.Text, r.Partial = agent.Stopped, "", text
		}
		return r, nil
	}
	return f, s
}

// reply is a message with the current time, unlike the tests' tasks.
func (f *fleet) reply(thread, text string) tasks.Task {
	t := f.task(thread, text)
	t.ID = tasks.NewID(time.Now().Add(time.Duration(f.n)*time.Millisecond), "fake", thread)
	return t
}

func (f *fleet) talker(s tasks.Source, change ...func(*Config)) (stop func()) {
	return f.worker(append(change, func(c *Config) { c.Sources = []tasks.Source{s} })...)
}

func TestAgentAsksAndIsAnswered(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?","options":["red","blue"]}`)
	})
	f.talker(s)
	task := f.task("a", "paint")
	id := f.submit(task)
	q := <-s.asked
	if q.Text != "Red or blue?" || len(q.Options) != 2 {
		t.Errorf("asked %+v", q)
	}
	if s, err := f.desk.Status(t.Context(), id); err != nil || len(s.Questions) != 1 || s.Questions[0].Key != q.Key {
		t.Errorf("status: %+v, %v", s.Questions, err)
	}
	for text, bad := range map[string]bool{"": true, strings.Repeat("x", 5000): true} {
		if _, err := f.desk.Answer(t.Context(), id, "", "ann", text); bad && !isInput(err) {
			t.Errorf("answer of %d bytes: %v", len(text), err)
		}
	}
	if _, err := f.desk.Answer(t.Context(), id, "nothing", "ann", "x"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("an answer to nothing: %v", err)
	}
	a, err := f.desk.Answer(t.Context(), id, "", "ann", "2")
	if err != nil || a.Text != "blue" {
		t.Errorf("answered %+v, %v", a, err)
	}
	if e := f.ending(id); e.Result.Text != "ann answered: blue" {
		t.Errorf("the agent got %q", e.Result.Text)
	}
	var told []string
	for l, err := range f.desk.Follow(t.Context(), id, "") {
		if err != nil {
			t.Fatal(err)
		}
		told = append(told, string(l.Event.Kind)+" "+l.Event.Text)
	}
	if got := strings.Join(told, "; "); !strings.Contains(got, "asked Red or blue?; replied blue") {
		t.Errorf("events: %s", got)
	}
}

// A run that waits for a person lends its place to the first in line.
func TestAskingWakesTheNext(t *testing.T) {
	t.Parallel()
	started, ask := make(chan string, 2), make(chan struct{})
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		started <- "one"
		<-ask
		return call("ask_user", `{"question":"Red or blue?"}`)
	})
	f.policy.Limits = rights.Limits{User: 1}
	f.talker(s, func(c *Config) { c.Slots, c.Timing.Reconcile = 2, time.Hour })
	f.submit(f.task("a", "x"))
	f.next(started)
	head := f.submit(f.task("b", "x"))
	f.waits(head)
	close(ask)
	f.next(started)
}

// A call that a rule leaves to people becomes a question to them, and runs only if they consent.
func TestPeopleApproveOfACall(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]agent.Decision{
		"1":                    {Allow: true},
		"always for this task": {Allow: true},
		"Deny: 1":              {Reason: "somebody denied this: 1"},
		"allow":                {Allow: true},
		"Deny":                 {Reason: "somebody denied this."},
		"Yes.":                 {Allow: true},
		"only in the clone":    {Reason: "somebody denied this: only in the clone"},
	} {
		t.Run(reply, func(t *testing.T) {
			t.Parallel()
			f, s := talking(t, nil)
			got := make(chan agent.Decision, 1)
			f.agent.do = func(ctx context.Context, _ agent.Spec, h agent.Host) (agent.Result, error) {
				got <- h.Permit(ctx, agent.ToolRequest{
					Tool: "Bash", Reason: "it is Friday", Input: json.RawMessage(`{"command":"make deploy"}`),
				})
				return answer(""), nil
			}
			f.talker(s)
			f.submit(f.task("a", "x"))
			if q := <-s.asked; q.Text != "May I do this? Bash (it is Friday)\n\n```\n{\n  \"command\": \"make deploy\"\n}\n```" {
				t.Errorf("asked %q", q.Text)
			}
			if _, err := f.desk.Submit(t.Context(), f.reply("a", reply)); err != nil {
				t.Fatal(err)
			}
			if d := <-got; d.Allow != want.Allow || d.Reason != want.Reason {
				t.Errorf("decided %+v, want %+v", d, want)
			}
		})
	}
}

// The first message of the requester in the thread while the agent waits is the answer. Messages of others, and later
// ones, are tasks.
func TestMessageInTheThreadIsTheAnswer(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Red or blue?"}`)
	})
	stop := f.talker(s)
	id := f.submit(f.task("a", "paint"))
	<-s.asked
	stranger, early, reply := f.reply("a", "green"), f.task("a", "and quickly"), f.reply("a", "blue")
	stranger.Actor = "a stranger"
	if r, err := f.desk.Submit(t.Context(), stranger); err != nil || r.Answered || r.ID != stranger.ID {
		t.Errorf("a stranger: %+v, %v", r, err)
	}
	if r, err := f.desk.Submit(t.Context(), early); err != nil || r.Answered || r.ID != early.ID {
		t.Errorf("what was written before the question: %+v, %v", r, err)
	}
	for n, isNew := range []bool{true, false} {
		if r, err := f.desk.Submit(t.Context(), reply); err != nil || !r.Answered || r.New != isNew {
			t.Errorf("reply %d: %+v, %v", n, r, err)
		}
	}
	if e := f.ending(id); e.Result.Text != "somebody answered: blue" {
		t.Errorf("the agent got %q", e.Result.Text)
	}
	stop()
	if r, err := f.desk.Submit(t.Context(), reply); err != nil || !r.Answered || r.New {
		t.Errorf("the reply comes again after the end: %+v, %v", r, err)
	}
	if _, err := f.desk.Status(t.Context(), reply.ID); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("the reply became a task: %v", err)
	}
}

// The same question after a restart is recognised: it is shown once, and an answer given in between is found.
func TestAnswerSurvivesARestart(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		_ = call("post_update", `{"text":"I begin."}`)
		return call("ask_user", `{"question":"Which?"}`)
	})
	stop := f.talker(s)
	id := f.submit(f.task("a", "x"))
	<-s.asked
	stop() // drains: the run is returned
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "that one"); err != nil {
		t.Fatal(err)
	}
	f.talker(s)
	if e := f.ending(id); e.Result.Text != "ann answered: that one" {
		t.Errorf("the agent got %q", e.Result.Text)
	}
	if len(s.asked) != 0 || len(s.said) != 1 {
		t.Errorf("asked %d more times, posted %d times", len(s.asked), len(s.said))
	}
}

// hangingAsker posts no question until its context ends.
type hangingAsker struct {
	*talkingSource
	asking chan struct{}
}

func (s hangingAsker) Capabilities() tasks.Capabilities {
	can := s.talkingSource.Capabilities()
	can.Ask = func(ctx context.Context, _ tasks.Task, _ tasks.Question) error {
		close(s.asking)
		<-ctx.Done()
		return ctx.Err()
	}
	return can
}

// A question whose posting a drain interrupted is asked by the next run.
func TestQuestionIsPostedAfterADrain(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Which?"}`)
	})
	hangs := hangingAsker{s, make(chan struct{})}
	stop := f.talker(hangs)
	id := f.submit(f.task("a", "x"))
	<-hangs.asking
	stop()
	f.talker(s, func(c *Config) { c.Timing.Answer = time.Millisecond })
	f.ending(id)
	if n := len(s.asked); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// A question whose worker died before it was posted is posted by the next run. If that fails, the next run waits for an
// answer all the same: the question may be in the thread.
func TestQuestionIsPostedAfterACrash(t *testing.T) {
	t.Parallel()
	for _, mute := range []error{nil, errors.New("no answer")} {
		f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
			return call("ask_user", `{"question":"Which?"}`)
		})
		s.mute = mute
		hangs := hangingAsker{s, make(chan struct{})}
		stop := f.talker(hangs, func(c *Config) { c.Timing.Reconcile = time.Hour })
		id := f.submit(f.task("a", "x"))
		<-hangs.asking
		next := f.takeOver(id)
		stop()
		if err := next.Return(t.Context(), store.Wait{}); err != nil {
			t.Fatal(err)
		}
		f.talker(s, func(c *Config) { c.Timing.Answer = time.Millisecond })
		e := f.ending(id)
		if n := len(s.asked); n != 1 || !strings.HasPrefix(e.Result.Text, "No one answered") {
			t.Errorf("asked %d times, and the agent got %q", n, e.Result.Text)
		}
	}
}

// A retried task asks again. Sources find what they have posted by its key, so the question has another one.
func TestRetriedTaskAsksAgain(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Which?"}`)
	})
	f.talker(s, func(c *Config) { c.Timing.Answer = time.Millisecond })
	id := f.submit(f.task("a", "x"))
	first := <-s.asked
	f.ending(id)
	if _, err := f.desk.Retry(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if second := <-s.asked; second.Text != first.Text || second.Key == first.Key {
		t.Errorf("asked %q with key %s, and before with %s", second.Text, second.Key, first.Key)
	}
	f.ending(id)
}

// A run that has lost its claim while it posted a question leaves the question to the new owner.
func TestQuestionOfALostClaimStaysOpen(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Which?"}`)
	})
	hangs := hangingAsker{s, make(chan struct{})}
	stop := f.talker(hangs, func(c *Config) { c.Timing.Reconcile = time.Hour })
	id := f.submit(f.task("a", "x"))
	<-hangs.asking
	other := f.takeOver(id)
	stop()
	list, err := f.store.Questions.List(t.Context(), id)
	if err != nil || len(list) != 1 {
		t.Fatal(list, err)
	}
	if answer, err := other.Ask(t.Context(), list[0].Key, list[0].Body); err != nil || answer != nil {
		t.Errorf("answered by the loser: %s, %v", answer, err)
	}
}

// One consent does not cover later calls; a question without a waiting run swallows no message; and options have the
// meaning they state.
func TestEachQuestionIsAnsweredForItself(t *testing.T) {
	t.Parallel()
	f, s := talking(t, nil)
	withdrawn := make(chan error, 1)
	f.agent.do = func(ctx context.Context, spec agent.Spec, h agent.Host) (agent.Result, error) {
		call := agent.ToolRequest{Tool: "Bash", Input: json.RawMessage(`{"command":"./deploy.sh"}`)}
		first, second := h.Permit(ctx, call), h.Permit(ctx, call)
		var ask agent.Tool
		for _, tool := range spec.Tools {
			if tool.Name == "ask_user" {
				ask = tool
			}
		}
		gone, cancel := context.WithCancel(ctx)
		go func() {
			<-s.asked
			cancel()
		}()
		_, err := ask.Run(gone, json.RawMessage(`{"question":"Never mind?"}`))
		withdrawn <- err
		number, err := ask.Run(ctx, json.RawMessage(`{"question":"How many?","options":["2","4","8"]}`))
		return answer(fmt.Sprint(first.Allow, second.Allow, " ", number, err)), nil
	}
	f.talker(s)
	id := f.submit(f.task("a", "deploy"))
	for _, text := range []string{"yes", "no"} {
		<-s.asked
		if _, err := f.desk.Answer(t.Context(), id, "", "ann", text); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-withdrawn; err == nil {
		t.Error("a withdrawn question was answered")
	}
	<-s.asked
	if r, err := f.desk.Submit(t.Context(), f.reply("a", "2")); err != nil || !r.Answered {
		t.Errorf("the reply: %+v, %v", r, err)
	}
	if e := f.ending(id); e.Result.Text != "true false somebody answered: 2<nil>" {
		t.Errorf("the agent got %q", e.Result.Text)
	}
}

// The run does not wait for an answer if the question could not be posted.
func TestQuestionThatNobodySees(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Anybody?"}`)
	})
	s.mute = errors.New("no such thread")
	f.talker(s)
	id := f.submit(f.task("a", "x"))
	if e := f.ending(id); !strings.Contains(e.Result.Text, "no such thread") {
		t.Errorf("the agent got %q", e.Result.Text)
	}
}

func TestUnansweredQuestionExpires(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("ask_user", `{"question":"Anybody?"}`)
	})
	f.talker(s, func(c *Config) { c.Timing.Answer = time.Millisecond })
	id := f.submit(f.task("a", "x"))
	if e := f.ending(id); !strings.HasPrefix(e.Result.Text, "No one answered within 1ms.") {
		t.Errorf("the agent got %q", e.Result.Text)
	}
	if _, err := f.desk.Answer(t.Context(), id, "", "ann", "too late"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("a late answer: %v", err)
	}
}

func TestAgentReadsAndAttaches(t *testing.T) {
	t.Parallel()
	dir, outside := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{
		filepath.Join(dir, "report.md"): "fine", filepath.Join(outside, "key"): "secret",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(outside, "key"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		var all []string
		for _, path := range []string{
			"report.md", "report.md", filepath.Join(dir, "report.md"), "link", filepath.Join(outside, "key"), "../x",
			".",
		} {
			all = append(all, call("attach_file", fmt.Sprintf(`{"path":%q}`, path)))
		}
		return strings.Join(append(all, call("read_thread", `{}`)), "\n")
	})
	f.talker(s)
	task := f.task("a", "x")
	task.Dir = dir
	e := f.ending(f.submit(task))
	lines := strings.Split(e.Result.Text, "\n")
	if len(lines) != 8 || lines[0] != "Attached report.md." ||
		!strings.HasPrefix(lines[1], "This file was already posted") || lines[2] != lines[1] ||
		lines[7] != "thread fake/a" {
		t.Fatalf("the agent got %q", e.Result.Text)
	}
	for _, line := range lines[3:7] {
		if !strings.HasPrefix(line, "error: ") {
			t.Errorf("it could post %s", line)
		}
	}
	if got := <-s.said; got != "report.md: fine" || len(s.said) != 0 {
		t.Errorf("posted %q and %d more", got, len(s.said))
	}
}

// A source that shows no files leaves them to the task's page, with the latest of each name. Only a run that may change
// something is offered the tool there.
func TestFilesForThePage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Error(err)
		}
	}
	write("hunter-2-secret.txt", "hunter-2-secret")
	f, _ := talking(t, func(_ context.Context, call func(string, string) string) string {
		said := []string{call("attach_file", `{"path":"hunter-2-secret.txt"}`)}
		for n := range 20 {
			write("shot 1.png", fmt.Sprintf("picture %d", n+1))
			said = append(said, call("attach_file", `{"path":"shot 1.png"}`))
		}
		write("large", strings.Repeat("x", 9<<20))
		said = append(said, call("attach_file", `{"path":"large"}`))
		return strings.Join(slices.Compact(said), "; ")
	})
	f.worker(func(c *Config) { c.Policy.Redactor = agent.NewRedactor("hunter-2-secret") })
	task := f.task("a", "x")
	task.Dir, task.Profile = dir, agent.Write
	id := f.submit(task)
	want := "Attached [redacted].txt.; Attached shot 1.png.; error: at most 20 files can be attached"
	if got := f.ending(id).Result.Text; got != want {
		t.Errorf("the agent got %q", got)
	}
	names, err := f.desk.Files(t.Context(), id)
	if err != nil || !slices.Equal(names, []string{"[redacted].txt", "shot 1.png"}) {
		t.Errorf("files %q, %v", names, err)
	}
	for name, want := range map[string]string{"[redacted].txt": "[redacted]", "shot 1.png": "picture 19"} {
		if data, err := f.desk.File(t.Context(), id, name); err != nil || string(data) != want {
			t.Errorf("%s: %q, %v", name, data, err)
		}
	}
	if _, err := f.desk.File(t.Context(), id, "other"); !errors.Is(err, tasks.ErrNotFound) {
		t.Errorf("no such file: %v", err)
	}

	task = f.task("b", "x")
	task.Dir, task.Profile = dir, agent.Read
	if got := f.ending(f.submit(task)).Result.Text; got != "no such tool" {
		t.Errorf("a run that only reads got %q", got)
	}
}

// Nothing that an agent posts has a secret: an update, a question, a file and its name.
func TestPostedSecrets(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "hunter-2-secret.txt")
	if err := os.WriteFile(path, []byte("It is hunter-2-secret."), 0o600); err != nil {
		t.Fatal(err)
	}
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		_ = call("attach_file", `{"path":"hunter-2-secret.txt"}`)
		_ = call("post_update", `{"text":"I have hunter-2-secret."}`)
		return call("ask_user", `{"question":"Is it hunter-2-secret?","options":["hunter-2-secret","no"]}`)
	})
	s.mute = errors.New("nobody answers") // so the agent does not wait
	f.talker(s, func(c *Config) { c.Policy.Redactor = agent.NewRedactor("hunter-2-secret") })
	task := f.task("a", "x")
	task.Dir = dir
	f.ending(f.submit(task))
	if file, said := <-s.said, <-s.said; file != "[redacted].txt: It is [redacted]." || said != "I have [redacted]." {
		t.Errorf("posted %q and %q", file, said)
	}
	if q := <-s.asked; q.Text != "Is it [redacted]?" || !slices.Equal(q.Options, []string{"[redacted]", "no"}) {
		t.Errorf("asked %+v", q)
	}
}

// muteSource posts nothing that the agent says.
type muteSource struct{ *talkingSource }

func (s muteSource) Capabilities() tasks.Capabilities {
	can := s.talkingSource.Capabilities()
	can.Say = func(context.Context, tasks.Task, string) error { return errors.New("no answer") }
	return can
}

// After a failed post, which may have arrived, the agent is told how to post the text.
func TestUpdateAfterAFailure(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		const update = `{"text":"Half is done."}`
		return call("post_update", update) + "\n" + call("post_update", update)
	})
	f.talker(muteSource{s})
	failed, again, _ := strings.Cut(f.ending(f.submit(f.task("a", "x"))).Result.Text, "\n")
	if !strings.HasPrefix(failed, "error: ") || !strings.Contains(again, "If it is missing") {
		t.Errorf("the agent got %q, then %q", failed, again)
	}
}

// Text of strangers cannot use the talking tools, and a source that cannot ask offers none.
func TestWhoMayTalk(t *testing.T) {
	t.Parallel()
	f, s := talking(t, func(_ context.Context, call func(string, string) string) string {
		return call("post_update", `{"text":"hi"}`)
	})
	f.talker(s)
	task := f.task("a", "x")
	task.Profile = agent.Untrusted
	if e := f.ending(f.submit(task)); e.Result.Text != "no such tool" {
		t.Errorf("an untrusted run: %q", e.Result.Text)
	}
	f.stopAll()
	f.worker()
	if e := f.ending(f.submit(f.task("b", "x"))); e.Result.Text != "no such tool" {
		t.Errorf("a source that cannot talk: %q", e.Result.Text)
	}
}

func isInput(err error) bool {
	_, ok := errors.AsType[*tasks.InputError](err)
	return ok
}
