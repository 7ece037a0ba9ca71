package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	"github.com/errand-fleet/errand/config"
)

var programsOfUnits = map[string]string{
	"errand-worker": "/usr/local/bin/worker", "errand-enqueue": "/usr/local/bin/enqueue serve",
}

// readUnit returns the [Service] of a unit: each setting with its values.
func readUnit(t *testing.T, name string) map[string][]string {
	t.Helper()
	f, err := os.Open("../deploy/systemd/" + name + ".service")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	options, err := unit.DeserializeOptions(f)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	service := map[string][]string{}
	for _, o := range options {
		if o.Section == "Service" {
			service[o.Name] = append(service[o.Name], o.Value)
		}
	}
	return service
}

// exposures are the highest permitted ratings of the units by `systemd-analyze security`, times ten. The worker's is
// higher because of what its sandbox and the CLI need.
var exposures = map[string]int{"errand-worker": 51, "errand-enqueue": 17}

// systemd itself finds nothing to say about the units, and rates them as before. It would miss the programs, which are
// not where the units say.
func TestUnitsAreValid(t *testing.T) {
	t.Parallel()
	for name := range programsOfUnits {
		text, err := os.ReadFile("../deploy/systemd/" + name + ".service")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), name+".service")
		there := regexp.MustCompile(`(?m)^ExecStart=\S+`).ReplaceAll(text, []byte("ExecStart=/bin/true"))
		if err := os.WriteFile(file, there, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", file).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("%s: %v (systemd-analyze is of Debian's systemd: make setup)\n%s", name, err, out)
		}
		limit := fmt.Sprint("--threshold=", exposures[name])
		if out,
			err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--no-pager", limit, file).CombinedOutput(); err != nil {
			t.Errorf("%s is rated above %d: %v\n%s", name, exposures[name], err, out)
		}
	}
}

// Only the worker gets the stop signal, with enough time; a run without memory does not end the others.
func TestUnitOfWorkerStopsInOrder(t *testing.T) {
	t.Parallel()
	worker := readUnit(t, "errand-worker")
	for setting, want := range map[string]string{
		"KillMode": "mixed", "TimeoutStopSec": fmt.Sprint(int(config.StopGrace / time.Second)), "OOMPolicy": "continue",
		"Restart": "always",
	} {
		if got := worker[setting]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q, want %q", setting, got, want)
		}
	}
}

// The unit has none of the options that break bubblewrap or the CLI, and all others.
func TestUnitOfWorkerLeavesTheSandboxAlive(t *testing.T) {
	t.Parallel()
	worker := readUnit(t, "errand-worker")
	for _, setting := range []string{
		"RestrictNamespaces", "SystemCallFilter", "ProtectProc", "ProcSubset", "ProtectKernelTunables",
		"ProtectKernelLogs", "ProtectHostname", "MemoryDenyWriteExecute", "PrivateUsers", "PrivateNetwork",
		"RootDirectory", "InaccessiblePaths",
	} {
		if worker[setting] != nil {
			t.Errorf("%s breaks the sandbox of the runs, or the CLI", setting)
		}
	}
	if families := strings.Fields(worker["RestrictAddressFamilies"][0]); !slices.Contains(families, "AF_NETLINK") {
		t.Errorf("RestrictAddressFamilies %q: bubblewrap could not set up the loopback of a run without network", families)
	}
}

// The units start what Compose starts, where Compose has it, and not as root.
func TestUnitsAreWhatComposeStarts(t *testing.T) {
	t.Parallel()
	compose := mustLoad(t, sample)
	for name, program := range programsOfUnits {
		u, service := readUnit(t, name), compose.Services[strings.TrimPrefix(name, "errand-")]
		if !strings.HasSuffix(program, "/"+strings.Join(service.Command, " ")) {
			t.Errorf("%s: Compose starts %q", name, service.Command)
		}
		for setting, want := range map[string]string{
			"ExecStart": program, "User": "errand", "EnvironmentFile": "/etc/errand/errand.env",
			"NoNewPrivileges": "yes", "CapabilityBoundingSet": "", "ProtectSystem": "strict",
			"StateDirectory": "errand", "StateDirectoryMode": "0700",
		} {
			if got := u[setting]; !slices.Equal(got, []string{want}) {
				t.Errorf("%s: %s is %q, want %q", name, setting, got, want)
			}
		}
		if want := "ERRAND_STATE_DIR=" +
			*service.Environment["ERRAND_STATE_DIR"]; !slices.Contains(u["Environment"], want) {
			t.Errorf("%s: has no %s", name, want)
		}
	}
}
