package console

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/web/internal/respond"
)

// Bounds of what a page shows of changes. All stored changes can be reached from the page of the changes, file by file.
const (
	taskLines = 150   // on a task's page
	pageLines = 4000  // on the page of the changes
	openLines = 300   // of the files that are unfolded
	openFirst = 40    // the same on a task's page
	longLine  = 2000  // characters of a line
	maxPatch  = 20000 // lines of a single file
)

// changesView is the component with the changes of a run.
type changesView struct {
	Task    string
	Page    bool // it is a separate page
	Review  bool // the run reviewed these changes
	Failed  string
	Total   tasks.Diffstat
	At      time.Time
	Live    bool // more may follow
	Checks  *tasks.Verification
	Verdict string     // of the checks, in a few words
	List    []diffFile // all, without lines
	Files   []diffFile // those on the page
	Left    []string
	Missing int
}

// Count says how many files have changed.
func (v changesView) Count() string {
	if v.Total.Files == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", v.Total.Files)
}

// Path returns the page of the changes.
func (v changesView) Path() string { return "/tasks/" + v.Task + "/changes" }

// diffFile is the change of one file.
type diffFile struct {
	Anchor, Name, From string
	Kind               string // in words; empty: changed
	Added, Removed     int
	Binary             bool
	Note               string // why lines are missing
	Lines              []diffLine
	Open               bool
	Elsewhere          bool   // its lines are on another page
	Href               string // where they are
	Size               int    // lines
}

// diffLine is a line of a unified diff.
type diffLine struct {
	Class string // add, del, hunk or note; empty: unchanged
	Text  string // with the sign
}

// lineClasses are the classes of lines by their first byte.
var lineClasses = map[string]string{"+": "add", "-": "del", "@": "hunk", `\`: "note"}

// changesPage shows all changes of a task, or those of one file (?file=).
func (c *Console) changesPage(w http.ResponseWriter, r *http.Request) error {
	s, err := c.View.Task(r)
	if err != nil {
		return err
	}
	if s.Into != "" {
		http.Redirect(w, r, "/tasks/"+s.Into+"/changes", http.StatusSeeOther)
		return nil
	}
	release, err := c.renderSlot(r.Context())
	if err != nil {
		return err
	}
	defer release()
	v, err := c.changes(r.Context(), s, pageLines, r.URL.Query().Get("file"))
	if err != nil {
		return err
	}
	if v == nil {
		return respond.Error(http.StatusNotFound, "No changes",
			"No changes are stored for this task: it has no clone that it may change, "+
				"it has reached no checkpoint yet, or the changes have expired.")
	}
	v.Page = true
	b, err := c.Out.Render(r.Context(), "diff", struct {
		row
		Changes *changesView
	}{newRow(c.View.NewTask(s), c.View.Now()), v})
	if err == nil {
		respond.HTML(w, http.StatusOK, b)
	}
	return err
}

// shortChanges returns a task's changes for a page with other content, or nil if there are none. The page is shown
// without changes that cannot be read.
func (c *Console) shortChanges(ctx context.Context, s tasks.Status) *changesView {
	v, err := c.changes(ctx, s, taskLines, "")
	if err != nil {
		c.View.Log.Warn("read changes", "run", s.Task.ID, "err", err)
		return &changesView{Task: s.Task.ID, Failed: "The changes cannot be read at the moment."}
	}
	return v
}

// changes returns a task's changes with at most so many lines, or nil if there are none. file is the anchor of the only
// file to show; empty: all.
func (c *Console) changes(ctx context.Context, s tasks.Status, most int, file string) (*changesView, error) {
	d, err := c.View.Desk.Changes(ctx, s.Task.ID)
	if errors.Is(err, tasks.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v := &changesView{
		Task: s.Task.ID, Review: d.Head != "", Failed: d.Failed, Total: d.Total, At: d.At, Live: d.Live &&
			s.Ending == nil, Missing: d.Missing(),
	}
	if s.Ending != nil && s.Ending.Published != nil && s.Ending.Published.Verification != nil {
		v.Checks = s.Ending.Published.Verification
		v.Verdict = v.Checks.Line()
	}
	for _, name := range d.Left {
		v.Left = append(v.Left, fileName(name))
	}
	open := openLines
	if most == taskLines {
		open = openFirst
	}
	for _, f := range d.Files {
		shown := newDiffFile(f)
		link := v.Path() + "?file=" + shown.Anchor + "#" + shown.Anchor
		if shown.Href = "#" + shown.Anchor; file != "" {
			shown.Href = link
		}
		v.List = append(v.List, shown)
		if file != "" && file != shown.Anchor {
			continue
		}
		if file != "" {
			most, open = maxPatch, maxPatch
		}
		shown.Lines = diffLines(f.Patch)
		if n := len(shown.Lines); n > most {
			shown.Lines, shown.Elsewhere, shown.Href, shown.Size = nil, true, link, n
		} else {
			shown.Open = n <= open
			most, open = most-n, open-n
		}
		v.Files = append(v.Files, shown)
	}
	return v, nil
}

// kinds are git's letters in words.
var kinds = map[string]string{"A": "added", "D": "deleted", "R": "renamed", "T": "type changed"}

func newDiffFile(f tasks.ChangedFile) diffFile {
	sum := sha256.Sum256([]byte(f.Name))
	shown := diffFile{
		Anchor: fmt.Sprintf("f-%x", sum[:5]), Name: fileName(f.Name), From: fileName(f.From), Kind: kinds[f.Kind],
		Added: f.Added, Removed: f.Removed, Binary: f.Binary,
	}
	switch {
	case f.Binary:
		shown.Note = "Binary, or larger than 1 MiB: not shown."
	case f.Cut:
		shown.Note = "The rest is too large to be shown."
	case f.Secret:
		shown.Note = "Secrets are redacted."
	case f.Added+f.Removed == 0 && f.Kind == "M":
		shown.Note = "Only the permissions changed."
	}
	return shown
}

// fileName spells out what a name hides, also line breaks.
func fileName(s string) string {
	return strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace(display.Code(s))
}

// diffLines returns the lines of a patch of one file from its first hunk on.
func diffLines(patch string) (lines []diffLine) {
	_, hunks, found := strings.Cut(patch, "\n@@ ")
	if !found {
		return nil
	}
	windows := true
	for text := range strings.SplitSeq("@@ "+strings.TrimSuffix(hunks, "\n"), "\n") {
		l := diffLine{Text: text}
		if text != "" {
			l.Class = lineClasses[text[:1]]
		}
		windows = windows && (l.Class == "hunk" || l.Class == "note" || strings.HasSuffix(text, "\r"))
		lines = append(lines, l)
	}
	for i, l := range lines {
		if windows { // otherwise the differences in line ends are worth seeing
			l.Text = strings.TrimSuffix(l.Text, "\r")
		}
		if r := []rune(l.Text); len(l.Text) > longLine && len(r) > longLine {
			l.Text = string(r[:longLine]) + fmt.Sprintf(" … %d more characters", len(r)-longLine)
		}
		lines[i].Text = display.Code(l.Text)
	}
	return lines
}
