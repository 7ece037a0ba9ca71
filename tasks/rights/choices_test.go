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
		{tasks.Options{Directory: "services/api"}, ""},
		{tasks.Options{Directory: "api"}, `The directory "api" needs a repository: name one.`},
		{tasks.Options{Directory: "/etc"}, `"/etc" is not a directory below the repository's root: write it like services/api.`},
	} {
		task := tasks.Task{
			ID: "1700000000000000-test-x", Source: "test", Thread: "t", Prompt: "go", Options: row.options,
		}
		if row.options.Directory != "" && row.options.Directory != "api" {
			task.Repo = "acme/api"
		}
		_, err := Policy{Choices: c}.Apply(task)
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
