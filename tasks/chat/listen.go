package chat

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/intake"
	"github.com/errand-fleet/errand/tasks/people"
)

// maxBody bounds a request: a message of 1 MiB and pictures of 8 MiB in base64, which are the desk's limits for a task.
const maxBody = 12 << 20

var (
	threadForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	traceForm  = regexp.MustCompile(`^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$`)
	repoForm   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// Pattern is the route of the source, which needs [policy.User].
const Pattern = "POST /api/chat"

// Listen registers POST /api/chat. Streams that are open when ctx ends are ended too; their tasks go on.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *desk.Desk) error {
	mux.HandleFunc(Pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(ctx, d, w, r) })
	return nil
}

// request is the body of a request. Every field but the message may be empty.
type request struct {
	Message     string   `json:"message"`
	Repo        string   `json:"repo"`      // owner/name
	Repos       []string `json:"repos"`     // further ones
	Branch      string   `json:"branch"`    // of Repo
	Directory   string   `json:"directory"` // of Repo
	ProjectPath string   `json:"projectPath"`
	Agent       string   `json:"agent"`
	Thread      string   `json:"thread"`
	Model       string   `json:"model"`
	Effort      string   `json:"effort"`
	Budget      amount   `json:"budget"`  // US dollars
	Timeout     string   `json:"timeout"` // such as 30m
	Profile     string   `json:"profile"` // write, which is the default, or read
	Plan        bool     `json:"plan"`    // change nothing, answer with what would be done
	Pictures    []image  `json:"pictures"`
}

// amount is a number, or a string with one as people write it: 2.5, "2.50", "$2.50".
type amount string

// UnmarshalJSON takes both forms as they are, and null as no amount; task reads the amount.
func (a *amount) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*a = ""
		return nil
	}
	*a = amount(strings.Trim(string(b), `"`))
	return nil
}

// image is a picture in a request.
type image struct {
	Name string `json:"name"`
	Data []byte `json:"data"` // base64
}

// fields are the names in a request.
const fields = "message, repo, repos, branch, directory, projectPath, agent, thread, model, effort, budget, " +
	"timeout, profile, plan and pictures"

// serve submits a message and streams its task until it ends, or until the reader or the server leaves.
func (s *Source) serve(life context.Context, d *desk.Desk, w http.ResponseWriter, r *http.Request) {
	req, p := read(w, r)
	if p != nil {
		p.Write(w)
		return
	}
	t, p := s.task(req, people.Actor(r.Context()))
	if p != nil {
		p.Write(w)
		return
	}
	if parent := r.Header.Get("Traceparent"); traceForm.MatchString(parent) {
		t.Trace = parent
	}
	receipt, err := s.submit(r.Context(), d, t)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		intake.NewProblem(http.StatusBadRequest, "Bad request", input.Sentence).Write(w)
		return
	}
	if err != nil {
		s.cfg.Log.Warn("submit chat", "run", t.ID, "err", err)
		intake.NewProblem(http.StatusServiceUnavailable, "Unavailable",
			"Redis does not answer. The task was probably not stored: "+
				"look at /api/tasks before you try again.").Write(w)
		return
	}
	w.Header().Set("Errand-Task", receipt.ID)
	first := event{Type: "task", ID: receipt.ID, Thread: strings.TrimPrefix(t.Thread, "chat/")}
	if !receipt.Joins {
		first.Wait = receipt.Position
	}
	s.stream(life, d, w, r, first)
}

// read decodes one JSON object with known fields and nothing behind it. An unknown field is a mistake: "timout"
// would let a task run for hours.
func read(w http.ResponseWriter, r *http.Request) (request, *intake.Problem) {
	req, err := decode(http.MaxBytesReader(w, r.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return req, intake.NewProblem(http.StatusRequestEntityTooLarge, "Too large",
			fmt.Sprintf("A request has at most %d bytes.", maxBody))
	}
	if err == nil {
		return req, nil
	}
	if name, found := strings.CutPrefix(err.Error(), "json: unknown field "); found {
		return req, intake.NewProblem(http.StatusBadRequest, "Unknown field",
			fmt.Sprintf("There is no field %s. The fields are %s.", name, fields))
	}
	return req, intake.NewProblem(http.StatusBadRequest, "Malformed JSON", err.Error())
}

// decode reads a request with nothing behind it.
func decode(body io.Reader) (req request, err error) {
	dec := json.NewDecoder(body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(&req); err != nil {
		return req, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return req, cmp.Or(err, errors.New("there is something behind the object"))
	}
	return req, nil
}

// task returns the task of a request.
func (s *Source) task(req request, actor string) (tasks.Task, *intake.Problem) {
	bad := func(title, detail string) (tasks.Task, *intake.Problem) {
		return tasks.Task{}, intake.NewProblem(http.StatusBadRequest, title, detail)
	}
	// The ID is new for every request: a retry looks like the same text sent twice.
	now, identity := s.cfg.Now(), strings.ToLower(rand.Text())
	thread := strings.TrimPrefix(req.Thread, "chat/") // as listings show it
	if thread == "" {
		thread = identity
	}
	t := tasks.Task{
		ID: tasks.NewID(now, s.Name(), identity), Source: s.Name(), Kind: "chat", Thread: s.Name() + "/" + thread,
		Class: tasks.Interactive, Profile: cmp.Or(agent.Profile(req.Profile), agent.Write), Repo: req.Repo,
		Also: req.Repos, Actor: actor, Prompt: req.Message, Options: tasks.Options{
			Model: req.Model, Effort: req.Effort, Agent: strings.TrimPrefix(req.Agent, "@"), Directory: req.Directory,
		},
	}
	switch {
	case strings.TrimSpace(req.Message) == "":
		return bad("Empty message", "Put the request into the field message.")
	case !threadForm.MatchString(thread):
		return bad("Invalid thread", "The name of a thread has at most 40 characters of a-z, 0-9 and dash.")
	case t.Profile != agent.Write && t.Profile != agent.Read:
		return bad("Invalid profile", "The profile is write or read.")
	case req.Repo != "" && !repoForm.MatchString(req.Repo), slices.ContainsFunc(req.Repos, func(name string) bool {
		return !repoForm.MatchString(name)
	}):
		return bad("Invalid repo", "Write owner/name.")
	case req.ProjectPath != "":
		// The resolved path is what was checked, so it is what the run gets.
		dir, err := s.Directory(req.ProjectPath)
		if err != nil {
			return bad("Invalid path", err.Error()+".")
		}
		t.Dir = dir
	}
	if err := req.options(&t); err != nil {
		return bad("Invalid option", err.Error())
	}
	return t, nil
}

// options reads the options of a request. The error is an *tasks.InputError.
func (req request) options(t *tasks.Task) (err error) {
	t.Options.Plan = req.Plan
	if req.Branch != "" {
		if t.Ref, err = tasks.ParseBranch(req.Branch); err != nil {
			return err
		}
		if t.Repo == "" {
			return &tasks.InputError{Sentence: "A branch needs a repository: name one in repo."}
		}
	}
	if req.Budget != "" {
		if t.Options.MaxUSD, err = tasks.ParseBudget(string(req.Budget)); err != nil {
			return err
		}
	}
	if req.Timeout != "" {
		if t.Options.Limit, err = tasks.ParseTimeout(req.Timeout); err != nil {
			return err
		}
	}
	for _, p := range req.Pictures {
		picture, err := tasks.NewPicture(cmp.Or(p.Name, "picture"), p.Data)
		if err != nil {
			return err
		}
		t.Pictures = append(t.Pictures, picture)
	}
	return nil
}

// submit checks the agent that a request names, and stores the task. Storing gives up after submitLimit. It is detached
// from the request, so that a reader who leaves now does not leave half a task.
func (s *Source) submit(ctx context.Context, d *desk.Desk, t tasks.Task) (desk.Receipt, error) {
	if err := s.checkAgent(ctx, d, t); err != nil {
		return desk.Receipt{}, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.submitLimit)
	defer cancel()
	t.Reply = new(tasks.Reply)
	return d.Submit(ctx, t)
}
