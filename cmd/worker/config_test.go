package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/errand-fleet/errand/cmd/internal/assemble"
)

// -print-config reports every problem that would stop the start, and prints the settings that errand.yaml puts in
// force.
func TestPrintConfigFindsWhatStopsTheStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	write := func(text string) { w.write(w.env["ERRAND_CONFIG"], text) }
	w.env["ERRAND_RUN_LIMIT"] = "soon"
	write("rules:\n  - {tool: Bsh, action: deny}\nmcp:\n  tickets: {command: x, env: {T: '{{env \"UNSET_HERE\"}}'}}\n")
	for _, args := range [][]string{{"-print-config"}, {}, {"-standalone"}} {
		var out, errs strings.Builder
		code := run(t.Context(), invocation{args, w.getenv, &out, &errs}, assemble.Options{})
		for _, want := range []string{
			"3 problems", "ERRAND_RUN_LIMIT", `rules.1 cannot work: unknown tool "Bsh"`, "UNSET_HERE is not set",
		} {
			if code != 1 || !strings.Contains(errs.String(), want) {
				t.Errorf("%q exits with %d, without %s: %s", args, code, want, errs.String())
			}
		}
	}
	delete(w.env, "ERRAND_RUN_LIMIT")
	write("repositories: {acme/a: {}, acme/b: {}}\nbudgets: {day: 200}\n")
	var out, errs strings.Builder
	code := run(t.Context(), invocation{[]string{"-print-config"}, w.getenv, &out, &errs}, assemble.Options{})
	if code != 0 || errs.Len() > 0 ||
		!strings.Contains(out.String(), "\n# "+w.env["ERRAND_CONFIG"]+": repositories (2), budgets\n") {
		t.Errorf("exit %d: %s%s", code, errs.String(), out.String())
	}
}

// -print-config reports a missing sandbox, and root, in the same list as the rest.
func TestPrintConfigChecksContainment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["ERRAND_SANDBOX"], w.env["PATH"], w.env["ERRAND_RUN_LIMIT"] = "auto", t.TempDir(), "soon"
	delete(w.env, "ERRAND_ALLOW_ROOT")
	want := []string{"ERRAND_RUN_LIMIT", "there is no sandbox: bwrap is not on PATH", "set ERRAND_SANDBOX=none"}
	if os.Geteuid() == 0 {
		want = append(want, "3 problems",
			"agents could read what only root can; run it as an ordinary user, or set ERRAND_ALLOW_ROOT=true")
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-print-config")
	cmd.Args[0] = underTest
	for name, value := range w.env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	out, err := cmd.CombinedOutput()
	for _, words := range want {
		if err == nil || !strings.Contains(string(out), words) {
			t.Errorf("%v, without %q: %s", err, words, out)
		}
	}
}

// A setting with a wrong name is reported with the likely right one beside the printed configuration. TestNotices of
// package assemble has what the log and the fleet's health say.
func TestUnknownSettings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["ERRAND_RUN_LIMT"] = "1h"
	const want = "ERRAND_RUN_LIMT is not a setting of errand and has no effect"
	printed := func(more ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-print-config")
		cmd.Args[0] = underTest
		var errs strings.Builder
		for name, value := range w.env {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
		cmd.Env = append(cmd.Env, more...)
		cmd.Stderr = &errs
		_, err := cmd.Output()
		return errs.String(), err
	}
	if errs, err := printed(); err != nil || errs != "worker: warning: "+want+"; did you mean ERRAND_RUN_LIMIT?\n" {
		t.Errorf("%v: %s", err, errs)
	}
	if errs, err := printed("ERRAND_GRACE=1s"); err == nil || strings.Count(errs, "ERRAND_GRACE") != 1 {
		t.Errorf("with a former setting: %v: %s", err, errs)
	}
}
