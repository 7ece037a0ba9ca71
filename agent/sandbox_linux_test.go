package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/errand-fleet/errand/agent/internal/keeper"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
)

// inSandbox runs a test in a sandbox. Where bubblewrap does not work, which only trying can tell, it asserts that
// nothing runs.
func inSandbox(t *testing.T, mode string, test func(t *testing.T, b *bench), change ...func(*Config)) {
	t.Helper()
	b := newBench(t, mode, append(change, func(c *Config) { c.Sandbox = SandboxBwrap })...)
	b.startLimit = time.Hour
	if path, why := b.sandbox.Path(t.Context()); path != "" {
		test(t, b)
	} else if _, err := b.Run(t.Context(), b.with(t, Spec{}), &host{}); err == nil {
		t.Errorf("a run without the sandbox it needs: %v", why)
	}
}

// inBoth runs a test without a sandbox, and in one.
func inBoth(t *testing.T, mode string, test func(t *testing.T, b *bench)) {
	t.Helper()
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		test(t, newBench(t, mode))
	})
	t.Run("bwrap", func(t *testing.T) {
		t.Parallel()
		inSandbox(t, mode, test)
	})
}

// house makes the places a worker has. It is not below the directory for temporary files, which a sandbox replaces
// as a whole.
func house(t *testing.T) string {
	t.Helper()
	root, err := os.MkdirTemp("/var/tmp", "at") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	for _, file := range []string{
		"state/clone/.env", "state/files/x", "state/mirror/object", "state/logs/x", "temp/er-other/x", "hidden/x",
		"secret/key", "else/public", "house/.pgpass", "house/bin/tool",
	} {
		path := filepath.Join(root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("content of "+file), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// With a separate program: one below the directory for temporary files would need a mount point in the run's own
	// directory.
	program, err := os.ReadFile(fake)
	if err != nil {
		t.Fatal(err)
	}
	makeProgram(t, filepath.Join(root, "cli"), program)
	return root
}

// makeProgram writes a program. A child forked meanwhile would hold the file open for writing, and it could not be
// executed.
func makeProgram(t *testing.T, path string, content []byte) {
	t.Helper()
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
}

// runIn runs a shell script as a tool of a run that is at home in such a house.
func runIn(ctx context.Context, root, script string) (string, error) {
	in := func(name string) string { return filepath.Join(root, name) }
	r, err := New(Config{
		CLI: in("cli"), LogDir: in("state/logs"), TempDir: in("temp"), Sandbox: SandboxBwrap,
		Hidden: []string{
			in("state"), in("hidden"), in("secret/key"), in("state/clone/.env"), in("not there"), in("house"),
		},
		Shown: []string{in("house/bin")},
		Env:   map[string]string{"AGENT_TEST_MODE": "shell"},
	})
	if err != nil {
		return "", err
	}
	res, err := r.Run(ctx, Spec{
		ID: "view", Dir: in("state/clone"), Files: in("state/files"), Reads: []string{in("state/mirror")},
		Prompt: Message{Text: script}, Profile: Write,
	}, &host{})
	if err == nil && res.Error != nil {
		err = res.Error
	}
	return res.Text, err
}

// A tool should read and write the same paths for every user of the worker.
func TestSandboxView(t *testing.T) {
	t.Parallel()
	t.Run("this user", func(t *testing.T) {
		t.Parallel()
		inSandbox(t, "", func(t *testing.T, _ *bench) {
			root := house(t)
			checkView(t, root, func(script string) (string, error) { return runIn(t.Context(), root, script) })
		})
	})
	t.Run("an ordinary user", func(t *testing.T) {
		t.Parallel()
		inSandbox(t, "", func(t *testing.T, _ *bench) {
			root := house(t)
			checkView(t, root, func(script string) (string, error) {
				return asOrdinary(t, root, "AGENT_TEST_MODE=ordinary", "AGENT_TEST_SCRIPT="+script)
			})
		})
	})
}

// asOrdinary runs this program as another user, whose a directory becomes, and returns its output.
func asOrdinary(t *testing.T, root string, env ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Dir, cmd.Env = "/", slices.Concat(os.Environ(), []string{"AGENT_TEST_DIR=" + root}, env)
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		own := func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, 65534, 65534))
		}
		if err := filepath.WalkDir(root, own); err != nil {
			t.Fatal(err)
		}
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ordinaryMain is a worker of another user.
func ordinaryMain() int {
	text, err := runIn(context.Background(), os.Getenv("AGENT_TEST_DIR"), os.Getenv("AGENT_TEST_SCRIPT"))
	fmt.Println(text)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func checkView(t *testing.T, root string, run func(script string) (string, error)) {
	t.Helper()
	const readOnly, denied = "Read-only file system", "Permission denied"
	checks := []struct{ command, want string }{
		{"echo x > new && cat new", "x"},
		{"echo y > $root/state/files/new && cat $root/state/files/new", "y"},
		{"for d in $HOME $TMPDIR $CLAUDE_CONFIG_DIR /tmp; do echo z > $d/x && cat $d/x; done", "z\nz\nz\nz"},
		{"cat $root/else/public", "content of else/public"},
		{"touch $root/else/x", readOnly},
		{"touch /var/tmp/x", readOnly},
		{"cat $root/state/mirror/object", "content of state/mirror/object"},
		{"touch $root/state/mirror/object", readOnly},
		{"ls $root/state", "clone\nfiles\nmirror"}, // and no logs
		{"touch $root/state/x", readOnly},
		{"ls -A $root/hidden $root/temp", "$root/hidden:\n\n$root/temp:"},
		{"cat $root/secret/key", denied},
		{"cat .env", denied},         // in the clone itself
		{"ls -A $root/house", "bin"}, // of what is hidden, what is shown
		{
			"cat $root/house/bin/tool; touch $root/house/bin/tool",
			"content of house/bin/tooltouch: cannot touch '$root/house/bin/tool': " + readOnly,
		},
		// Of processes it sees those of the run, and cannot touch the keeper.
		{"[ $(ls -d /proc/[0-9]* | wc -l) -lt 9 ] && echo few", "few"},
		{"kill -9 1; tr '\\0' '\\n' < /proc/1/cmdline | tail -n 1", keeper.Name},
		{"cat /proc/1/environ", denied},
		{"ls /proc/1/fd/6/", denied},
		// The kernel is the machine's, and root's own files in /proc/sys are its settings.
		{"echo x > /proc/sys/kernel/hostname", readOnly},
		{"touch /sys/x", readOnly},
		{"grep -h Cap /proc/self/status | cut -f 2 | sort -u", "0000000000000000"},
		{"cat /proc/self/oom_score_adj", "500"},
		// No descriptor leads out.
		{"ls -m /proc/self/fd", "0, 1, 2, 3"}, // the last is that of ls
		{"ls -l /proc/$PPID/fd | grep -c /temp", "0"},
	}
	const mark = "====\n"
	script := "root=" + root + "\n"
	for _, c := range checks {
		script += "{ " + c.command + "; } 2>&1; printf '" + mark + "'\n"
	}
	out, err := run(script)
	got := strings.Split(out, mark)
	if err != nil || len(got) <= len(checks) {
		t.Fatalf("%v\n%s", err, out)
	}
	for i, c := range checks {
		if want := strings.ReplaceAll(c.want, "$root", root); !strings.HasSuffix(strings.TrimSpace(got[i]), want) {
			t.Errorf("%s\n got %q\nwant %q", c.command, got[i], want)
		}
	}
}

// The CLI should get its TERM, what it saves then should exist, and its exit should be reported unchanged.
func TestSandboxTermIsTheCLIs(t *testing.T) {
	t.Parallel()
	inSandbox(t, "mute-hang-save-never-exit", func(t *testing.T, b *bench) {
		res := b.run(t, b.until(t, ErrLimit), Spec{}, &host{})
		if res.Outcome != Limit || res.ExitCode != 143 || res.Signal != "" || !res.Session.Holds("saved") {
			t.Errorf("result = %+v", res)
		}
	})
}

func TestSandboxWorkerKilled(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, _ *bench) {
		root := house(t)
		dir := filepath.Join(root, "state/clone")
		if err := syscall.Mkfifo(filepath.Join(dir, "alive"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(filepath.Join(root, "temp/er-other")); err != nil {
			t.Fatal(err)
		}
		killWorker(t, unique("killed-in-sandbox"), dir, filepath.Join(root, "temp"),
			"AGENT_TEST_CLI="+filepath.Join(root, "cli"), "AGENT_TEST_SANDBOX=bwrap")
	})
}

// bubblewrap's own process only waits: a run does not need it.
func TestSandboxBubblewrapKilled(t *testing.T) {
	t.Parallel()
	inSandbox(t, "ask-escape", func(t *testing.T, b *bench) {
		h := &host{permit: func(ToolRequest) Decision {
			keeper := parent(t, marked(unique("bwrap-killed"))[0])
			if err := syscall.Kill(parentOf(t, keeper), syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			return Decision{Allow: true}
		}}
		res := b.run(t, t.Context(), Spec{
			ID: unique("bwrap-killed"), Limit: time.Minute, Profile: Write, Rules: askAll,
		}, h)
		if res.Outcome != Done || !strings.Contains(res.Text, "success allow") || res.Resources.Swept != 2 {
			t.Errorf("result %+v", res)
		}
		b.gone(t)
	})
}

// The real CLI should work in a sandbox: it gets its credential, its tools are restricted, and the conversation
// continues.
func TestCLIInSandbox(t *testing.T) {
	t.Parallel()
	inSandbox(t, "", func(t *testing.T, _ *bench) {
		root, model := house(t), newModel(t)
		dir := filepath.Join(root, "state/clone")
		model.Answer("first",
			bash("echo a > a; touch "+root+"/else/x; cat "+
				root+"/state/logs/x"),
			call("Write", "file_path", filepath.Join(dir, "b"), "content", "b"),
			call("Grep", "pattern", "content", "path", dir, "output_mode", "content"),
			modelfake.Turn{Text: "one"})
		model.Answer("second", modelfake.Turn{Text: "two, after {{turns}}"})
		r := newCLI(t, model, func(c *Config) {
			// The CLI alone is shown of where it is installed.
			installed := filepath.Dir(filepath.Dir(c.CLI)) // of node_modules/.bin/claude
			c.Sandbox, c.TempDir, c.Hidden = SandboxBwrap, filepath.Join(root, "temp"),
				[]string{filepath.Join(root, "state"), installed}
		})
		h := &host{}
		first := runCLI(t, r, Spec{ID: "in-sandbox", Dir: dir, Prompt: Message{Text: "first"}, Profile: Write}, h)
		if first.Text != "one" || len(first.Session.Data) == 0 { // the CLI may leave a process that is about to end
			t.Errorf("first = %+v", first)
		}
		results := h.results()
		if len(results) != 3 || !strings.Contains(results[0], "Read-only file system") ||
			!strings.Contains(results[0], "No such file") || !strings.Contains(results[2], "content of") {
			t.Errorf("results of tools: %q", results)
		}
		for _, made := range []string{"a", "b"} {
			if _, err := os.Stat(filepath.Join(dir, made)); err != nil {
				t.Error(err)
			}
		}
		second := runCLI(t, r, Spec{
			ID: "in-sandbox-2", Dir: dir, Prompt: Message{Text: "second"}, Profile: Write, Resume: &first.Session,
		}, &host{})
		if second.Text != "two, after 2" {
			t.Errorf("second = %+v", second)
		}
		if got := model.Requests()[0].Key; got != "sk-ant-test-credential" {
			t.Errorf("the model saw key %q", got)
		}
		if h := r.Health(t.Context()); !h.OK || h.Sandbox != "bwrap" {
			t.Errorf("health = %+v", h)
		}
	})
}

// Where bubblewrap is missing or does not work, the mode decides; a remedy works at once.
func TestSandboxThatDoesNotWork(t *testing.T) {
	t.Parallel()
	path := t.TempDir()
	in := func(s Sandbox) *bench {
		return newBench(t, "talk", func(c *Config) {
			c.Sandbox, c.Getenv, c.Secrets = s, func(string) string {
				return path
			}, []string{"/etc/passwd", "/not/there"}
		})
	}
	refused := func(b *bench, want string) {
		t.Helper()
		_, err := b.Run(t.Context(), b.with(t, Spec{}), &host{})
		if e, ok := errors.AsType[*Error](err); !ok || e.Class != ClassConfig || !strings.Contains(e.Message, want) ||
			!strings.Contains(e.User, "sandbox") {
			t.Errorf("error = %v, want one about %s", err, want)
		}
		if h := b.Health(t.Context()); h.OK || h.Sandbox != "" || !strings.Contains(h.Problem, want) ||
			h.Remedy == "" || h.Error == nil {
			t.Errorf("health = %+v", h)
		}
	}
	must, not := in(SandboxBwrap), in("")
	refused(must, "not on PATH")
	not.run(t, t.Context(), Spec{}, &host{})
	h := not.Health(t.Context())
	said := strings.Join(h.Notices, ";")
	if h.Sandbox != "none" || h.Posture != Shared || !strings.Contains(said, "secrets in /etc/passwd") ||
		strings.Contains(said, "/not/there") {
		t.Errorf("health = %+v", h)
	}

	file := filepath.Join(path, "bwrap")
	makeProgram(t, file, []byte("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"))
	refused(must, "No permissions to create new namespace")

	inSandbox(t, "", func(t *testing.T, b *bench) {
		bwrap, _ := b.sandbox.Path(t.Context())
		if err := errors.Join(os.Remove(file), os.Symlink(bwrap, file)); err != nil {
			t.Fatal(err)
		}
		must.run(t, t.Context(), Spec{}, &host{})
		if h := must.Health(t.Context()); h.Sandbox != "bwrap" || h.Posture != Sandboxed || !h.Private ||
			len(h.Notices) > 0 {
			t.Errorf("health = %+v", h)
		}
	})
}
