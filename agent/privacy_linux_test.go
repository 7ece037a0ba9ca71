package agent

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// exposed is what a program finds out about itself.
type exposed struct {
	Dumpable int // at its beginning
	Private  bool
	Notices  []string
}

func exposedMain() int {
	var e exposed
	e.Dumpable, _ = unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if _, err := MakePrivate(); err != nil {
		return 1
	}
	r, err := New(Config{LogDir: "/", Redactor: NewRedactor(os.Getenv("AGENT_TEST_SECRET"))})
	if err != nil {
		return 2
	}
	e.Private, e.Notices = r.exposure()
	if json.NewEncoder(os.Stdout).Encode(e) != nil {
		return 3
	}
	return 0
}

// A program that its user may not read is hidden from the first instruction on, and still starts itself again. Health
// tells of one that may be read, and of other processes that hold the secrets and can be read, as an init that has the
// container's environment.
func TestExposure(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode     os.FileMode
		neighbor bool
		dumpable int
		private  bool
		notices  string
	}{
		"hidden":     {0o111, false, 0, true, ""},
		"readable":   {0o555, false, 1, true, "make root its owner, with mode 0711"},
		"a neighbor": {0o111, true, 0, false, "(sleep): make root the owner of their programs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// The kernel delivers Pdeathsig when the thread that forked ends, which other tests' threads do.
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			file := filepath.Join(t.TempDir(), "program")
			copyProgram(t, self, file)
			if err := os.Chmod(file, c.mode); err != nil {
				t.Fatal(err)
			}
			fd, err := unix.Open(file, unix.O_PATH|unix.O_CLOEXEC, 0)
			if err != nil {
				t.Fatal(err)
			}
			program := os.NewFile(uintptr(fd), file)
			defer program.Close()
			attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			if os.Geteuid() == 0 { // who may read everything
				attr.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
			}
			secret := fmt.Sprintf("AGENT_TEST_SECRET=%s-%d", strings.ReplaceAll(name, " ", "-"), os.Getpid())
			if c.neighbor {
				sleep := exec.Command("sleep", "1000")
				sleep.Env, sleep.SysProcAttr, sleep.Dir = []string{secret}, attr, "/"
				if err := sleep.Start(); err != nil {
					t.Fatal(err)
				}
				defer func() { _, _ = sleep.Process.Kill(), sleep.Wait() }()
			}
			cmd := exec.Command("/proc/self/fd/3")
			cmd.Env, cmd.ExtraFiles, cmd.SysProcAttr, cmd.Dir = []string{
				"AGENT_TEST_MODE=exposed", secret,
			}, []*os.File{program}, attr, "/"
			out, err := cmd.Output()
			var got exposed
			if jerr := json.Unmarshal(out, &got); err != nil || jerr != nil {
				t.Fatalf("%s: %v, %v", out, err, jerr)
			}
			if got.Dumpable != c.dumpable || got.Private != c.private || (c.notices == "") != (len(got.Notices) == 0) ||
				!strings.Contains(strings.Join(got.Notices, ";"), c.notices) {
				t.Errorf("%+v", got)
			}
		})
	}
}
