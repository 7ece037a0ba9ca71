package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// In a sandbox the agent sees its whole clone, and neither the worker's state nor its configuration. Health reports the
// sandbox of the runs, and the configuration.
func TestSandbox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	// Not below the directory for temporary files, which a sandbox hides anyway.
	dir, err := os.MkdirTemp("/var/tmp", "we") //nolint:usetesting // the default would be below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	yaml, state := filepath.Join(dir, "errand.yaml"), filepath.Join(dir, "state")
	text, err := os.ReadFile(w.env["ERRAND_CONFIG"]) // which may be on another disk
	if err != nil {
		t.Fatal(err)
	}
	w.write(yaml, string(text))
	w.env["ERRAND_CONFIG"], w.env["ERRAND_STATE_DIR"] = yaml, state
	w.model.Answer("look",
		bash("git fsck && echo clone is wh''ole; ls "+filepath.Join(state, "logs")+"; cat "+yaml+
			"; echo sees $(ls -A /home /run | grep -v systemd | grep -c '^[^/]') places; wc -c /etc/shadow"),
		modelfake.Turn{Text: "Seen."})
	base := w.standalone()
	w.answers(w.mention("look", ""), 1)

	type check struct{ What string }
	var fleet struct {
		Workers []struct {
			Health struct {
				Sandbox string `json:"sandbox"`
				Posture string `json:"posture"`
			} `json:"health"`
			Checks []check `json:"checks"`
		} `json:"workers"`
	}
	if err := json.Unmarshal([]byte(w.get(base+"/api/health")), &fleet); err != nil || len(fleet.Workers) != 1 {
		t.Fatalf("%+v, %v", fleet, err)
	}
	if !slices.ContainsFunc(fleet.Workers[0].Checks, func(c check) bool {
		return c.What == yaml+": repositories (1), channels (1)"
	}) {
		t.Errorf("the worker does not say how it is configured: %+v", fleet.Workers[0].Checks)
	}
	requests := w.model.Requests()
	seen := string(requests[len(requests)-1].Body)
	shown := strings.Contains(seen, channel+":") && strings.Contains(seen, ".ndjson")
	hidden := !strings.Contains(seen, channel+":") && !strings.Contains(seen, ".ndjson") &&
		strings.Contains(seen, "sees 0 places") &&
		strings.Contains(seen, "shadow: Permission denied")
	switch h := fleet.Workers[0].Health; {
	case !strings.Contains(seen, "clone is whole"):
		t.Errorf("the agent saw %s", seen)
	case h.Sandbox == "bwrap" && hidden && h.Posture == "sandboxed":
	case h.Sandbox == "none" && shown && h.Posture == "shared":
	default:
		t.Errorf("health %+v; the agent saw %s", h, seen)
	}
}
