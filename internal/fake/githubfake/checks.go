package githubfake

import (
	"slices"
	"time"
	"unicode/utf8"
)

// CheckRun is a check run as it is now, with what it was before.
type CheckRun struct {
	ID                     int64
	SHA, Name              string
	ExternalID, DetailsURL string
	CheckState
	StartedAt, CompletedAt time.Time
	History                []CheckState // every create and update, in order; the last is the present

	Job bool   // of GitHub Actions: see RunJob
	Log string // of the job
}

// CheckState is what an update changes.
type CheckState struct {
	Status     string // queued, in_progress or completed
	Conclusion string // "" until completed
	Title      string
	Summary    string
	Text       string
}

const maxSummary = 65_535 // characters, of summary and of text

// CheckRuns returns the check runs of a commit, oldest first.
func (s *Server) CheckRuns(repo, sha string) []CheckRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.mustRepo(repo)
	if err != nil {
		return nil
	}
	var out []CheckRun
	for _, c := range r.checks[sha] {
		v := *c
		v.History = slices.Clone(c.History)
		out = append(out, v)
	}
	return out
}

// checkAsk is what create and update send; nil leaves a field as it is.
type checkAsk struct {
	Name, Status, Conclusion *string
	HeadSHA                  *string    `json:"head_sha"`
	ExternalID               *string    `json:"external_id"`
	DetailsURL               *string    `json:"details_url"`
	StartedAt                *time.Time `json:"started_at"`
	CompletedAt              *time.Time `json:"completed_at"`
	// go-github sends the whole output or none; GitHub insists on both texts.
	Output *struct {
		Title, Summary, Text *string
	}
}

var (
	checkStatuses = []string{"queued", "in_progress", "completed"}
	conclusions   = []string{"action_required", "cancelled", "failure", "neutral", "skipped", "success", "timed_out"}
)

// problem says what GitHub refuses, or "".
func (a *checkAsk) problem() string {
	o := a.Output
	switch {
	case a.Status != nil && !slices.Contains(checkStatuses, *a.Status):
		return *a.Status + " is not a status"
	case a.Conclusion != nil && !slices.Contains(conclusions, *a.Conclusion):
		return *a.Conclusion + " is not a conclusion"
	case a.Status != nil && *a.Status == "completed" && a.Conclusion == nil:
		return "conclusion is required when status is completed"
	case o != nil && (o.Title == nil || o.Summary == nil):
		return "output needs title and summary"
	case o != nil &&
		(utf8.RuneCountInString(*o.Summary) > maxSummary || o.Text != nil && utf8.RuneCountInString(*o.Text) > maxSummary):
		return "Only 65535 characters are allowed; summary or text exceeds them"
	}
	return ""
}

// apply changes c and remembers the new state.
func (s *Server) apply(a *checkAsk, c *CheckRun) {
	set := func(field *string, to *string) {
		if to != nil {
			*field = *to
		}
	}
	set(&c.Name, a.Name)
	set(&c.ExternalID, a.ExternalID)
	set(&c.DetailsURL, a.DetailsURL)
	set(&c.Status, a.Status)
	if a.Status != nil && *a.Status != "completed" {
		c.Conclusion, c.CompletedAt = "", time.Time{} // it runs again
	}
	if a.Conclusion != nil {
		// A conclusion alone completes the run.
		c.Status, c.Conclusion, c.CompletedAt = "completed", *a.Conclusion, s.now()
	}
	if a.StartedAt != nil {
		c.StartedAt = *a.StartedAt
	}
	if a.CompletedAt != nil {
		c.CompletedAt = *a.CompletedAt
	}
	if a.Output != nil {
		set(&c.Title, a.Output.Title)
		set(&c.Summary, a.Output.Summary)
		set(&c.Text, a.Output.Text)
	}
	c.History = append(c.History, c.CheckState)
}
