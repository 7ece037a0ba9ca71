package review

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/github/subject"
)

// mark identifies a comment by errand, in two lines at its beginning that GitHub does not show. Only errand can have
// written them there; a mark further down is text.
type mark struct {
	part int // a text that is too long for one comment continues in part 2

	task, head string
	ending     tasks.EndingKind
	at         int64 // of the ending, in Unix microseconds: a retried task has another one
}

var markForm = regexp.MustCompile(`^<!-- errand:review(?: part=([0-9]{1,3}))? -->` +
	`(?:\r?\n<!-- errand:task=(\S+) head=(\S+) ending=(\S+) at=([0-9]{1,18}) -->)?`)

// markOf returns the mark of task t's ending.
func markOf(t tasks.Task, o subject.Origin, e tasks.Ending) mark {
	return mark{part: 1, task: t.ID, head: o.Head, ending: e.Kind, at: e.At.UnixMicro()}
}

// readMark parses the mark of a comment. Without its second line, which a user may have removed, it is the oldest mark.
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

// findings returns the mark of the review with the findings on their lines, for the same ending.
func (m mark) findings() string { return "<!-- errand:findings -->\n" + m.line() }

// line returns the second line of the mark.
func (m mark) line() string {
	return fmt.Sprintf("<!-- errand:task=%s head=%s ending=%s at=%d -->\n", m.task, m.head, m.ending, m.at)
}

// key distinguishes the endings of a task: a retry may have another answer.
func (m mark) key() string { return fmt.Sprintf("%s@%d", m.task, m.at) }

// compare orders marks by the time of the endings, because the tasks of a pull request run one after another. Task IDs
// have whole seconds, and two pushes may be closer together.
func (m mark) compare(o mark) int {
	return cmp.Or(cmp.Compare(m.at, o.at), strings.Compare(m.task, o.task))
}
