package rights

import (
	"testing"

	"github.com/errand-fleet/errand/tasks"
)

func TestChoices(t *testing.T) {
	t.Parallel()
	c := Choices{Models: []string{"opus", "sonnet"}}
	for _, row := range []struct {
		options tasks.Options
		want    string
	}{
		{tasks.Options{}, ""},
		{tasks.Options{Model: "sonnet", Effort: "any"}, ""},
		{tasks.Options{Model: "best"}, "The model best is not available here. Choose opus, sonnet."},
	} {
		_, err := Policy{Choices: c}.Apply(tasks.Task{
			ID: "1700000000000000-test-x", Source: "test", Thread: "t", Prompt: "go", Options: row.options,
		})
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != row.want {
			t.Errorf("%+v: %q, want %q", row.options, got, row.want)
		}
	}
	if err := (Choices{Efforts: []string{"low"}}).check(tasks.Options{Effort: "high"}); err == nil {
		t.Error("an effort that is not listed is taken")
	}
}
