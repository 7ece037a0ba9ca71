package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/internal/format"
	"github.com/errand-fleet/errand/tasks/worker/logline"
)

const (
	settleLimit   = 10 * time.Second       // for showing an answer to people
	closeLimit    = 5 * time.Second        // for one request to the store
	takeBackPause = 500 * time.Millisecond // between attempts to take places back
	maxCall       = 6 << 10                // longest input of a call that people are shown, in bytes
)

// errUnanswered ends the wait for an answer.
var errUnanswered = errors.New("no answer in time")

// talk lets the agent of one run speak with people.
type talk struct {
	store     *store.Store
	redactor  *agent.Redactor
	sandboxed bool          // runs are
	patience  time.Duration // Timing.Answer
	log       *slog.Logger

	claim *store.Claim
	run   context.Context // the run's context; a tool call may end earlier
	task  tasks.Task
	can   tasks.Capabilities
	emit  func(agent.Event)

	// holds a token while a question is open, because an answer in a thread cannot name its question
	one   chan struct{}
	mu    sync.Mutex
	asked map[string]int // how often this run has asked the same question
}

// talk returns the run's talk, or nil if the agent cannot speak with people. A run on untrusted content cannot.
func (p *Processor) talk(r *run, j job, emit func(agent.Event)) *talk {
	can := j.source.Capabilities()
	if !can.TalkAbout(j.task) || j.task.Profile == agent.Untrusted {
		return nil
	}
	return &talk{
		store: p.Store, redactor: p.Policy.Redactor, sandboxed: p.Runner.Separated(), patience: p.Timing.Answer,
		log: p.Log, claim: r.Claim, run: r.Ctx, task: j.task, can: can, emit: emit,
		one: make(chan struct{}, 1), asked: map[string]int{},
	}
}

// say posts text to the thread once, and returns a result for the agent.
func (k *talk) say(ctx context.Context, text string) (string, error) {
	text = k.redactor.String(text)
	first, err := k.claim.First(ctx, "say-"+format.Hash(text))
	if err != nil {
		return "", err
	}
	if !first { // an earlier attempt may or may not have arrived
		return "This text was already posted. If it is missing from the thread, post it in other words.", nil
	}
	k.emit(agent.Event{Kind: tasks.Said, Text: text, Time: time.Now()})
	if err := k.can.Say(ctx, k.task, text); err != nil {
		return "", fmt.Errorf("post to the thread: %w", err)
	}
	return "Posted.", nil
}

// ask asks people a question and waits for the answer, which may have expired.
func (k *talk) ask(ctx context.Context, q tasks.Question) (tasks.Answer, error) {
	content := append([]string{q.Text, ""}, q.Options...)
	select {
	case k.one <- struct{}{}:
		defer func() { <-k.one }()
	case <-ctx.Done():
		return tasks.Answer{}, context.Cause(ctx)
	}
	if q.Consent != "" {
		if a, ok, err := k.consented(ctx, q.Consent); ok || err != nil {
			return a, err
		}
	}
	q.Text, q.Options = k.redactor.String(q.Text), slices.Clone(q.Options)
	for i, o := range q.Options {
		q.Options[i] = k.redactor.String(o)
	}
	for {
		q.Key = k.keyOf(content)
		q.Asked = time.Now()
		q.Until = q.Asked.Add(k.patience)
		a, known, err := k.askOnce(ctx, q)
		if err != nil || !known {
			return a, err
		}
		if !a.Expired { // otherwise an earlier run got no answer; someone may be available now
			return a, nil
		}
	}
}

// keyOf returns the key of a question: its content, when the task was retried, and how often this run has asked it. So
// a repeated run finds its answers, a retried task asks again in a new message, and one approval does not approve all
// later calls.
func (k *talk) keyOf(content []string) string {
	if retried := k.claim.Record().Retried; !retried.IsZero() {
		content = slices.Concat(content, []string{retried.UTC().Format(time.RFC3339Nano)})
	}
	sum := format.Hash(content...)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked[sum]++
	return fmt.Sprintf("%s-%d", sum, k.asked[sum])
}

// askOnce asks one question. known means that an earlier run of the task has the answer.
func (k *talk) askOnce(ctx context.Context, q tasks.Question) (_ tasks.Answer, known bool, _ error) {
	q.Profile = k.task.Profile
	q.Unsandboxed = q.Profile == agent.Write && !k.sandboxed
	body := format.JSON(q)
	answer, err := k.claim.Ask(ctx, q.Key, body)
	if err != nil {
		return tasks.Answer{}, false, fmt.Errorf("ask people: %w", err)
	}
	known = answer != nil
	if !known {
		k.emit(agent.Event{Kind: tasks.Asked, Text: q.Text, Input: body, Time: q.Asked})
		answer, err = k.wait(ctx, q)
		if err != nil {
			return tasks.Answer{}, false, fmt.Errorf("ask people: %w", err)
		}
	}
	var a tasks.Answer
	if err := json.Unmarshal(answer, &a); err != nil {
		return tasks.Answer{}, known, fmt.Errorf("ask people: %w", err)
	}
	k.emit(agent.Event{Kind: tasks.Replied, Text: a.Text, Tool: a.Who(), Error: a.Expired, Time: time.Now()})
	k.settle(ctx, q, a)
	return a, known, nil
}

func (k *talk) settle(ctx context.Context, q tasks.Question, a tasks.Answer) {
	if k.can.Settle == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleLimit)
	defer cancel()
	q.Answer = &a
	logline.Warn(k.log, k.can.Settle(ctx, k.task, q), "show answer", "run", k.task.ID, "thread", k.task.Thread)
}

// wait shows a question and waits for its answer. When it gives up, it closes the question with an expired answer, so
// that no message is taken for the answer. Only the question of a run that will resume elsewhere stays open, if it was
// shown; otherwise that run asks again.
func (k *talk) wait(ctx context.Context, q tasks.Question) (json.RawMessage, error) {
	waiting, cancel := context.WithTimeoutCause(ctx, k.patience, errUnanswered)
	defer cancel()
	if err := k.show(ctx, q); err != nil {
		return k.giveUp(ctx, q, err)
	}
	takeBack := k.lend()
	answer, err := k.claim.Await(waiting, q.Key)
	takeBack()
	if err == nil || k.run.Err() != nil {
		return answer, err
	}
	return k.giveUp(ctx, q, err)
}

// giveUp closes a question without an answer for a reason. If somebody has answered just before, after the wait was
// over, it returns their answer.
func (k *talk) giveUp(ctx context.Context, q tasks.Question, why error) (json.RawMessage, error) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	if _, err := k.claim.Ask(closing, q.Key, format.JSON(q)); errors.Is(err, store.ErrStale) {
		return nil, why // another worker has the task, and with it the question
	}
	first, err := k.store.Questions.Answer(closing, k.task.ID, q.Key,
		format.JSON(tasks.Answer{At: time.Now(), Expired: true}), "")
	if errors.Is(why, errUnanswered) {
		return first, err
	}
	return nil, why
}

// lend lends the run's places under the fleet's limits to others while it waits for a person. An answer does not wait
// for a place: the run takes its places back at once, and may exceed a limit until runs end.
func (k *talk) lend() (takeBack func()) {
	ctx := context.WithoutCancel(k.run)
	step := func(do func(context.Context) error) (done bool) {
		ctx, cancel := context.WithTimeout(ctx, closeLimit)
		defer cancel()
		err := do(ctx)
		if err == nil || errors.Is(err, store.ErrStale) {
			return true
		}
		k.log.Warn("lend places", "run", k.task.ID, "err", err)
		return false
	}
	step(k.claim.Lend) // it may have worked even if it returned an error
	return func() {
		for !step(k.claim.TakeBack) { // otherwise the run would not count until its end; without Redis it ends soon
			select {
			case <-time.After(takeBackPause):
			case <-k.run.Done():
				return
			}
		}
	}
}

// show posts the question. If an earlier run of the task has begun to, it usually has posted it.
func (k *talk) show(ctx context.Context, q tasks.Question) error {
	first, err := k.claim.First(ctx, "ask-"+q.Key)
	if err != nil {
		return err
	}
	err = k.can.Ask(ctx, k.task, q)
	if err == nil {
		return nil
	}
	k.log.Warn("show question", "run", k.task.ID, "thread", k.task.Thread, "err", err)
	if !first {
		return nil
	}
	return fmt.Errorf("post the question: %w", err)
}

// tools returns the agent's tools for speaking with people, as far as the source supports them.
func (k *talk) tools() []agent.Tool {
	if k == nil {
		return nil
	}
	type update struct {
		Text string `json:"text" jsonschema:"one or two sentences of Markdown"`
	}
	type question struct {
		Question string   `json:"question" jsonschema:"one question, with the context that a reader needs to answer it"`
		Options  []string `json:"options,omitempty" jsonschema:"at most 5 short answers to choose from; omit for free text"`
	}
	list := []agent.Tool{
		agent.NewTool("post_update",
			"Post a message to the thread while you continue working, for example an intermediate result or a change "+
				"of plan. People already see your progress, so use it rarely.",
			func(ctx context.Context, in update) (string, error) {
				if strings.TrimSpace(in.Text) == "" {
					return "", errors.New("the text is empty")
				}
				return k.say(ctx, in.Text)
			}),
		agent.NewTool("ask_user",
			"Ask the person who gave you this task, and wait for the answer, which may take minutes. Use it only if a "+
				"wrong guess would waste the work.",
			func(ctx context.Context, in question) (string, error) { return k.askUser(ctx, in.Question, in.Options) }),
	}
	if k.can.ReadThread != nil {
		read := agent.NewTool("read_thread",
			"Read the conversation of this task again, including messages since you started.",
			func(ctx context.Context, _ struct{}) (string, error) { return k.can.ReadThread(ctx, k.task) })
		read.ReadOnly = true
		list = append(list, read)
	}
	return list
}

func (k *talk) askUser(ctx context.Context, text string, options []string) (string, error) {
	if strings.TrimSpace(text) == "" {
		return "", errors.New("the question is empty")
	}
	if len(options) > 5 {
		return "", errors.New("at most 5 options can be offered")
	}
	a, err := k.ask(ctx, tasks.Question{Text: text, Options: options})
	if err != nil {
		return "", err
	}
	if a.Expired {
		return fmt.Sprintf("No one answered within %s. Decide yourself, and state your assumptions in your answer.",
			k.patience), nil
	}
	return fmt.Sprintf("%s answered: %s", a.Who(), a.Text), nil
}

// Answers to a request for approval, in any case.
var (
	consent = []string{"approve", "approved", "allow", "yes", "y", "ok", "okay"}
	dissent = []string{"deny", "no", "n"}
)

// permit asks people whether the agent may make a call. They see the complete input; a longer one is denied.
func (k *talk) permit(ctx context.Context, r agent.ToolRequest) agent.Decision {
	var input bytes.Buffer
	if json.Indent(&input, r.Input, "", "  ") != nil || input.Len() > maxCall {
		return agent.Decision{Reason: "This needs a person's approval and is too long to " +
			"review. Do it in smaller steps."}
	}
	what := r.Tool
	if r.Reason != "" {
		what += " (" + r.Reason + ")"
	}
	a, err := k.ask(ctx, tasks.Question{
		Text:    "May I do this? " + what + "\n\n" + fenced(input.String()),
		Options: []string{tasks.Approve, tasks.Always, tasks.Deny}, Consent: what,
	})
	if err != nil {
		return agent.Decision{Reason: "Could not ask for approval: " + err.Error()}
	}
	if a.Expired {
		return agent.Decision{Reason: "No one approved this in time. Continue without it, and say in " +
			"your answer what is left to do."}
	}
	said := strings.ToLower(strings.TrimRight(a.Text, ".! "))
	if a.Text == tasks.Always || slices.Contains(consent, said) {
		return agent.Decision{Allow: true}
	}
	if slices.Contains(dissent, said) {
		return agent.Decision{Reason: a.Who() + " denied this."}
	}
	return agent.Decision{Reason: a.Who() + " denied this: " + strings.TrimPrefix(a.Text, tasks.Deny+": ")}
}

// consented finds an approval for the whole task, from this run or an earlier one: for calls of the same tool that
// need approval for the same reason. It is stored with the task's questions, and a retry of the task removes it.
func (k *talk) consented(ctx context.Context, to string) (tasks.Answer, bool, error) {
	stored, err := k.store.Questions.List(ctx, k.task.ID)
	if err != nil {
		return tasks.Answer{}, false, fmt.Errorf("look for consent: %w", err)
	}
	for _, s := range stored {
		var q tasks.Question
		var a tasks.Answer
		if s.Answer == nil || json.Unmarshal(s.Body, &q) != nil || json.Unmarshal(s.Answer, &a) != nil ||
			q.Consent != to || a.Text != tasks.Always {
			continue
		}
		k.emit(agent.Event{
			Kind: agent.Notice, Text: to + ": " + a.Who() + " approved this for the whole task.", Time: time.Now(),
		})
		return a, true, nil
	}
	return tasks.Answer{}, false, nil
}

// fenced puts text into a code block that the text cannot close.
func fenced(text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + "\n" + text + "\n" + fence
}
