//go:build container

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/errand-fleet/errand/internal/await"
	"github.com/errand-fleet/errand/internal/fake/modelfake"
	"github.com/errand-fleet/errand/internal/redisserver"
)

// engine starts containers of the Compose file's worker with runc, as Docker does: with the image's user, no
// capabilities, a read-only root, and what `security_opt` says. The programs are this checkout's, everything else is
// this machine's. The network is the machine's, for the fakes.
type engine struct {
	*testing.T

	dir     string // with the root directory of the containers
	service types.ServiceConfig
	model   *modelfake.Server
}

// newEngine needs root and runc.
func newEngine(t *testing.T) *engine {
	t.Helper()
	if _, err := exec.LookPath("runc"); err != nil || os.Geteuid() != 0 {
		t.Fatal("this needs root and runc, such as the Debian package runc")
	}
	dir, err := os.MkdirTemp("/var/tmp", "errand-container") //nolint:usetesting // a container has its own /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // users of containers must get through
		t.Fatal(err)
	}
	e := &engine{T: t, dir: dir, service: mustLoad(t, sample).Services["worker"], model: modelfake.New()}
	t.Cleanup(e.model.Close)
	for _, place := range []string{
		"usr", "etc", "proc", "dev", "sys", "run", "tmp", "opt/errand/node_modules", "opt/bin", "var/lib/errand", "home", "root",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "root", place), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "root/tmp"), 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	for _, link := range []string{"bin", "lib", "lib64", "sbin"} {
		if err := os.Symlink("usr/"+link, filepath.Join(dir, "root", link)); err != nil {
			t.Fatal(err)
		}
	}
	build := exec.Command("go", "build", "-buildvcs=false", "-o", filepath.Join(dir, "root/opt/bin")+"/", "./cmd/worker",
		"./agent/cmd/errand-keeper")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, program := range []string{"worker", "errand-keeper"} {
		if err := os.Chmod(filepath.Join(dir, "root/opt/bin", program), 0o711); err != nil {
			t.Fatal(err)
		}
	}
	return e
}

// oci is a part of an OCI configuration.
type oci = map[string]any

// container is a started container.
type container struct {
	cmd   *exec.Cmd
	ended chan struct{} // is closed when err is set
	err   error
	mu    sync.Mutex
	out   bytes.Buffer
}

func (c *container) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

func (c *container) said() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.String()
}

// over reports whether the container has ended.
func (c *container) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// start starts a command with further variables in a container. change changes its OCI configuration.
func (e *engine) start(name string, env []string, change func(oci), command ...string) *container {
	e.Helper()
	bundle := filepath.Join(e.dir, name)
	volume := filepath.Join(bundle, "state")
	if err := errors.Join(os.MkdirAll(volume, 0o700), os.Chown(volume, 10001, 10001)); err != nil {
		e.Fatal(err)
	}
	text, err := json.Marshal(e.config(volume, env, change, command))
	if err == nil {
		err = os.WriteFile(filepath.Join(bundle, "config.json"), text, 0o600)
	}
	if err != nil {
		e.Fatal(err)
	}
	id := filepath.Base(e.dir) + "-" + name
	c := &container{ended: make(chan struct{}), cmd: exec.Command("runc", "--root", filepath.Join(e.dir, "runc"), "run", "--bundle", bundle, id)}
	c.cmd.Stdout, c.cmd.Stderr = c, c
	e.Cleanup(func() {
		_ = exec.Command("runc", "--root", filepath.Join(e.dir, "runc"), "delete", "--force", id).Run()
	})
	e.run(name, c)
	return c
}

// run starts the command of a container, which ends with the test. If the test fails, it shows what the command said.
func (e *engine) run(name string, c *container) {
	e.Helper()
	if err := c.cmd.Start(); err != nil {
		e.Fatal(err)
	}
	go func() { c.err = c.cmd.Wait(); close(c.ended) }()
	e.Cleanup(func() {
		if e.Failed() {
			e.Logf("%s said:\n%s", name, c.said())
		}
		_ = c.cmd.Process.Signal(syscall.SIGTERM) // runc passes it on
		late := time.AfterFunc(time.Minute, func() { _ = c.cmd.Process.Kill() })
		<-c.ended
		late.Stop()
	})
}

// show shows the results of tools in requests to the model, if the test has failed.
func (e *engine) show(requests string) {
	e.Helper()
	if !e.Failed() {
		return
	}
	for _, part := range strings.Split(requests, "tool_result")[1:] {
		e.Log(part[:min(len(part), 600)])
	}
}

// config returns the OCI configuration of a container.
func (e *engine) config(volume string, env []string, change func(oci), command []string) oci {
	e.Helper()
	spec := exec.Command("runc", "spec")
	spec.Dir = e.TempDir()
	if out, err := spec.CombinedOutput(); err != nil {
		e.Fatalf("%v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(spec.Dir, "config.json"))
	config := oci{}
	if err == nil {
		err = json.Unmarshal(text, &config)
	}
	if err != nil {
		e.Fatal(err)
	}
	process, linux := config["process"].(oci), config["linux"].(oci)
	process["terminal"], process["args"], process["cwd"] = false, command, "/var/lib/errand"
	process["env"] = append([]string{
		"PATH=/opt/bin:/opt/errand/node_modules/.bin:/usr/bin", "ANTHROPIC_API_KEY=sk-ant-container",
		"ANTHROPIC_BASE_URL=" + e.model.URL(), "ERRAND_CONFIG=/dev/null",
	}, env...)
	for _, name := range []string{"ERRAND_STATE_DIR", "ERRAND_SANDBOX"} {
		process["env"] = append(process["env"].([]string), name+"="+*e.service.Environment[name])
	}
	process["user"] = oci{"uid": 10001, "gid": 10001}
	process["capabilities"] = oci{}
	config["root"] = oci{"path": filepath.Join(e.dir, "root"), "readonly": true}
	cli, err := exec.LookPath("claude") // of npm, as in the image
	if err != nil {
		e.Fatal(err)
	}
	bind := func(from, to, how string) oci {
		return oci{"type": "bind", "source": from, "destination": to, "options": []string{"rbind", how}}
	}
	config["mounts"] = append(config["mounts"].([]any), bind("/usr", "/usr", "ro"), bind("/etc", "/etc", "ro"),
		bind(filepath.Dir(filepath.Dir(cli)), "/opt/errand/node_modules", "ro"), bind(volume, "/var/lib/errand", "rw"),
		oci{"type": "tmpfs", "source": "tmpfs", "destination": "/tmp", "options": []string{"nosuid"}})
	linux["namespaces"] = []oci{{"type": "pid"}, {"type": "ipc"}, {"type": "uts"}, {"type": "mount"}}
	delete(linux, "resources")
	e.secure(process, linux)
	if change != nil {
		change(config)
	}
	return config
}

// secure applies `security_opt` as Docker does.
func (e *engine) secure(process, linux oci) {
	e.Helper()
	process["noNewPrivileges"] = false
	for _, option := range e.service.SecurityOpt {
		switch name, value, _ := strings.Cut(option, "="); {
		case option == "no-new-privileges:true":
			process["noNewPrivileges"] = true
		case option == "systempaths=unconfined":
			delete(linux, "maskedPaths")
			delete(linux, "readonlyPaths")
		case option == "apparmor=unconfined":
		case name == "seccomp":
			text, err := os.ReadFile(filepath.Join("..", value))
			profile := oci{}
			if err == nil {
				err = json.Unmarshal(text, &profile)
			}
			if err != nil {
				e.Fatal(err)
			}
			linux["seccomp"] = profile
		default:
			e.Fatalf("nothing here knows the option %q", option)
		}
	}
}

func TestContainer(t *testing.T) {
	t.Parallel()
	e := newEngine(t)
	t.Run("sandboxed", func(t *testing.T) { e.in(t).hasSandbox() })
	t.Run("once", func(t *testing.T) { e.in(t).leavesNothing() })
	t.Run("refused", func(t *testing.T) { e.in(t).forbidsSandbox() })
}

// in returns the engine for a subtest.
func (e *engine) in(t *testing.T) *engine {
	t.Helper()
	one := *e
	one.T = t
	return &one
}

// The worker of the Compose file, in a container like Docker's, starts with a sandbox, says so, and runs a task in it.
// The agent's commands see no other process and cannot do what the container's profile refuses.
func (e *engine) hasSandbox() {
	e.Helper()
	const look = `echo workers: $(cat /proc/[0-9]*/comm | grep -c '^worker$'); touch /opt/mine; ls /var/lib/errand/logs; ` +
		`python3 -c 'import ctypes; c = ctypes.CDLL(None); print("io_uri" + "ng", c.syscall(425, 1, 0), "names" + "paces", c.unshare(0x10000000))'`
	e.model.Answer("where are you?",
		modelfake.Turn{Tools: bash(look)},
		modelfake.Turn{Text: "I am in the sandbox."})
	c := e.start("sandboxed", []string{
		"ERRAND_CONSOLE_TOKEN=container-token-0123456789", "ERRAND_HTTP_ADDR=127.0.0.1:0",
		"ERRAND_WORKER_ADDR=127.0.0.1:0",
	}, nil, "worker", "-standalone")
	base := e.console(c)
	if said := c.said(); !strings.Contains(said, `"posture":"sandboxed"`) {
		e.Fatalf("the start does not say the posture:\n%s", said)
	}
	if answer := e.ask(base, "where are you?"); !strings.Contains(answer, "I am in the sandbox.") {
		e.Fatalf("the answer is %s\n%s", answer, c.said())
	}
	if said := c.said(); strings.Contains(said, "runs are not fully contained") || strings.Contains(said, "environments are copied") {
		e.Errorf("something is missing:\n%s", said)
	}
	var seen strings.Builder
	for _, r := range e.model.Requests() {
		seen.Write(r.Body)
	}
	for _, want := range []string{
		"workers: 0", "/opt/mine': Read-only file system", "/var/lib/errand/logs': No such file",
		"io_uring -1 namespaces -1",
	} {
		if !strings.Contains(seen.String(), want) {
			e.Errorf("the agent saw no %q:\n%s", want, seen.String())
		}
	}
}

// console returns the address that a program with everything in it prints.
func (e *engine) console(c *container) (base string) {
	e.Helper()
	await.Until(e, "the console's address", func() bool {
		_, rest, found := strings.Cut(c.said(), "console  ")
		base, _, _ = strings.Cut(rest, "/login?")
		return found && strings.Contains(rest, "/login?") || c.over()
	})
	return base
}

// ask sends a message to the chat and returns what it streams.
func (e *engine) ask(base, message string) string { return e.askIn(base, "", message) }

// askIn is ask about a repository, if one is named.
func (e *engine) askIn(base, repo, message string) string {
	e.Helper()
	ctx := await.Context(e)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/api/chat",
		strings.NewReader(fmt.Sprintf(`{"message": %q, "repo": %q}`, message, repo)))
	if err != nil {
		e.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer container-token-0123456789")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		e.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		e.Fatal(err)
	}
	return string(text)
}

// mask covers parts of /proc, as engines do.
func mask(config oci) { config["linux"].(oci)["maskedPaths"] = []string{"/proc/kcore", "/proc/keys"} }

// The commands of two agents. The first leaves a word wherever it can, and a process; the second searches for it, for
// what is in the first one's repository, and for credentials. The first searches, too, so that what the second does not
// find could be found. No command contains what it searches for in one piece.
const (
	leave = `for place in /tmp /dev/shm /var/lib/errand /var/lib/errand/workspace "$HOME"; do echo hush-marker >$place/left; done
mkdir /tmp/locked; echo hush-marker >/tmp/locked/file; chmod 0 /tmp/locked
setsid sh -c 'while sleep 1; do :; done; echo hush-marker' >/dev/null 2>&1 &
python3 -c 'import ctypes; c = ctypes.CDLL(None); print("shared memo" + "ry", c.shmget(0x6875, 4096, 0o1666) >= 0,
c.semget(0x6875, 1, 0o1666) >= 0, c.msgget(0x6875, 0o1666) >= 0, c.mq_open(b"/hush-queue", 0o102, 0o666, None) >= 0)'
`
	collect = `word=hush-mar''ker; secret=sk-ant-cont''ainer; token=ghp_te''st; plan=%s''%s; git init -q /tmp/any
places="/tmp /dev/shm /dev/mqueue /var/lib/errand /var/tmp /run $HOME"
echo "%[3]s fi""les: $(grep -rlsa -e $word -e $secret -e $token -e $plan $places 2>/dev/null | wc -l)"
echo "%[3]s obj""ects: $(find $places -type d -name objects 2>/dev/null | while read -r dir; do GIT_OBJECT_DIRECTORY=$dir git -C /tmp/any cat-file --batch --batch-all-objects; done | grep -ca $plan)"
seen=$(cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' '\n')
echo "%[3]s proc""esses: $(echo "$seen" | grep -cae $word -e $secret -e $token)"
echo "%[3]s mem""ory: $(cat /proc/sysvipc/shm /proc/sysvipc/sem /proc/sysvipc/msg | awk '$1 == 26741' | wc -l) $(ls /dev/mqueue | grep -c hush-queue)"
ls -A /tmp /dev/shm`
)

// A worker takes one task in a container that forbids the sandbox, exits with 0, and starts again in the same pod, whose
// directories and shared memory stay. The second agent finds nothing of the first.
func (e *engine) leavesNothing() {
	e.Helper()
	s := e.surround()
	env := append(s.contained(), "REDIS_URL="+e.redis())
	door := e.start("door", env, nil, "worker", "-front-door")
	var base string
	await.Until(e, "the front door", func() bool {
		_, rest, listens := strings.Cut(door.said(), "errand listens at ")
		base, _, _ = strings.Cut(rest, "\n")
		return listens && strings.Contains(rest, "\n") || door.over()
	})
	search := func(who string) string { return fmt.Sprintf(collect, s.marker[:9], s.marker[9:], who) }
	for _, turn := range []struct{ ask, repo, command string }{
		{"leave it", "acme/secret", leave + search("first")}, {"collect it", "acme/payments", search("second")},
	} {
		e.model.Answer(turn.ask, modelfake.Turn{Tools: bash(turn.command)}, modelfake.Turn{Text: "Done."})
		c := e.start("pod", env, e.pod, "worker", "-once", "-empty=/var/lib/errand:/tmp:/dev/shm:/dev/mqueue")
		await.Until(e, "the worker's start", func() bool { return strings.Contains(c.said(), "worker started") || c.over() })
		if c.over() {
			e.Fatalf("to %s: %v\n%s", turn.ask, c.err, c.said())
		}
		answer := e.askIn(base, turn.repo, turn.ask)
		await.Until(e, "the end of the worker", c.over)
		if said := c.said(); c.err != nil || !strings.Contains(answer, "Done.") ||
			!strings.Contains(said, `"posture":"one task per container"`) {
			e.Fatalf("to %s: %v, answer %s\n%s", turn.ask, c.err, answer, said)
		}
	}
	e.compare(map[string]bool{
		"shared memory True True True True": true,
		"first files: [1-9]":                true, "first objects: [1-9]": true, "first processes: [1-9]": true, "first memory: 3 1": true,
		"second files: 0": true, "second objects: 0": true, "second processes: 0": true, "second memory: 0 0": true,
	})
}

// compare compares what the agents have seen with patterns of what they should, or should not.
func (e *engine) compare(expected map[string]bool) {
	e.Helper()
	var seen strings.Builder
	for _, r := range e.model.Requests() {
		seen.Write(r.Body)
	}
	for pattern, want := range expected {
		if regexp.MustCompile(pattern).MatchString(seen.String()) != want {
			e.Errorf("the agents saw %q: %t", pattern, !want)
		}
	}
	e.show(seen.String())
}

// redis starts a Redis and returns its address.
func (e *engine) redis() string {
	e.Helper()
	ctx := await.Context(e)
	path, found := redisserver.Find()
	if !found {
		e.Fatal("redis-server is missing")
	}
	redis, err := redisserver.Start(ctx, redisserver.Config{Path: path, Dir: e.TempDir()})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = redis.Stop(context.WithoutCancel(ctx)) })
	return redis.URL()
}

// pod makes a container like that of a pod: it cannot have a sandbox, and what it can write stays for the next one.
func (e *engine) pod(config oci) {
	e.Helper()
	mask(config)
	linux := config["linux"].(oci)
	linux["namespaces"] = []oci{{"type": "pid"}, {"type": "uts"}, {"type": "mount"}}
	kept := map[string]string{"/tmp": "tmp", "/dev/shm": "shm"}
	var mounts []any
	for _, m := range config["mounts"].([]any) {
		if at, _ := m.(oci)["destination"].(string); kept[at] != "" {
			dir := filepath.Join(e.dir, "pod", kept[at])
			if err := errors.Join(os.MkdirAll(dir, 0o777), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
				e.Fatal(err)
			}
			m = oci{"type": "bind", "source": dir, "destination": at, "options": []string{"rbind", "rw"}}
		}
		mounts = append(mounts, m)
	}
	config["mounts"] = mounts
}

// In a container that forbids the sandbox the worker does not start, and says what the container needs.
func (e *engine) forbidsSandbox() {
	e.Helper()
	for name, c := range map[string]struct {
		change func(config oci)
		want   string
	}{
		"masked": {mask, "procMount: Unmasked"},
		"filtered": {func(config oci) {
			config["linux"].(oci)["seccomp"] = oci{
				"defaultAction": "SCMP_ACT_ALLOW", "architectures": []string{"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"},
				"syscalls": []oci{
					{"names": []string{"clone3"}, "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
					{"names": []string{"clone", "unshare"}, "action": "SCMP_ACT_ERRNO", "args": []oci{
						{"index": 0, "value": 0x10000000, "valueTwo": 0x10000000, "op": "SCMP_CMP_MASKED_EQ"},
					}},
				},
			}
		}, "deploy/seccomp.json"},
	} {
		started := e.start(name, []string{"REDIS_URL=redis://:pw@127.0.0.1:1/0"}, c.change, "worker")
		await.Until(e, "the end of the container "+name, started.over)
		if said := started.said(); started.err == nil || !strings.Contains(said, "ERRAND_SANDBOX is auto, and there is no sandbox") ||
			!strings.Contains(said, c.want) || !strings.Contains(said, "ERRAND_SANDBOX=none") {
			e.Errorf("%s: %v\n%s", name, started.err, said)
		}
	}
}
