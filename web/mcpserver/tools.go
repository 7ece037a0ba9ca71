package mcpserver

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
)

type submission struct {
	Message    string   `json:"message" jsonschema:"what to do, with the context that an agent needs who knows nothing of your conversation"`
	Repository string   `json:"repository,omitempty" jsonschema:"owner/name that it works in"`
	Further    []string `json:"further_repositories,omitempty" jsonschema:"owner/name of each further repository that it works in; each gets its own pull request"`
	Branch     string   `json:"branch,omitempty" jsonschema:"of the repository, to start from"`
	Directory  string   `json:"directory,omitempty" jsonschema:"of the repository, for the agent to start in"`
	Thread     string   `json:"thread,omitempty" jsonschema:"of an earlier result of submit, to continue that conversation"`
	Profile    string   `json:"profile,omitempty" jsonschema:"write, which is the default, or read"`
	Model      string   `json:"model,omitempty"`
	Effort     string   `json:"effort,omitempty"`
	Budget     float64  `json:"budget,omitempty" jsonschema:"maximum cost in US dollars"`
	Timeout    string   `json:"timeout,omitempty" jsonschema:"maximum duration such as 30m"`
	Plan       bool     `json:"plan,omitempty" jsonschema:"change nothing and answer with a plan"`
}

type submitted struct {
	Task     string `json:"task" jsonschema:"ID for the other tools"`
	Thread   string `json:"thread" jsonschema:"to continue the conversation"`
	Answered bool   `json:"answered,omitempty" jsonschema:"the message answered the open question of this task and became no task"`
}

func (s *Server) submit(c call, in submission) (submitted, error) {
	form := url.Values{}
	for name, value := range map[string]string{
		"message": in.Message, "repo": strings.Join(append([]string{in.Repository}, in.Further...), ","),
		"branch": in.Branch, "thread": in.Thread, "profile": in.Profile, "model": in.Model, "effort": in.Effort,
		"timeout": in.Timeout, "directory": in.Directory,
	} {
		form.Set(name, value)
	}
	if in.Budget != 0 {
		form.Set("budget", strconv.FormatFloat(in.Budget, 'f', -1, 64))
	}
	if in.Plan {
		form.Set("plan", "1")
	}
	if s.Poster == nil {
		return submitted{}, &tasks.InputError{Sentence: "No tasks can be submitted here."}
	}
	receipt, thread, err := s.Poster.Post(c.ctx, s.View.Desk, form, nil)
	s.record(c, "submit", receipt.ID, err)
	return submitted{receipt.ID, thread, receipt.Answered}, err
}

type which struct {
	Task string `json:"task" jsonschema:"ID of the task"`
}

type statusQuery struct {
	Task string `json:"task" jsonschema:"ID of the task"`
	Wait int    `json:"wait_seconds,omitempty" jsonschema:"wait up to this many seconds, at most 50, until the task has ended or asks a question"`
}

// status is a task for a model: short, and without what it does not need to decide.
type status struct {
	Task        string     `json:"task"`
	State       string     `json:"state" jsonschema:"waiting, running, absorbed (by the run of the task in into) or ended"`
	Headline    string     `json:"headline"`
	Into        string     `json:"into,omitempty"`
	Ending      string     `json:"ending,omitempty" jsonschema:"answered, failed, timed_out, stalled, cancelled, refused, lost, superseded or withdrawn"`
	Answer      string     `json:"answer,omitempty"`
	Problem     string     `json:"problem,omitempty" jsonschema:"why there is no complete answer"`
	Note        string     `json:"note,omitempty" jsonschema:"what was published of the work"`
	PullRequest string     `json:"pull_request,omitempty"`
	Further     []string   `json:"further_pull_requests,omitempty" jsonschema:"in further repositories"`
	CostUSD     float64    `json:"cost_usd,omitempty"`
	Questions   []question `json:"questions,omitempty" jsonschema:"that the task asks; see the tool answer"`
}

type question struct {
	Key     string   `json:"question"`
	Text    string   `json:"text"`
	Options []string `json:"options,omitempty"`
}

const (
	// maxWait is below the time after which clients and proxies give up on a request.
	maxWait = 50 * time.Second
	// waitStep is the time between two looks at a task.
	waitStep = time.Second
	// maxText is how much of an answer is sent, in bytes. The console has all of it.
	maxText = 48 << 10
)

func (s *Server) status(c call, in statusQuery) (status, error) {
	until := time.Now().Add(min(time.Duration(in.Wait)*time.Second, maxWait))
	for {
		found, err := s.View.Task(c.on(in.Task))
		if err != nil {
			return status{}, err
		}
		if found.Ending != nil || len(found.Questions) > 0 || !time.Now().Before(until) {
			return s.show(c, found)
		}
		select {
		case <-c.ctx.Done():
			return status{}, c.ctx.Err()
		case <-c.Context().Done(): // the client is gone
			return status{}, c.Context().Err()
		case <-s.Life.Done(): // the client asks another front door
			return s.show(c, found)
		case <-time.After(waitStep):
		}
	}
}

// show returns a status without control sequences and with the end of a long answer cut off.
func (s *Server) show(c call, st tasks.Status) (status, error) {
	whole, err := s.View.Whole(c.ctx, st)
	if err != nil {
		return status{}, err
	}
	line := st.Headline(s.View.Now())
	shown := status{
		Task: st.Task.ID, State: st.State, Into: st.Into, Headline: display.Line(line.State + ": " + line.Detail),
	}
	if line.Detail == "" {
		shown.Headline = line.State
	}
	for _, q := range st.Questions {
		one := question{Key: q.Key, Text: display.Text(q.Text)}
		for _, option := range q.Options {
			one.Options = append(one.Options, display.Line(option))
		}
		shown.Questions = append(shown.Questions, one)
	}
	if e := st.Ending; e != nil {
		shown.Ending, shown.Problem = string(e.Kind), display.Text(e.Sentence())
		shown.Answer = display.Text(cut(cmp.Or(whole.Review, e.Said())))
		shown.Note, shown.CostUSD = display.Text(e.Note()), e.CostUSD()
		for i, p := range e.Publications() {
			if i == 0 {
				shown.PullRequest = p.PullRequest.URL
			} else if p.PullRequest.URL != "" {
				shown.Further = append(shown.Further, p.PullRequest.URL)
			}
		}
	}
	return shown, nil
}

// cut returns the beginning of a long text, and says so.
func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText] + "\n[The rest is cut off. The console has all of it.]"
}

type reply struct {
	Task     string `json:"task" jsonschema:"ID of the task"`
	Answer   string `json:"answer" jsonschema:"the answer, or the number of an option"`
	Question string `json:"question,omitempty" jsonschema:"which question, if several are open"`
}

type replied struct {
	Answer string `json:"answer" jsonschema:"the one that counts: the first"`
	By     string `json:"by"`
}

func (s *Server) answer(c call, in reply) (replied, error) {
	_, given, err := s.View.Answer(c.on(in.Task), in.Question, in.Answer)
	s.record(c, "answer", in.Task, err)
	return replied{display.Text(given.Text), display.Line(given.Who())}, err
}

func (s *Server) cancel(c call, in which) (status, error) {
	found, err := s.View.Cancel(c.on(in.Task))
	s.record(c, "cancel", in.Task, err)
	if err != nil {
		return status{}, err
	}
	return s.show(c, found)
}

type logQuery struct {
	Task  string `json:"task" jsonschema:"ID of the task"`
	Bytes int    `json:"bytes,omitempty" jsonschema:"how much of the end to return, at most 48000; default 8000"`
}

type logEnd struct {
	Log string `json:"log"`
	Cut bool   `json:"cut,omitempty" jsonschema:"there is more before it"`
}

func (s *Server) log(c call, in logQuery) (logEnd, error) {
	id, err := s.View.ID(c.on(in.Task))
	if err != nil {
		return logEnd{}, err
	}
	if in.Bytes < 0 {
		return logEnd{}, &tasks.InputError{Sentence: "bytes is how much of the end of the log to return: at least 1."}
	}
	text, from, err := s.Logs.Read(c.ctx, id, 0, min(cmp.Or(in.Bytes, 8000), maxText))
	return logEnd{display.Text(string(text)), from > 0}, err
}
