package githubfake

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
)

// Job is a job of GitHub Actions: a check run of the App "github-actions", whose ID is the job's.
type Job struct {
	Name       string
	Conclusion string // empty: it is still running
	Summary    string
	Log        string
}

// actionsApp is who reports jobs.
var actionsApp = object{"id": 15368, "slug": "github-actions", "name": "GitHub Actions"}

// RunJob lets a job run on a commit, or go on if it is running, and delivers check_run when it has completed. Like that
// of a client, a check run with a conclusion of before is replaced by a new one.
func (s *Server) RunJob(ctx context.Context, repo, sha string, j Job) error {
	s.mu.Lock()
	r, err := s.mustRepo(repo)
	if err != nil {
		s.mu.Unlock()
		return fmt.Errorf("run job: %w", err)
	}
	var c *CheckRun
	for _, old := range r.checks[sha] {
		if old.Job && old.Name == j.Name && old.Status != "completed" {
			c = old
		}
	}
	if c == nil {
		c = &CheckRun{ID: s.id(), SHA: sha, Name: j.Name, StartedAt: s.now(), Job: true}
		r.checks[sha] = append(r.checks[sha], c)
	}
	c.Log, c.CheckState = j.Log, CheckState{Status: "in_progress", Summary: j.Summary}
	if j.Conclusion != "" {
		c.Status, c.Conclusion, c.CompletedAt = "completed", j.Conclusion, s.now()
	}
	c.History = append(c.History, c.CheckState)
	e := s.checkEvent("completed", &request{repo: r, who: caller{login: "octocat"}}, c)
	s.changed()
	s.mu.Unlock()
	if j.Conclusion == "" {
		return nil
	}
	return s.deliver(ctx, e)
}

// Rerequest has a person run a check run again, and delivers that. GitHub changes only its suite: what becomes of the
// check run is up to its App.
func (s *Server) Rerequest(ctx context.Context, repo string, id int64, user string) error {
	s.mu.Lock()
	r, err := s.mustRepo(repo)
	var events []event
	if err == nil {
		for _, all := range r.checks {
			for _, c := range all {
				if c.ID == id {
					events = append(events, s.checkEvent("rerequested", &request{repo: r, who: caller{login: user}}, c))
				}
			}
		}
	}
	s.mu.Unlock()
	if err == nil && events == nil {
		err = errors.New("no such check run")
	}
	if err != nil {
		return fmt.Errorf("rerequest: %w", err)
	}
	return s.deliver(ctx, events...)
}

func (s *Server) ciRoutes() {
	s.api("GET /repos/{o}/{r}/actions/jobs/{id}/logs", "actions:read", s.onCheck(func(_ *request, c *CheckRun) reply {
		if !c.Job {
			return fail(404, "Not Found")
		}
		return reply{status: 302, location: fmt.Sprintf("%s/_logs/%d", s.url, c.ID)}
	}))
	// GitHub keeps logs elsewhere, where an address is the credential and another one beside it a mistake.
	handle(&s.web, "GET /_logs/{id}", func(w http.ResponseWriter, r *request) {
		if r.Header.Get("Authorization") != "" {
			http.Error(w, "InvalidAuthenticationInfo", http.StatusBadRequest)
			return
		}
		id, _ := strconv.ParseInt(r.PathValue("id"), 10, 64)
		log, ok := s.jobLog(id)
		if !ok {
			http.NotFound(w, r.Request)
			return
		}
		_, _ = w.Write([]byte(log))
	})
}

func (s *Server) jobLog(id int64) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.repos {
		for _, all := range r.checks {
			for _, c := range all {
				if c.ID == id && c.Job {
					return c.Log, true
				}
			}
		}
	}
	return "", false
}

// branchesAt are the branches whose head is a commit.
func (s *Server) branchesAt(r *Repo, sha string) (names []string) {
	heads, err := s.branches(r.dir)
	if err != nil {
		return nil
	}
	for name, head := range heads {
		if head == sha {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
