package automation

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks/desk"
	"github.com/errand-fleet/errand/tasks/queue"
	"github.com/errand-fleet/errand/tasks/rights"
)

// A front door that starts one task a day. Any number of them may do the same.
func Example() {
	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
	s, err := store.New(store.Config{Redis: client})
	if err != nil {
		panic(err)
	}
	times, err := cron.ParseStandard("CRON_TZ=Europe/Berlin 0 7 * * *")
	if err != nil {
		panic(err)
	}
	source, err := New(Schedule, Config{Memory: s.Memos, Automations: []Automation{
		{
			Name: "report", When: "every day at 07:00 Europe/Berlin", Times: times, Profile: agent.Read,
			Prompt: "Sum up yesterday's commits.", Repo: "acme/api",
		},
	}})
	if err != nil {
		panic(err)
	}
	desk := desk.New(s, queue.New(s, client, time.Hour), rights.Policy{}, slog.New(slog.DiscardHandler))
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := source.Listen(ctx, http.NewServeMux(), desk); err != nil {
		panic(err)
	}
	<-ctx.Done()
}

// A hook is made from the settings of errand.yaml. A template that cannot be read is an error.
func ExampleNew() {
	_, err := New(Hook, Config{Automations: []Automation{
		{
			Name: "alerts", Secret: "a-long-random-secret", Prompt: "An alert fired. Find its cause.\n{{.title",
			Repo: "acme/api", Profile: agent.Read,
		},
	}})
	fmt.Println(err)
	// Output: read template of hook alerts: template: alerts:2: unclosed action
}
