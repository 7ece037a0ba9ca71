package slack

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/forge"
)

// Pulls is the part of a [forge.Forge] that reads pull requests.
type Pulls interface {
	PullRequest(ctx context.Context, repo string, number int) (forge.PullRequest, error)
	PullRequests(ctx context.Context, repo string) ([]forge.PullRequest, error)
}

// verb is what to do with a pull request; empty: the message says it in other words.
type verb string

const (
	look verb = "look" // review, analyse, look at, check
	fix  verb = "fix"
)

// The forms of requests about pull requests that are recognised without a model.
const (
	verbForm  = `(review|analy[sz]e|look\s+at|check|fix)`
	inForm    = `(?:\s+(?:in|of)\s+([\w.-]+(?:/[\w.-]+)?))?`
	pullsForm = `(?:prs|pull\s+requests)`
)

var (
	slashPull = regexp.MustCompile(`(?i)^/pr\s+` + verbForm + `\s+#?([1-9]\d{0,8})\b` + inForm)
	aboutPull = regexp.MustCompile(`(?i)^(?:please\s+)?` + verbForm + `\s+(?:the\s+)?(?:pr|pull\s+request)\s*#?([1-9]\d{0,8})\b` + inForm)
	verbFirst = regexp.MustCompile(`(?i)^(?:please\s+)?` + verbForm + `\b`)
	listPulls = regexp.MustCompile(`(?i)^(?:please\s+)?(?:/pr\s+list|list\s+(?:(?:the|all|open)\s+)*` + pullsForm + `)` + inForm + `\s*[.!?]*$`)
)

// readVerb reads what a message wants with a pull request. A branch that it names takes precedence.
func (r *request) readVerb() {
	if r.pull.number == 0 && !strings.ContainsAny(r.prompt, "123456789") {
		return // most messages: all forms have a number
	}
	m := slashPull.FindStringSubmatch(r.prompt)
	if m != nil {
		r.prompt = strings.TrimSpace(r.prompt[len("/pr"):]) // the CLI would take it for a command of the project
	} else {
		m = aboutPull.FindStringSubmatch(r.prompt)
	}
	if m != nil && r.ref == "" && r.pull.number == 0 {
		r.pull.number, _ = strconv.Atoi(m[2]) // at most nine digits
		r.pull.sure, r.perhaps = true, strings.TrimRight(m[3], ".")
	}
	if m == nil && r.pull.number > 0 {
		m = verbFirst.FindStringSubmatch(r.prompt)
	}
	switch {
	case m == nil || r.pull.number == 0:
	case strings.EqualFold(m[1], string(fix)):
		r.verb = fix
	default:
		r.verb = look
	}
}

// readListing reads a message that wants a list of the open pull requests; repo may be empty.
func readListing(text string) (repo string, ok bool) {
	m := listPulls.FindStringSubmatch(text)
	if m == nil {
		return "", false
	}
	return strings.TrimRight(m[1], "."), true
}

// headRef is the ref of a pull request's commits.
func headRef(p forge.PullRequest) string { return fmt.Sprintf("refs/pull/%d/head", p.Number) }
