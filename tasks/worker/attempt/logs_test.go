package attempt

import (
	"fmt"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

// lines returns numbered lines of a size together.
func lines(size int) string {
	var b strings.Builder
	for n := 0; b.Len() < size; n++ {
		fmt.Fprintf(&b, "%d %s\n", n, strings.Repeat("x", n%100))
	}
	return b.String()[:size]
}

func TestLogThatFitsIsKept(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"short": "one\ntwo\n", "no end": "one\ntwo", "fills it": lines(keptPeople),
		"one line": strings.Repeat("x", keptPeople),
	} {
		before, behind := "of an earlier run\n", "of a later one\n"
		from := int64(len(before))
		data, err := excerpt(strings.NewReader(before+text+behind), from, from+int64(len(text)), keptPeople,
			cutLine(tasks.PeopleLog))
		if err != nil || string(data) != text {
			t.Errorf("%s: %d bytes of %d, %v", name, len(data), len(text), err)
		}
	}
}

func TestMiddleOfALongLogIsCut(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"one byte over": lines(keptPeople + 1), "long": lines(5 * keptPeople),
		"no end": lines(2*keptPeople) + "\nend", "one line": strings.Repeat("x", 2*keptPeople),
		"one line between others": "first\n" + strings.Repeat("x", 2*keptPeople) + "\nlast\n",
		"one line at the end":     lines(keptPeople) + "\n" + strings.Repeat("x", keptPeople) + "\n",
		"two lines":               strings.Repeat("x", keptPeople) + "\n" + strings.Repeat("y", keptPeople/2) + "\n",
	} {
		data, err := excerpt(strings.NewReader(text), 0, int64(len(text)), keptPeople, cutLine(tasks.PeopleLog))
		if err != nil || len(data) > keptPeople {
			t.Fatalf("%s: %d bytes, %v", name, len(data), err)
		}
		head, rest, found := strings.Cut(string(data), "\n[… ")
		var missing int
		count, tail, _ := strings.Cut(rest, "]\n")
		if _, err := fmt.Sscanf(count, "%d bytes", &missing); err != nil || !found {
			t.Fatalf("%s: it does not say that it was cut: %v", name, err)
		}
		if strings.HasPrefix(text, head+"\n") {
			head += "\n"
		}
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) ||
			len(head)+missing+len(tail) != len(text) {
			t.Errorf("%s: %d + %d + %d bytes of %d", name, len(head), missing, len(tail), len(text))
		}
		atLines := strings.HasSuffix(head, "\n") && text[len(text)-len(tail)-1] == '\n'
		if !atLines && !strings.Contains(name, "line") {
			t.Errorf("%s: it is cut in the middle of a line", name)
		}
		if len(head) < keptPeople/3 || len(tail) < keptPeople/3 {
			t.Errorf("%s: %d bytes of the beginning and %d of the end are little", name, len(head), len(tail))
		}
	}
}
