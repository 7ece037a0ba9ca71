package agent

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The pinned CLI is the tested one, and offers what is recorded. Look at each new flag, hook and setting before you
// record a new version: it may be a way to execute something (TestCLIWaysToExecute).
//
//	go test ./agent -run TestCLISurface -record
func TestCLISurface(t *testing.T) {
	t.Parallel()
	now, err := newCLI(t, newModel(t)).Surface(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *recordFlag {
		b, err := json.MarshalIndent(now, "", "\t")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("surface.json", append(b, '\n'), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	tested, err := Tested()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(tested, now); diff != "" || pinned(t) != TestedCLI || tested.Version != TestedCLI {
		t.Errorf("pinned %s, recorded %s, tested %s, -recorded +now:\n%s", pinned(t), tested.Version, TestedCLI, diff)
	}
}

// executes matches settings by whose names the CLI may execute something.
var executes = regexp.MustCompile(`(?i)helper|hooks|command|shell|script|wrapper|authrefresh|export|mcp.*server`)

// closed says why each way to execute something that a checkout's configuration has is closed to an untrusted one:
// its settings are not loaded (TestCLIOpensKnownFilesOnly). Of a trusted one they count.
var closed = map[string][]string{
	"switches that close something, and lists of names": {
		"allowManagedHooksOnly", "allowManagedMcpServersOnly", "desktopMcpServersListScope",
		"disableAllHooks", "disableCommandPluginSources", "disableSkillShellExecution",
		"disableWindowsBashCommandSplit", "disabledMcpjsonServers", "enableAllProjectMcpServers",
		"enabledMcpjsonServers", "respondToBashCommands",
	},
	"commands that the configuration names": {
		"apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "gcpAuthRefresh", "otelHeadersHelper", "policyHelper",
		"policyHelpers", "processWrapper", "proxyAuthHelper", "sshHostCommands",
	},
	"events of hooks": {
		"ConfigChange", "CwdChanged", "DirectoryAdded", "Elicitation", "ElicitationResult", "FileChanged",
		"InstructionsLoaded", "MessageDisplay", "Notification", "PermissionDenied", "PermissionRequest", "PostCompact",
		"PostModelSwitch", "PostToolBatch", "PostToolUse", "PostToolUseFailure", "PreCompact", "PreModelSwitch",
		"PreToolUse", "SessionEnd", "SessionStart", "Setup", "Stop", "StopFailure", "SubagentStart", "SubagentStop",
		"TaskCompleted", "TaskCreated", "TeammateIdle", "UserPromptExpansion", "UserPromptSubmit", "WorktreeCreate",
		"WorktreeRemove",
	},
	"shell in the text of skills, which passes the policy (TestCLIShellInSkills)": {"PreSkillShellCommand"},
}

// A way to execute something that a new version of the CLI brings is found before a run uses it: TestCLISurface has it
// recorded.
func TestCLIWaysToExecute(t *testing.T) {
	t.Parallel()
	tested, err := Tested()
	if err != nil {
		t.Fatal(err)
	}
	ways := slices.Clone(tested.Hooks)
	for _, name := range tested.Settings {
		if executes.MatchString(name) {
			ways = append(ways, name)
		}
	}
	known := slices.Concat(slices.Collect(maps.Values(closed))...)
	slices.Sort(ways)
	slices.Sort(known)
	if diff := cmp.Diff(known, ways); diff != "" || len(ways) < 40 {
		t.Errorf("-known +now:\n%s", diff)
	}
}

// What a version has more or less than another one is named.
func TestSurfaceSince(t *testing.T) {
	t.Parallel()
	var s Surface
	program := strings.Repeat("x", 4<<20-10) + `hook_event_name:P("PreThing")` + strings.Repeat("y", 4<<20) +
		`,{subtype:q$("told"),z}{disableThing:()=>M().optional().describe("x"),other:()=>M()}`
	if err := s.read(strings.NewReader(program)); err != nil {
		t.Fatal(err)
	}
	got := s.Since(Surface{Hooks: []string{"Gone"}, Messages: []string{"told"}, Flags: []string{"--old"}})
	want := []string{"no flag --old", "new hook PreThing", "no hook Gone", "new setting disableThing"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
