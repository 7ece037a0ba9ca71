package chat

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/tasks"
)

// maxBody bounds a request; the desk's limit for a task is the same.
const maxBody = 1 << 20

var (
	threadForm = regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	repoForm   = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*/[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

// Listen registers POST /api/chat. Streams that are open when ctx ends are ended too; their tasks go on.
func (s *Source) Listen(ctx context.Context, mux *http.ServeMux, d *tasks.Desk) error {
	mux.HandleFunc("POST /api/chat", func(w http.ResponseWriter, r *http.Request) { s.serve(ctx, d, w, r) })
	return nil
}

// request is what a client posts. What it has besides is ignored: clients are older and newer than we are.
type request struct {
	Message     string `json:"message"`
	Repo        string `json:"repo"`
	ProjectPath string `json:"projectPath"`
	Agent       string `json:"agent"`
	Thread      string `json:"thread"`
	Model       string `json:"model"`
	Effort      string `json:"effort"`
}

// serve takes a message and stays with its task until the end, or until the reader or the server leaves.
func (s *Source) serve(life context.Context, d *tasks.Desk, w http.ResponseWriter, r *http.Request) {
	req, p := read(w, r)
	if p != nil {
		p.write(w)
		return
	}
	t, p := s.task(req, tasks.Actor(r.Context()))
	if p != nil {
		p.write(w)
		return
	}
	receipt, err := s.submit(r.Context(), d, t)
	if input, ok := errors.AsType[*tasks.InputError](err); ok {
		(&problem{http.StatusBadRequest, "Bad request", input.Sentence}).write(w)
		return
	}
	if err != nil {
		s.cfg.Log.Warn("submit chat", "run", t.ID, "err", err)
		(&problem{http.StatusServiceUnavailable, "Unavailable", "Redis does not answer. The task was probably not stored: look at /api/tasks before you try again."}).write(w)
		return
	}
	s.stream(life, d, w, r, receipt, strings.TrimPrefix(t.Thread, "chat/"))
}

// read decodes one JSON object and nothing behind it.
func read(w http.ResponseWriter, r *http.Request) (request, *problem) {
	var req request
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	err := dec.Decode(&req)
	if err == nil {
		if _, err = dec.Token(); err == nil {
			err = errors.New("there is something behind the object")
		} else if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return req, &problem{http.StatusRequestEntityTooLarge, "Too large", fmt.Sprintf("A request has at most %d bytes.", maxBody)}
	}
	if err != nil {
		return req, &problem{http.StatusBadRequest, "Malformed JSON", err.Error()}
	}
	return req, nil
}

// task makes a task of what somebody requests.
func (s *Source) task(req request, actor string) (tasks.Task, *problem) {
	bad := func(title, detail string) (tasks.Task, *problem) {
		return tasks.Task{}, &problem{http.StatusBadRequest, title, detail}
	}
	// Its ID is new for every request, for nothing in a request tells a repetition from the same words said twice.
	now, identity := s.cfg.Now(), strings.ToLower(rand.Text())
	thread := strings.TrimPrefix(req.Thread, "chat/") // as listings show it
	if thread == "" {
		thread = identity
	}
	t := tasks.Task{
		ID: tasks.NewID(now, s.Name(), identity), Source: s.Name(), Kind: "chat", Thread: s.Name() + "/" + thread,
		Class: tasks.Interactive, Profile: agent.Write, Repo: req.Repo, Actor: actor, Prompt: req.Message,
		Options: tasks.Options{Model: req.Model, Effort: req.Effort, Agent: strings.TrimPrefix(req.Agent, "@")},
	}
	switch {
	case strings.TrimSpace(req.Message) == "":
		return bad("Empty message", "Say in message what to do.")
	case !threadForm.MatchString(thread):
		return bad("Invalid thread", "A thread is named by at most 40 of a-z, 0-9 and dash.")
	case req.Repo != "" && !repoForm.MatchString(req.Repo):
		return bad("Invalid repo", "Write owner/name.")
	case req.ProjectPath != "":
		// The resolved path is what was checked, so it is what the run gets.
		dir, err := s.Directory(req.ProjectPath)
		if err != nil {
			return bad("Invalid path", err.Error()+".")
		}
		t.Dir = dir
	}
	return t, nil
}

// submit gives up after submitLimit. It is detached from the request, so that a reader who leaves at this moment does not leave half a
// task.
func (s *Source) submit(ctx context.Context, d *tasks.Desk, t tasks.Task) (tasks.Receipt, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.submitLimit)
	defer cancel()
	return d.Submit(ctx, t)
}
