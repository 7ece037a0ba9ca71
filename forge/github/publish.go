package github

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/errand-fleet/errand/forge"
	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/internal/markdown"
	"github.com/errand-fleet/errand/internal/untrusted"
)

// MaxComment is GitHub's limit for the text of a comment or description in characters. errand counts bytes, of which
// there are never fewer.
const MaxComment = 65_536

const (
	maxTitle   = 200
	maxSection = 30_000 // bytes; leaves people as much
)

// Publish opens a pull request for a branch, or updates errand's section in the description of the one that is open. Of
// that it changes neither the title, nor what people wrote around the section, nor the state. For work whose pull
// request people have closed or merged, it returns that one as it is; one whose number is known is updated even then.
func (f *Forge) Publish(ctx context.Context, p forge.Proposal) (forge.PullRequestRef, error) {
	if f.IsReadOnly(p.Repo) { // it may have become read-only since the task was submitted
		return forge.PullRequestRef{},
			&forge.RefusedError{Sentence: "This repository is only watched; nothing is written to it."}
	}
	gh, err := f.Client(ctx, p.Repo, 0)
	if err != nil {
		return forge.PullRequestRef{}, f.Explain("reach "+p.Repo, err)
	}
	b := publication{Proposal: p, gh: gh}
	b.owner, b.name = f.split(p.Repo)
	pr, err := f.findOrCreate(ctx, b)
	if err == nil {
		err = b.update(ctx, pr)
	}
	if err != nil {
		return forge.PullRequestRef{}, f.Explain("open a pull request in "+p.Repo, err)
	}
	return forge.PullRequestRef{Number: pr.GetNumber(), URL: pr.GetHTMLURL(), Draft: pr.GetDraft()}, nil
}

// findOrCreate returns the pull request of a branch.
func (f *Forge) findOrCreate(ctx context.Context, b publication) (*github.PullRequest, error) {
	pr, err := b.find(ctx)
	if err != nil || pr != nil {
		return pr, err
	}
	pr, err = b.create(ctx)
	if StatusCode(err) == http.StatusUnprocessableEntity { // another process may have been faster
		if found, ferr := b.find(ctx); ferr == nil && found != nil {
			return found, nil
		}
	}
	if err != nil {
		return nil, err
	}
	if err := b.decorate(ctx, pr); err != nil {
		f.cfg.Log.WarnContext(ctx, "pull request without label or reviewer", "repo", b.Repo, "number", pr.GetNumber(),
			"err", err)
	}
	return pr, nil
}

// publication is one pull request to create or update.
type publication struct {
	forge.Proposal
	gh          *github.Client
	owner, name string
}

// find returns the pull request of a known number, or the open one of the branch, or one with the same work that people
// have closed or merged; nil if there is none.
func (b publication) find(ctx context.Context) (*github.PullRequest, error) {
	if b.Number > 0 {
		pr, _, err := b.gh.PullRequests.Get(ctx, b.owner, b.name, b.Number)
		if err != nil {
			return nil, fmt.Errorf("get pull request %d: %w", b.Number, err)
		}
		return pr, nil
	}
	for _, state := range []string{"open", "closed"} {
		list, _, err := b.gh.PullRequests.List(ctx, b.owner, b.name, &github.PullRequestListOptions{
			State: state, Head: b.owner + ":" + b.Branch, ListOptions: github.ListOptions{PerPage: 100},
		})
		if err != nil {
			return nil, fmt.Errorf("list pull requests: %w", err)
		}
		for _, pr := range list { // the newest first
			if b.has(pr) {
				return pr, nil
			}
		}
	}
	return nil, nil
}

// has reports whether a pull request of the branch is that of the proposal: any open one, or one with the same work and
// base that people have ended.
func (b publication) has(pr *github.PullRequest) bool {
	// GitHub ignores a filter that it does not understand.
	if pr.GetHead().GetRef() != b.Branch || pr.GetHead().GetRepo().GetID() != pr.GetBase().GetRepo().GetID() {
		return false
	}
	described, _ := readSection(pr.GetBody())
	return pr.GetState() == "open" || pr.GetBase().GetRef() == b.Base &&
		(described.commit == b.Commit || pr.GetHead().GetSHA() == b.Commit)
}

// decorate gives a new pull request its labels and a reviewer. go-github would send the labels as a bare list, which
// GitHub's description does not have.
func (b publication) decorate(ctx context.Context, pr *github.PullRequest) (err error) {
	if len(b.Style.Labels) > 0 {
		path := fmt.Sprintf("repos/%s/%s/issues/%d/labels", b.owner, b.name, pr.GetNumber())
		var req *http.Request
		if req, err = b.gh.NewRequest(http.MethodPost, path,
			map[string][]string{"labels": b.Style.Labels}); err == nil {
			_, err = b.gh.Do(ctx, req, nil)
		}
	}
	if b.Reviewer != "" && !strings.EqualFold(b.Reviewer, pr.GetUser().GetLogin()) {
		ask := github.ReviewersRequest{Reviewers: []string{b.Reviewer}}
		_, _, reviewErr := b.gh.PullRequests.RequestReviewers(ctx, b.owner, b.name, pr.GetNumber(), ask)
		err = errors.Join(err, reviewErr)
	}
	return err
}

// create opens a draft, or an ordinary pull request where the repository wants that or its plan has no drafts.
func (b publication) create(ctx context.Context) (*github.PullRequest, error) {
	ask := &github.NewPullRequest{
		Title: new(b.Style.Title + cmp.Or(untrusted.Line(b.Title, maxTitle), b.Branch)), Head: &b.Branch, Base: &b.Base,
		Body: new(renderSection(b.Proposal) + renderTemplate(b.Style.Template)), Draft: new(!b.Style.Ready),
	}
	pr, _, err := b.gh.PullRequests.Create(ctx, b.owner, b.name, ask)
	if StatusCode(err) == http.StatusUnprocessableEntity && strings.Contains(strings.ToLower(messages(err)), "draft") {
		ask.Draft = new(false)
		pr, _, err = b.gh.PullRequests.Create(ctx, b.owner, b.name, ask)
	}
	if err != nil {
		return nil, fmt.Errorf("create pull request: %w", err)
	}
	return pr, nil
}

// update replaces errand's section unless it describes this commit already or a newer task wrote it, or people have
// ended the pull request. If people removed the section, it stays removed.
func (b publication) update(ctx context.Context, pr *github.PullRequest) error {
	if b.Number == 0 && pr.GetState() == "closed" {
		return nil
	}
	body := pr.GetBody()
	old, ok := readSection(body)
	if len(b.Together) == 0 {
		b.Together = old.together
	}
	if !ok || old.commit == b.Commit && slices.Equal(old.together, b.Together) || old.task > b.Run {
		return nil
	}
	b.Fixes = cmp.Or(b.Fixes, old.fixes)
	body = body[:old.start] + renderSection(b.Proposal) + body[old.end:]
	if len(body) > MaxComment {
		return nil // people wrote most of it
	}
	change := &github.PullRequest{Body: &body}
	if _, _, err := b.gh.PullRequests.Edit(ctx, b.owner, b.name, pr.GetNumber(), change); err != nil {
		return fmt.Errorf("edit pull request %d: %w", pr.GetNumber(), err)
	}
	return nil
}

// section is errand's part of a description, between two hidden lines.
type section struct {
	task, commit string
	fixes        int // the issue
	together     []string
	start, end   int // offsets in the description
}

const sectionEnd = "<!-- errand:work end -->"

var sectionStart = regexp.MustCompile(`<!-- errand:work task=(\S+) commit=(\S+) thread=(\S+)(?: fixes=([0-9]{1,9}))?(?: together=([A-Za-z0-9._/#,-]+))? -->`)

// readSection finds errand's section in a description.
func readSection(body string) (section, bool) {
	m := sectionStart.FindStringSubmatchIndex(body)
	if m == nil {
		return section{}, false
	}
	length := strings.Index(body[m[1]:], sectionEnd)
	if length < 0 {
		return section{}, false
	}
	found := section{task: body[m[2]:m[3]], commit: body[m[4]:m[5]], start: m[0], end: m[1] + length + len(sectionEnd)}
	if m[8] >= 0 {
		found.fixes, _ = strconv.Atoi(body[m[8]:m[9]])
	}
	if m[10] >= 0 {
		found.together = strings.Split(body[m[10]:m[11]], ",")
	}
	return found, true
}

// renderSection describes the work of a run.
func renderSection(p forge.Proposal) string {
	parts := markdown.Parts(strings.TrimSpace(p.Summary), maxSection, markdown.Bytes)
	text := markdown.Unclosing(parts[0])
	if len(parts) > 1 {
		text += "\n\n(The answer is longer. All of it is where the task was requested.)"
	}
	run := "run " + display.TaskID(p.Run)
	if p.RunURL != "" {
		run = fmt.Sprintf("[%s](%s)", run, p.RunURL)
	}
	asker := p.Asker
	if p.AskerAccount != "" {
		asker += ", " + p.AskerAccount + " on GitHub"
	}
	mark, fixes := "", ""
	if p.Fixes != 0 {
		mark, fixes = fmt.Sprintf(" fixes=%d", p.Fixes), fmt.Sprintf("Fixes #%d\n\n", p.Fixes)
	}
	if len(p.Together) > 0 {
		mark += " together=" + strings.Join(p.Together, ",")
		fixes += "Together with " + strings.Join(p.Together, ", ") + ".\n\n"
	}
	asker = markdown.NeutralLine(untrusted.Line(asker, 100))
	return fmt.Sprintf("<!-- errand:work task=%s commit=%s thread=%s%s -->\n%s%s%s\n\n---\n<sub>Asked "+
		"for by %s (%s) · %s</sub>\n%s",
		p.Run, p.Commit, url.QueryEscape(p.Thread), mark, fixes, p.Verification, text, asker, p.Source, run, sectionEnd)
}

// renderTemplate returns a repository's template for what follows errand's section. It notifies no one, and has no
// section of its own.
func renderTemplate(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return "\n\n" + markdown.Unping(strings.ReplaceAll(text, "<!-- errand:", "<!-- "))
}

// readyMutation marks a draft as ready for review, which REST cannot do.
const readyMutation = `mutation($id: ID!) { markPullRequestReadyForReview(input: {pullRequestId: $id}) { pullRequest { isDraft } } }`

// MarkReady marks errand's own draft as ready for review.
func (f *Forge) MarkReady(ctx context.Context, repo string, number int) error {
	what := fmt.Sprintf("mark %s#%d as ready", repo, number)
	me, err := f.Login(ctx)
	if err != nil {
		return f.Explain(what, err)
	}
	gh, err := f.Client(ctx, repo, 0)
	if err != nil {
		return f.Explain(what, err)
	}
	owner, name := f.split(repo)
	pr, _, err := gh.PullRequests.Get(ctx, owner, name, number)
	switch {
	case err != nil:
		return f.Explain(what, err)
	case pr.GetUser().GetLogin() != me || f.IsReadOnly(repo):
		return &forge.RefusedError{Sentence: "That is not my pull request."}
	case pr.GetState() != "open":
		return &forge.RefusedError{Sentence: "That pull request is not open."}
	case !pr.GetDraft():
		return nil
	}
	var done any
	if err := GraphQL(ctx, gh, readyMutation, map[string]any{"id": pr.GetNodeID()}, &done); err != nil {
		return f.Explain(what, err)
	}
	return nil
}

// maxListed is how many open pull requests PullRequests lists.
const maxListed = 20

// split returns the owner and the name of a repository, as go-github wants them.
func (f *Forge) split(repo string) (owner, name string) {
	owner, name, _ = strings.Cut(f.path(repo), "/")
	return owner, name
}

// PullRequest reads a pull request. The error is forge.ErrNotFound if it is an issue, or cannot be seen, and a
// *forge.RefusedError if trying again does not help.
func (f *Forge) PullRequest(ctx context.Context, repo string, number int) (forge.PullRequest, error) {
	what := fmt.Sprintf("read %s#%d", repo, number)
	gh, err := f.Client(ctx, repo, 0)
	if err != nil {
		return forge.PullRequest{}, f.Explain(what, err)
	}
	owner, name := f.split(repo)
	pr, _, err := gh.PullRequests.Get(ctx, owner, name, number)
	switch {
	case StatusCode(err) == http.StatusNotFound:
		return forge.PullRequest{}, fmt.Errorf("%s: %w", what, forge.ErrNotFound)
	case err != nil:
		return forge.PullRequest{}, f.Explain(what, err)
	}
	return describe(repo, pr), nil
}

// PullRequests lists the newest open pull requests of a repository. A *forge.RefusedError means that trying again does
// not help.
func (f *Forge) PullRequests(ctx context.Context, repo string) ([]forge.PullRequest, error) {
	what := "list the pull requests of " + repo
	gh, err := f.Client(ctx, repo, 0)
	if err != nil {
		return nil, f.Explain(what, err)
	}
	owner, name := f.split(repo)
	found, _, err := gh.PullRequests.List(ctx, owner, name, &github.PullRequestListOptions{
		State: "open", Sort: "created", Direction: "desc", ListOptions: github.ListOptions{PerPage: maxListed},
	})
	if err != nil {
		return nil, f.Explain(what, err)
	}
	list := make([]forge.PullRequest, len(found))
	for i, pr := range found {
		list[i] = describe(repo, pr)
	}
	return list, nil
}

func describe(repo string, pr *github.PullRequest) forge.PullRequest {
	return forge.PullRequest{
		Repo: repo, Number: pr.GetNumber(), Title: untrusted.Line(pr.GetTitle(), 200), Author: pr.GetUser().GetLogin(),
		Base: pr.GetBase().GetRef(), URL: pr.GetHTMLURL(), Draft: pr.GetDraft(), Fork: IsFork(pr),
	}
}

// IsFork reports whether the head of a pull request is in another repository. GitHub reports no repository for a
// deleted fork; a pull request that does not say where it comes from counts as a fork.
func IsFork(pr *github.PullRequest) bool {
	from := pr.GetHead().GetRepo().GetID()
	return from == 0 || from != pr.GetBase().GetRepo().GetID()
}

// Pages goes through the pages of a list, and maps each element with read. An error ends the sequence.
func Pages[T, V any](
	opt *github.ListOptions, read func(T) V, list func() ([]T, *github.Response, error),
) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		for {
			page, resp, err := list()
			if err != nil {
				var zero V
				yield(zero, err)
				return
			}
			for _, one := range page {
				if !yield(read(one), nil) {
					return
				}
			}
			if resp.NextPage == 0 {
				return
			}
			opt.Page = resp.NextPage
		}
	}
}
