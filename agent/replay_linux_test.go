package agent

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// oldCLI is the last version that runs on Node 20, which npm picks there without a word. It is below MinCLI, but the
// fields it lacks are those that a gateway or a later version may lack as well.
const oldCLI = "2.1.197"

// The whole of Run on what the real CLI said when it failed, in two versions of it. The fixtures come from
// TestCLIErrors -record.
func TestRecordedErrors(t *testing.T) {
	t.Parallel()
	for _, version := range []string{pinned(t), oldCLI} {
		for _, sc := range scenarios() {
			if sc.cloud != nil && version == oldCLI {
				continue
			}
			t.Run(version+"/"+sc.name, func(t *testing.T) {
				t.Parallel()
				fixture, err := filepath.Abs(filepath.Join("testdata", "errors", version, sc.name+".ndjson"))
				if err != nil {
					t.Fatal(err)
				}
				var s Spec
				b := newBench(t, "", func(c *Config) {
					s = sc.setup(c)
					c.Env["AGENT_TEST_MODE"], c.Env["AGENT_TEST_FIXTURE"] = "replay", fixture
					c.Direct = true // nothing asks the model, so a gateway would have seen nothing
				})
				if b.exitLimit = 5 * time.Second; sc.signal == syscall.SIGINT { // a CLI that was interrupted stays
					b.exitLimit = 100 * time.Millisecond
				}
				s.ID += "-" + version
				ctx, stop := context.WithCancelCause(t.Context())
				res := b.run(t, ctx, s, sc.host(t, s.ID, func() { stop(errors.New("enough")) }))
				sc.check(t, version, res)
				end := fixtureEnd(t, fixture)
				if res.ExitCode != end.Exit || res.Signal != end.Signal ||
					strings.TrimSpace(res.Stderr) != strings.TrimSpace(end.Stderr) {
					t.Errorf("exit %d %s, stderr %q; the CLI's were %+v", res.ExitCode, res.Signal, res.Stderr, end)
				}
			})
		}
	}
}

// pinned is the version of the CLI that package.json asks for. To change it, record the errors of the new version:
//
//	go test ./agent -run TestCLIErrors -record
func pinned(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile("../package.json")
	if err != nil {
		t.Fatal(err)
	}
	var p struct {
		Dependencies map[string]string `json:"dependencies"`
	}
	if err := json.Unmarshal(data, &p); err != nil {
		t.Fatal(err)
	}
	return p.Dependencies["@anthropic-ai/claude-code"]
}

// ending is the last line of a fixture.
type ending struct {
	Stderr string `json:"stderr"`
	Exit   int    `json:"exit"`
	Signal string `json:"signal"`
}

func fixtureEnd(t *testing.T, path string) (e ending) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &e); err != nil {
		t.Fatal(err)
	}
	return e
}
