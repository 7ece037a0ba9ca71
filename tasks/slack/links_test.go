package slack

import (
	"testing"

	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A task links to its thread: in the workspace that the bot knows by its URL, and otherwise in Slack's web client.
func TestLinks(t *testing.T) {
	t.Parallel()
	f := newFrontDoor(t, Config{}, rights.Policy{})
	task := func(team string) tasks.Task {
		o := origin{Team: team, Channel: general, TS: "1700000000.000200", ThreadTS: "1700000000.000100"}
		return tasks.Task{Origin: o.json()}
	}
	web := "https://app.slack.com/client/T0OTHER/" + general + "/thread/" + general + "-1700000000.000100"
	if got := f.source.Capabilities().Links(task("T0OTHER")).Thread; got != web {
		t.Errorf("in another workspace: %s, want %s", got, web)
	}
	me, err := f.source.me.get(t.Context())
	if err != nil || me.site == "" {
		t.Fatalf("the bot is %+v, %v", me, err)
	}
	if got, want := f.source.Capabilities().Links(task(me.team)).Thread, me.site+"archives/"+general+
		"/p1700000000000100"; got != want {
		t.Errorf("in its workspace: %s, want %s", got, want)
	}
	if got := f.source.Capabilities().Links(tasks.Task{Origin: []byte("{}")}); got != (tasks.Links{}) {
		t.Errorf("without a channel: %+v", got)
	}
}
