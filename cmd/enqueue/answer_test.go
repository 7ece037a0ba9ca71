package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/display"
	"github.com/errand-fleet/errand/tasks"
)

func TestAnswer(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t)
	id := f.submit("Paint it.")
	c := f.Claim(id)
	for _, q := range []tasks.Question{
		{Key: "k1", Text: "Which\x1b[2J colour?", Options: []string{"red", "blue"}}, {Key: "k2", Text: "Really?"},
	} {
		body, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Ask(t.Context(), q.Key, body); err != nil {
			t.Fatal(err)
		}
	}
	_, out, _ := f.run("show", id)
	for _, want := range []string{"? Which colour?", "  2. blue", "enqueue answer --question k1 " + display.TaskID(id)} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %s", want, out)
		}
	}
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"answer", id}, 2, "enqueue answer: missing WORDS"},
		{[]string{"answer", id, "2"}, 1, "Several questions are open"},
		{[]string{"answer", "--question", "k9", id, "2"}, 1, "No such question"},
		{[]string{"answer", "--question", "k1", id, "2"}, 0, "console answered: blue"},
		{[]string{"answer", "--question", "k1", id, "red"}, 0, "console answered: blue"}, // the first one counts
		{[]string{"answer", id, "quite", "sure"}, 0, "console answered: quite sure"},
	} {
		code, out, errs := f.run(row.args...)
		if code != row.code || !strings.Contains(out+errs, row.want) {
			t.Errorf("%q: exit %d, %s%s", row.args, code, out, errs)
		}
	}
}
