package githubfake

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ReviewComment is a comment on a line of the diff.
type ReviewComment struct {
	ID, ReviewID, InReplyTo int64
	User, Body              string
	Path, Side              string
	StartLine, Line         int // Line is 0 when the comment is outdated
	OriginalLine            int
	CommitID                string
	CreatedAt               time.Time
	Reactions               []Reaction

	hunk       string
	text       string // of the line, by which a new head is searched for it
	resolvedBy string // of the comment that began a thread; empty: nobody
}

// ReviewComments returns the inline comments of a pull request, oldest first.
func (s *Server) ReviewComments(repo string, number int) []ReviewComment {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, err := s.mustPull(repo, number)
	if err != nil {
		return nil
	}
	var out []ReviewComment
	for _, c := range p.inline {
		out = append(out, *c)
	}
	return out
}

// inlineAsk is what a client sends. The old "position" is not known here.
type inlineAsk struct {
	Path, Body, Side string
	Line             int
	StartLine        int    `json:"start_line"`
	StartSide        string `json:"start_side"`

	text, hunk string
}

// check says in GitHub's words what is wrong with a comment, or "". Only lines
// inside the hunks can be commented on.
func (a *inlineAsk) check(files []fileDiff) string {
	i := slices.IndexFunc(files, func(f fileDiff) bool { return f.path == a.Path })
	if i < 0 {
		return "Path could not be resolved"
	}
	if a.Side == "" {
		a.Side = "RIGHT"
	}
	if a.StartSide == "" {
		a.StartSide = a.Side
	}
	end, inside := hunkLines(files[i].patch, a.Side)[a.Line]
	start, startInside := hunkLines(files[i].patch, a.StartSide)[a.StartLine]
	switch {
	case !slices.Contains(sides, a.Side) || !slices.Contains(sides, a.StartSide):
		return "No subschema in \"oneOf\" matched."
	case !inside:
		return "Line could not be resolved"
	case a.StartLine != 0 && !startInside:
		return "Start line could not be resolved"
	case a.StartLine != 0 && a.StartSide == a.Side && a.StartLine >= a.Line:
		return "Start line must precede the end line."
	case a.StartLine != 0 && start.hunk != end.hunk:
		return "Pull request review thread start line must be part of the same hunk as the line."
	case a.Body == "":
		return "Body can't be blank"
	case tooLong(a.Body):
		return bodyTooLong
	}
	a.text, a.hunk = end.text, hunkTo(files[i].patch, a.Side, a.Line)
	return ""
}

var sides = []string{"LEFT", "RIGHT"}

// diffLine is a line inside a hunk: which hunk, and what it says.
type diffLine struct {
	hunk int
	text string
}

var hunkHeader = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@`)

// hunkLines maps the line numbers of one side that are inside the hunks to
// what is there.
func hunkLines(patch, side string) map[int]diffLine {
	lines := map[int]diffLine{}
	sign, group := "+", 2
	if side == "LEFT" {
		sign, group = "-", 1
	}
	n, hunk := 0, 0
	for line := range strings.SplitSeq(patch, "\n") {
		if m := hunkHeader.FindStringSubmatch(line); m != nil {
			n, _ = strconv.Atoi(m[group])
			hunk++
		} else if strings.HasPrefix(line, " ") || strings.HasPrefix(line, sign) {
			lines[n] = diffLine{hunk, line[1:]}
			n++
		}
	}
	return lines
}

func (s *Server) addInline(p *pull, v *Review, a inlineAsk) *ReviewComment {
	c := &ReviewComment{
		ID: s.id(), ReviewID: v.ID, User: v.User, Body: a.Body, Path: a.Path, Side: a.Side, StartLine: a.StartLine,
		Line: a.Line, OriginalLine: a.Line, CommitID: v.CommitID, CreatedAt: v.SubmittedAt, text: a.text, hunk: a.hunk,
	}
	p.inline = append(p.inline, c)
	return c
}

// replyInline replies to the first comment of a thread; a reply cannot be replied to.
func (s *Server) replyInline(r *request) reply {
	var ask struct{ Body string }
	if a, good := decode(r, &ask); !good {
		return a
	}
	p := r.pull
	i := slices.IndexFunc(p.inline, func(c *ReviewComment) bool {
		return strconv.FormatInt(c.ID, 10) == r.PathValue("id") && c.InReplyTo == 0
	})
	if i < 0 {
		return fail(404, "Not Found")
	}
	if ask.Body == "" {
		return invalid("Unprocessable Entity", "Body can't be blank")
	}
	c := s.addReply(p, p.inline[i], r.who.login, ask.Body)
	s.echo(s.inlineEvent(p, c))
	return created(s.inlineJSON(p, c))
}

// outdate follows the commented lines into a new head: the same line, or the
// only one with the same text; otherwise the comment is outdated.
func (s *Server) outdate(p *pull) {
	for _, c := range p.inline {
		i := slices.IndexFunc(p.files, func(f fileDiff) bool { return f.path == c.Path })
		var lines map[int]diffLine
		if i >= 0 {
			lines = hunkLines(p.files[i].patch, c.Side)
		}
		if at, there := lines[c.Line]; there && at.text == c.text {
			continue
		}
		was := c.Line
		c.Line = 0
		for n, at := range lines {
			switch {
			case at.text != c.text || was == 0:
			case c.Line != 0:
				c.Line, was = 0, 0 // not the only one
			default:
				c.Line = n
			}
		}
		if c.Line == 0 {
			c.StartLine = 0
		}
	}
}

func (s *Server) listInline(r *request, keep func(*ReviewComment) bool) reply {
	var some []*ReviewComment
	for _, c := range r.pull.inline {
		if keep(c) {
			some = append(some, c)
		}
	}
	return listing(s, r, some, func(c *ReviewComment) object { return s.inlineJSON(r.pull, c) })
}

func (s *Server) inlineJSON(p *pull, c *ReviewComment) object {
	o := object{
		"id": c.ID, "node_id": node("PullRequestReviewComment", c.ID), "pull_request_review_id": c.ReviewID,
		"user": s.user(c.User), "body": c.Body, "path": c.Path, "side": c.Side, "line": orNull(c.Line),
		"start_line": orNull(c.StartLine), "original_line": c.OriginalLine, "commit_id": p.headSHA,
		"original_commit_id": c.CommitID, "created_at": stamp(c.CreatedAt), "updated_at": stamp(c.CreatedAt),
		"author_association": s.association(p.repo, c.User), "subject_type": "line",
		"diff_hunk": c.hunk, "reactions": tally(c.Reactions),
		"html_url": fmt.Sprintf("%s/%s/pull/%d#discussion_r%d", s.url, p.repo.FullName(), p.number, c.ID),
	}
	if c.InReplyTo != 0 {
		o["in_reply_to_id"] = c.InReplyTo
	}
	return o
}
