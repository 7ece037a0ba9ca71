package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/store"
)

// fleet is what GET /api/health tells.
type fleet struct {
	OK       bool            `json:"ok"`
	Problem  string          `json:"problem"`
	Redis    string          `json:"redis"`
	Findings []store.Finding `json:"findings"`
	Tasks    struct {
		Running int `json:"running"`
		Waiting int `json:"waiting"`
		Held    int `json:"held"`
	} `json:"tasks"`
	Credentials []store.Credential `json:"credentials"`
	Sources     []struct {
		Name    string    `json:"name"`
		Last    time.Time `json:"last_event"`
		Problem string    `json:"problem"`
	} `json:"sources"`
	Workers []struct {
		ID       string        `json:"id"`
		Version  string        `json:"version"`
		Slots    int           `json:"slots"`
		Running  int           `json:"running"`
		Draining bool          `json:"draining"`
		Health   *agent.Health `json:"health"`
	} `json:"workers"`
}

// doctorCommand asks the front door, which sees Redis as the fleet does: Redis itself need not be in reach of whoever asks, and that of
// a standalone system has no address that anybody knows.
func doctorCommand(t *terminal, flags *flag.FlagSet) func(context.Context, []string) error {
	raw := flags.Bool("json", false, "print the API's own answer")
	return func(ctx context.Context, args []string) error {
		if len(args) > 0 {
			return errUsage
		}
		text, f, err := t.door.health(ctx)
		if err != nil {
			return err
		}
		r := f.examine()
		services, err := t.door.services(ctx)
		if err != nil {
			return err
		}
		r = append(r, services...)
		if *raw {
			say(t.stdout, "%s", text)
		} else {
			r.print(t.stdout)
		}
		if r.bad() {
			return errSaid
		}
		return nil
	}
}

// health asks for the fleet's. 503 is an answer, too: that it is not well.
func (d *door) health(ctx context.Context) (text []byte, f fleet, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := d.send(ctx, http.MethodGet, "/api/health", nil)
	if err != nil {
		return nil, f, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
		return nil, f, d.refusal(resp)
	}
	if text, err = io.ReadAll(resp.Body); err != nil {
		return nil, f, fmt.Errorf("read answer: %w", err)
	}
	if err := json.Unmarshal(text, &f); err != nil || f.Redis == "" {
		return nil, f, fmt.Errorf("%s answered %s and no health: is this errand?", d.base, resp.Status)
	}
	return text, f, nil
}

// services asks the front door how the services are set up that it works with.
func (d *door) services(ctx context.Context) (report, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	resp, err := d.open(ctx, http.MethodGet, "/api/health/services", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var said struct {
		Findings report `json:"findings"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&said); err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	return said.Findings, nil
}

// report is a list of findings; those that are well have no severity.
type report []store.Finding

func (r *report) add(level store.Severity, what, why, remedy string) {
	*r = append(*r, store.Finding{Severity: level, What: what, Why: why, Remedy: remedy})
}

// examine judges the fleet.
func (f fleet) examine() (r report) {
	r.add("", "the front door answers", "", "")
	if f.Redis != "ok" {
		r.add(store.Fatal, "Redis does not answer", f.Redis, "Look whether it runs, and whether REDIS_URL of the front door is right.")
		return r
	}
	r.add("", "Redis answers", "", "")
	r = append(r, f.Findings...)
	if len(f.Workers) == 0 {
		r.add(store.Fatal, "no worker is alive", "Tasks wait until there is one.", "Start `worker`, with the same REDIS_URL.")
	}
	for _, s := range f.Sources {
		switch {
		case s.Problem != "":
			r.add(store.Fatal, "no events come from "+s.Name, s.Problem, "Look at its token and settings, and at the front door's log.")
		case s.Last.IsZero():
			r.add("", s.Name+": no event has come yet", "", "")
		default:
			r.add("", s.Name+": the last event came at "+s.Last.UTC().Format(time.DateTime)+" UTC", "", "")
		}
	}
	for _, w := range f.Workers {
		name := "worker " + w.ID
		switch h := w.Health; {
		case h != nil && !h.OK:
			r.add(store.Fatal, name+" runs no tasks", h.Problem, h.Remedy)
		case w.Draining:
			r.add(store.Note, name+" is shutting down", fmt.Sprintf("It takes no tasks any more; %d still run.", w.Running), "")
		default:
			r.add("", fmt.Sprintf("%s (%s): %d of %d slots taken%s", name, w.Version, w.Running, w.Slots, about(h)), "", "")
		}
		if w.Health != nil {
			for _, notice := range w.Health.Notices {
				r.add(store.Warning, name, notice, "")
			}
		}
	}
	for _, c := range f.Credentials {
		r.credential(c, time.Now())
	}
	tasks := fmt.Sprintf("%d tasks run, %d wait", f.Tasks.Running, f.Tasks.Waiting)
	if f.Tasks.Held > 0 {
		tasks += fmt.Sprintf(", %d of them until a certain time", f.Tasks.Held)
	}
	r.add("", tasks, "", "")
	return r
}

// credential tells what keeps runs from starting that use it.
func (r *report) credential(c store.Credential, now time.Time) {
	switch name := "credential " + c.Name; {
	case c.Until.After(now):
		r.add(store.Note, name+": no run starts before "+c.Until.UTC().Format(time.DateTime)+" UTC", c.Why, "")
	case c.Interval > 0:
		r.add(store.Note, name+": runs start "+c.Interval.String()+" apart", "The model throttles them.", "")
	}
}

// about is what a worker tells of its CLI.
func about(h *agent.Health) string {
	if h == nil {
		return ""
	}
	return fmt.Sprintf(", CLI %s, sandbox %s", h.Version, h.Sandbox)
}

// bad reports whether anything is wrong that has to be mended.
func (r report) bad() bool {
	for _, f := range r {
		if f.Severity == store.Fatal {
			return true
		}
	}
	return false
}

func (r report) print(w io.Writer) {
	for _, f := range r {
		say(w, "%-8s %s\n", cmp.Or(string(f.Severity), "ok"), plain(f.What))
		for _, line := range []string{f.Why, f.Remedy} {
			if line != "" {
				say(w, "%-8s   %s\n", "", plain(line))
			}
		}
	}
}
