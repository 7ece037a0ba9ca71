// Package forge defines what errand needs of a code host: clone URLs, credentials, pull requests, publishing,
// permissions and CI status.
//
// A [Forge] may be used from any goroutine. Each of its HTTP attempts lasts at most 10 seconds, and a call that creates
// something looks first whether it exists, so that it can be repeated after a failure. The package imports nothing else
// of errand; implementations are in packages below it.
package forge

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Forge is a code host.
type Forge interface {
	// Name is the first word of the names of its threads, such as "github".
	Name() string
	// CloneURL returns the git remote of a repository.
	CloneURL(repo string) string
	// Credential returns the credential for the git remote of a repository.
	Credential(ctx context.Context, repo string) (username, password string, err error)
	// PullRequest reads a pull request. The error is ErrNotFound if it does not exist or cannot be seen.
	PullRequest(ctx context.Context, repo string, number int) (PullRequest, error)
	// PullRequests lists the newest open pull requests of a repository, about twenty.
	PullRequests(ctx context.Context, repo string) ([]PullRequest, error)
	// Publish opens a pull request, usually a draft, for a branch, or updates the one that is open for it. It finds
	// what an earlier call made.
	Publish(ctx context.Context, p Proposal) (PullRequestRef, error)
	// Address returns the name and the address to which the forge attributes commits of an account, as in "ann
	// <ann@example.com>"; login "" is errand's own account. A repository says by which credential errand asks.
	Address(ctx context.Context, repo, login string) (string, error)
	// MarkReady marks errand's own draft as ready for review, if it is a draft. A *RefusedError gives the reason.
	MarkReady(ctx context.Context, repo string, number int) error
	// Permission returns what an account may do in a repository.
	Permission(ctx context.Context, repo, login string) (Permission, error)
	// AccountID returns the number of an account in an answer about its permission. A renamed account keeps it, and the
	// next owner of the login has another one.
	AccountID(ctx context.Context, repo, login string) (int64, error)
	// Private reports whether a repository is not public. The error is ErrNotFound if it does not exist or cannot be
	// seen.
	Private(ctx context.Context, repo string) (bool, error)
	// NameOf returns the name of a repository, which is another one if it was renamed or moved. The error is
	// ErrNotFound if it does not exist or cannot be seen.
	NameOf(ctx context.Context, repo string) (string, error)
	// CIStatus reads the checks of a commit.
	CIStatus(ctx context.Context, repo, commit string) (CIStatus, error)
}

// ErrNotFound is returned for what does not exist, or cannot be seen with errand's credential.
var ErrNotFound = errors.New("not found")

// RefusedError reports that the forge will refuse a call however often it is repeated.
type RefusedError struct {
	Sentence string // for people: what is wrong, and what they can do about it
}

func (e *RefusedError) Error() string { return e.Sentence }

// LimitError reports a rate limit.
type LimitError struct {
	At  time.Time // when to try again
	Why string    // a clause for people
}

func (e *LimitError) Error() string { return e.Why + ", until " + e.At.UTC().Format(time.RFC3339) }

// PullRequestRef identifies a pull request of a repository.
type PullRequestRef struct {
	Number int    `json:"number"`
	URL    string `json:"url"`
	Draft  bool   `json:"draft,omitempty"`
}

// PullRequest describes a pull request. Title and Author are untrusted text.
type PullRequest struct {
	Repo   string `json:"repo"`
	Number int    `json:"number"`
	Title  string `json:"title"`
	Author string `json:"author"`
	Base   string `json:"base"` // branch
	URL    string `json:"url"`
	Draft  bool   `json:"draft,omitempty"`
	Fork   bool   `json:"fork,omitempty"` // its commits come from another repository
}

// Proposal is a pushed branch that should have a pull request.
type Proposal struct {
	Repo   string
	Branch string
	Commit string // the branch's head
	Base   string // branch to merge into
	Title  string // one line
	Number int    // of the pull request if it is known: then none is opened; 0: find or open it
	Fixes  int    // number of the resolved issue; 0: the one in the current description, if any

	// Together are the pull requests of the same work in other repositories, as "owner/name#3"; empty: those of the
	// pull request's description so far, if any.
	Together []string

	Run    string // the ID of the task; a newer task's description is never replaced by an older one's
	RunURL string // where people see the run; may be empty
	Thread string // of the task
	Source string // of the task

	Asker        string // who asked, by name
	AskerAccount string // their login at the forge, if they asked elsewhere and it is known
	Verification string // Markdown: the results of the repository's verification commands; may be empty
	Summary      string // Markdown, untrusted: the run's answer

	Reviewer string // login of an account whose review is requested, if it is not the author; empty: none
	Style    Style
}

// Style is how a repository wants its pull requests to be opened.
type Style struct {
	Title    string   `json:"title,omitempty"` // precedes the title
	Labels   []string `json:"labels,omitempty"`
	Ready    bool     `json:"ready,omitempty"`    // not a draft
	Template string   `json:"template,omitempty"` // Markdown that follows errand's description
}

// Permission is what an account may do in a repository.
type Permission string

// The permissions. Maintainers count as PermissionWrite, triagers as PermissionRead.
const (
	PermissionAdmin Permission = "admin"
	PermissionWrite Permission = "write"
	PermissionRead  Permission = "read"
	PermissionNone  Permission = "none"
)

// CanWrite reports whether p allows pushing. An account that may push may also have errand push, and approve runs of
// untrusted code.
func (p Permission) CanWrite() bool { return p == PermissionAdmin || p == PermissionWrite }

// CIStatus is the state of the checks of a commit.
type CIStatus struct {
	Failed  []FailedCheck // by name
	Pending int           // checks that have not finished
}

// FailedCheck is a check that has failed.
type FailedCheck struct {
	Name, URL string
	Output    string // untrusted: what the check reports
	Job       int64  // the CI job whose log can be read; 0: none
}

// Repository is a parsed repository name: acme/api, group/subgroup/api, or one of these below a host, as in
// github.com/acme/api. The host may be left out where there is one forge.
type Repository struct {
	Host string // may be empty
	Path string // owner and name with a slash between them; more than one slash where a forge nests groups
}

// maxName is the length of a whole name.
const maxName = 255

// segment begins with neither a dash nor a dot, so that it can be no option and no hidden or parent directory; the last
// may begin with a dot, because acme/.github is a repository.
var (
	segment     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
	lastSegment = regexp.MustCompile(`^\.?[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$`)
)

// ParseRepository reads a repository name. A first segment with a dot is a host if at least two follow.
func ParseRepository(name string) (Repository, error) {
	parts := strings.Split(name, "/")
	last := len(parts) - 1
	ok := last >= 1 && len(name) <= maxName && !strings.Contains(name, "..") && parts[last] != ".git" &&
		lastSegment.MatchString(parts[last])
	for _, part := range parts[:last] {
		ok = ok && segment.MatchString(part) && !strings.HasSuffix(part, ".git")
	}
	if !ok {
		return Repository{}, fmt.Errorf("%.100q is not the name of a repository, such as owner/name", name)
	}
	if strings.Contains(parts[0], ".") && last >= 2 {
		return Repository{Host: parts[0], Path: strings.Join(parts[1:], "/")}, nil
	}
	return Repository{Path: name}, nil
}
