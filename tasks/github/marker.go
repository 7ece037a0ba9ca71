package github

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/tasks"
)

// mark is what a comment of ours says of itself, in two lines at its very beginning that GitHub does not show. There nothing but our
// code can have put them; what looks like a mark further down is text.
type mark struct {
	part int // a text that is too long for one comment goes on in part 2

	task, head string
	ending     tasks.EndingKind
	at         int64 // of the ending, in Unix microseconds: a task that was tried again has another one
}

var markForm = regexp.MustCompile(`^<!-- errand:review(?: part=([0-9]{1,3}))? -->` +
	`(?:\r?\n<!-- errand:task=(\S+) head=(\S+) ending=(\S+) at=([0-9]{1,18}) -->)?`)

// markOf is the mark of task t's ending.
func markOf(t tasks.Task, o origin, e tasks.Ending) mark {
	return mark{part: 1, task: t.ID, head: o.Head, ending: e.Kind, at: e.At.UnixMicro()}
}

// readMark finds the mark of a comment. Without its second line, which somebody may have edited away, it is older than any other.
func readMark(body string) (mark, bool) {
	m := markForm.FindStringSubmatch(body)
	if m == nil {
		return mark{}, false
	}
	k := mark{part: 1, task: m[2], head: m[3], ending: tasks.EndingKind(m[4])}
	if m[1] != "" {
		k.part, _ = strconv.Atoi(m[1])
	}
	k.at, _ = strconv.ParseInt(m[5], 10, 64)
	return k, true
}

func (m mark) String() string {
	part := ""
	if m.part > 1 {
		part = fmt.Sprintf(" part=%d", m.part)
	}
	return fmt.Sprintf("<!-- errand:review%s -->\n%s", part, m.line())
}

// findings is the mark of the review that brings the findings to their lines, which belongs to the same ending.
func (m mark) findings() string { return "<!-- errand:findings -->\n" + m.line() }

// line is the second line.
func (m mark) line() string {
	return fmt.Sprintf("<!-- errand:task=%s head=%s ending=%s at=%d -->\n", m.task, m.head, m.ending, m.at)
}

// key tells the endings of a task apart: one that is tried again may have another answer.
func (m mark) key() string { return fmt.Sprintf("%s@%d", m.task, m.at) }

// compare orders marks by age: that of the endings, because a pull request's tasks run one after the other. Their IDs are of whole
// seconds, and two pushes may be closer together than that.
func (m mark) compare(o mark) int {
	return cmp.Or(cmp.Compare(m.at, o.at), strings.Compare(m.task, o.task))
}
