package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"github.com/errand-fleet/errand/agent"
	"github.com/errand-fleet/errand/internal/redisserver/redistest"
	"github.com/errand-fleet/errand/store"
	"github.com/errand-fleet/errand/tasks"
	"github.com/errand-fleet/errand/tasks/taskstest"
)

const (
	repoRoot     = "../.."
	docsToken    = "correct-horse-battery"
	hookSecret   = "the-secret-of-the-hook-of-the-docs"
	documentDoor = "https://errand.example.com" // of the documents, for which the test's own front door stands in
)

// tools are the programs that commands of documents use for real. Everything else is a stand-in or does not exist.
var tools = []string{
	"awk", "cat", "claude", "cp", "curl", "cut", "date", "env", "find", "grep", "install", "ln", "mkdir", "node",
	"openssl", "rm", "sha256sum", "sort", "tee", "touch", "xargs",
}

// standIns replace programs that need another system, an account, or minutes. Each is a function of bash. All of them
// record the call, which docs_elsewhere_linux_test.go checks.
const standIns = `
record() { { printf '%s' "$PWD"; printf '\037%s' "$@"; printf '\0'; } >>"$CALLS"; }
command_not_found_handle() { record unknown "$@"; return 127; }
enqueue() { (exec -a enqueue-under-test "$ENQUEUE" "$@"); }
bin/enqueue() { enqueue "$@"; }
sudo() { "$@"; }
docker() {
  record docker "$@"
  while [ $# -gt 1 ]; do shift; if [ "$1" = enqueue ] && [ "${2-}" = enqueue ]; then shift; "$@"; return; fi; done
  echo ID
}
curl() { command curl -sf "$@"; }
kubectl() {
  record kubectl "$@"
  while [ $# -gt 1 ]; do shift; if [ "$1" = -- ]; then shift; "$@"; return; fi; done
  echo ID
}
apt-get() {
  record apt-get "$@"
  case "$*" in *errand_*) install -d "$ROOT"/{opt/errand,etc/errand} && cp package.json package-lock.json .npmrc "$ROOT/opt/errand" ;; *redis*) mkdir -p "$ROOT/etc/redis" ;; esac
}
git() {
  record git "$@"
  case "$1" in clone) ln -s "$CHECKOUT" errand ;; rev-parse) echo abcdef0 ;; esac
}
`

// recorded are the programs of which the stand-in only records the call, and prints a line for a filter to find.
var recorded = []string{
	"errand-demo", "helm", "journalctl", "make", "npm", "scripts/mention-files", "sysctl", "systemctl",
	"systemd-analyze", "useradd",
}

// written are the files that the documents leave to the reader.
var written = []string{"errand.env", "errand.yaml", "front-door.env", "shared.env", "values.yaml", "worker.env"}

// machine is what the commands of a document find.
type machine struct {
	url  string // of the front door
	home string // logged in to it
	path string // of the tools
	root string // for the system's directories
}

// section is what a document has under one heading: shell commands that continue one another.
type section struct{ doc, heading, script string }

// TestDocsCommandsRun runs every shell command of the documents. Commands of errand are real, and so are those of the
// system that write files, below a directory that stands for the root. For the stand-ins see checkCall.
func TestDocsCommandsRun(t *testing.T) {
	t.Parallel()
	m := machine{url: startDocsDoor(t), home: t.TempDir(), path: toolbox(t)}
	login := exec.CommandContext(t.Context(), "/proc/self/exe", "login", m.url)
	login.Args[0], login.Env, login.Stdin = underTest, []string{"HOME=" + m.home}, strings.NewReader(docsToken+"\n")
	if out, err := login.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, file := range documents(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			m := m
			m.root = fakeRoot(t)
			for _, s := range sections(t, file) {
				for _, c := range m.run(t, s) {
					if err := checkCall(t, c); err != nil {
						t.Errorf("%s, %s: %s: %v", s.doc, s.heading, strings.Join(c.args, " "), err)
					}
				}
			}
		})
	}
}

// documents returns the Markdown files for readers.
func documents(t *testing.T) (found []string) {
	t.Helper()
	for _, pattern := range []string{
		"*.md", "docs/*.md", "docs/decisions/*.md", "bench/*.md", "deploy/*.md", "deploy/*/*.md", "deploy/*/*/*.md",
	} {
		files, err := filepath.Glob(filepath.Join(repoRoot, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			found = append(found, strings.TrimPrefix(f, repoRoot+"/"))
		}
	}
	if len(found) < 30 {
		t.Fatalf("found %q", found)
	}
	return found
}

// sections returns the shell commands of a document. Those in a block of another kind would not be found, so the kinds
// are limited.
func sections(t *testing.T, file string) (all []section) {
	t.Helper()
	source := []byte(read(t, repoRoot, file))
	heading, before := "", ""
	err := ast.Walk(goldmark.New().Parser().Parse(text.NewReader(source)),
		func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if !entering || n.Type() != ast.TypeBlock {
				return ast.WalkContinue, nil
			}
			script, shell := string(n.Lines().Value(source)), false
			switch n := n.(type) {
			case *ast.Heading:
				heading = script
			case *ast.CodeBlock: // indented
				shell = true
			case *ast.FencedCodeBlock:
				language := string(n.Language(source))
				shell = language == "sh"
				if !shell && !slices.Contains([]string{"", "go", "json", "mermaid", "nginx", "yaml"}, language) {
					t.Errorf("%s: a block of %q: use sh for commands", file, language)
				}
				if program := regexp.MustCompile(`(?m)^(\$ |sudo |(bin/)?enqueue |make |docker |kubectl |curl ).*`).FindString(script); !shell && program != "" {
					t.Errorf("%s: %q is in a block that is not marked as sh", file, program)
				}
			}
			if !shell {
				return ast.WalkContinue, nil
			}
			if before != heading {
				all = append(all, section{doc: file, heading: heading})
				before = heading
			}
			all[len(all)-1].script += script
			return ast.WalkContinue, nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// call is what a stand-in has recorded.
type call struct {
	dir  string
	args []string
}

// rooted are the directories of the system that documents write to.
var rooted = regexp.MustCompile(`([ =])/(etc|opt|usr/local)/`)

// run runs the commands of a section in a checkout and returns the calls of the stand-ins. Standard input is a token,
// for the only command that asks for something.
func (m machine) run(t *testing.T, s section) (calls []call) {
	t.Helper()
	dir := checkout(t)
	recordings := filepath.Join(t.TempDir(), "calls")
	script := strings.ReplaceAll(s.script, documentDoor, m.url)
	script = strings.ReplaceAll(script, " && ", "\n") // of which bash -e would ignore the failures
	script = rooted.ReplaceAllString(script, "$1"+m.root+"/$2/")
	var b strings.Builder
	b.WriteString("set -euo pipefail\n" + standIns)
	for _, program := range recorded {
		fmt.Fprintf(&b, "%s() { record %[1]s \"$@\"; echo ID; }\n", program)
	}
	b.WriteString(script)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", b.String())
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(docsToken+"\n")
	cmd.Env = []string{
		"PATH=" + m.path, "HOME=" + m.home, "TZ=UTC", "CHECKOUT=" + dir, "CALLS=" + recordings, "ROOT=" + m.root,
		"ENQUEUE=/proc/" + fmt.Sprint(os.Getpid()) + "/exe", "ALERTS_HOOK_SECRET=" + hookSecret, "NO_COLOR=1",
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s, %s: %v\n%s\n%s", s.doc, s.heading, err, s.script, out)
	}
	data, err := os.ReadFile(recordings)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for one := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		if dir, args, found := strings.Cut(one, "\x1f"); found {
			calls = append(calls, call{dir, strings.Split(strings.ReplaceAll(args, m.root, ""), "\x1f")})
		}
	}
	return calls
}

// checkout makes a directory with links to the files of this one, with what is built and what the reader writes.
func checkout(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	top, err := filepath.Abs(repoRoot)
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(top)
	for _, f := range files {
		if !slices.Contains([]string{".env", ".git", "bin", "errand.yaml"}, f.Name()) && err == nil {
			err = os.Symlink(filepath.Join(top, f.Name()), filepath.Join(dir, f.Name()))
		}
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, "bin"), 0o700)
	}
	for _, name := range append([]string{"bin/enqueue", "bin/errand-keeper", "bin/worker"}, written...) {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), nil, 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// fakeRoot has the directories that a system has.
func fakeRoot(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"etc/sysctl.d", "etc/systemd/system", "usr/local/bin", "opt"} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// toolbox returns a directory with only the real programs that documents may use.
func toolbox(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, tool := range tools {
		program, err := exec.LookPath(tool)
		if err == nil {
			err = os.Symlink(program, filepath.Join(dir, tool))
		}
		if err != nil {
			t.Fatalf("%v (make setup installs it)", err)
		}
	}
	return dir
}

// startDocsDoor starts `enqueue serve` with the hook of docs/automation.md, and a worker that answers every task.
func startDocsDoor(t *testing.T) (url string) {
	t.Helper()
	redisURL := redistest.Start(t)
	_, hooks, _ := strings.Cut(read(t, repoRoot, "docs/automation.md"), "```yaml\nhooks:\n")
	hooks, _, found := strings.Cut(hooks, "```")
	file := filepath.Join(t.TempDir(), "errand.yaml")
	if err := os.WriteFile(file, []byte("hooks:\n"+hooks), 0o600); err != nil || !found {
		t.Fatalf("docs/automation.md has no hook: %v", err)
	}
	door := exec.CommandContext(t.Context(), "/proc/self/exe")
	door.Args[0] = doorUnderTest
	door.Env = []string{
		"REDIS_URL=" + redisURL, "ERRAND_ALLOW_OPEN_REDIS=true", "ERRAND_HTTP_ADDR=127.0.0.1:0",
		"ERRAND_CONSOLE_TOKEN=" + docsToken, "ERRAND_STATE_DIR=" + t.TempDir(), "ERRAND_CONFIG=" + file,
		"ALERTS_HOOK_SECRET=" + hookSecret,
	}
	var log strings.Builder
	door.Stderr = &log
	stdout, err := door.StdoutPipe()
	if err == nil {
		err = door.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var worker sync.WaitGroup
	t.Cleanup(func() {
		stop()
		worker.Wait()
		_ = door.Process.Kill()
		_ = door.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("the front door does not start: %v", err)
	}
	w := docsWorker(t, redisURL)
	worker.Go(func() { answerAll(ctx, w) })
	return strings.TrimSpace(strings.TrimPrefix(line, "errand listens at "))
}

func docsWorker(t *testing.T, redisURL string) taskstest.Worker {
	t.Helper()
	rdb := redistest.Client(t, redisURL)
	s, err := store.New(store.Config{Redis: rdb})
	if err == nil {
		err = beat(t.Context(), s)
	}
	if err != nil {
		t.Fatal(err)
	}
	return taskstest.Worker{T: t, Store: s}
}

func beat(ctx context.Context, s *store.Store) error {
	_, err := s.Workers.Beat(ctx, store.Worker{ID: "w1", Slots: 2})
	return err
}

// answerAll is alive, and answers what waits, until ctx ends.
func answerAll(ctx context.Context, w taskstest.Worker) {
	for ctx.Err() == nil {
		err := beat(ctx, w.Store)
		live, lerr := w.Store.Live(ctx)
		if err != nil || lerr != nil {
			return
		}
		for _, r := range live {
			w.End(w.Claim(r.ID), tasks.Ending{Kind: tasks.Answered, Result: agent.Result{Text: "Done."}})
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Text in the documents names only targets of the Makefile and commands of enqueue that exist. TestDocsCommandsRun runs
// what is in blocks.
func TestDocsNameWhatExists(t *testing.T) {
	t.Parallel()
	makefile := read(t, repoRoot, "Makefile")
	known := map[string]bool{"help": true, "completion": true}
	for _, c := range newRoot(newTerminal(world{getenv: func(string) string { return "" }})).Commands() {
		known[c.Name()] = true
	}
	for _, file := range documents(t) {
		if file == "docs/roadmap.md" { // names what does not exist yet
			continue
		}
		for _, m := range regexp.MustCompile("`(make|enqueue) ([a-z][a-z-]*)").FindAllStringSubmatch(read(t,
			repoRoot, file), -1) {
			if m[1] == "make" && !strings.Contains(makefile, "\n"+m[2]+":") || m[1] == "enqueue" && !known[m[2]] {
				t.Errorf("%s: there is no %s %s", file, m[1], m[2])
			}
		}
	}
}
