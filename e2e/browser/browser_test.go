// Package browser looks at errand as people do: in Debian's Chromium, at the pages of the programs that people run.
// `make browser` gets what
// that needs of the machine and runs the tests. Each page is looked at by day, by night and on a phone, with scripts
// and without; whatever happens in a tab that should not, such as an error in its console, a dialog, a request to
// elsewhere or something that the page's policy
// had to forbid, fails the test that opened it. A picture of each page is written to e2e/out/; -pictures writes
// those that the README shows
// (`make pictures`).
package browser

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/errand-fleet/errand/agent"
)

var (
	pictures = flag.Bool("pictures", false, "write the pictures of the README")
	bin      = flag.String("bin", "../../bin", "where errand's programs are")
)

// patience bounds each wait. It is long because a machine may be busy; nothing waits for it to pass.
const patience = time.Minute

// out is where pictures go; made is the README's.
const out, made = "../out", "../../docs/images"

// chromium is the browser of all tests.
var chromium context.Context

func TestMain(m *testing.M) {
	agent.KeeperMain()
	flag.Parse()
	os.Exit(run(m))
}

// run starts the browser and the tests.
func run(m *testing.M) int {
	path, err := exec.LookPath("chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, "chromium is missing: run make browser (or apt-get install chromium)")
		return 1
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, // the tests run as root and visit only errand
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("font-render-hinting", "none"))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, leave := chromedp.NewContext(ctx)
	defer leave()
	if err := chromedp.Do(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "start chromium:", err)
		return 1
	}
	chromium = ctx
	return m.Run()
}

func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	t.Cleanup(cancel)
	return ctx
}

// program starts one of errand's programs, which ends with the test. It returns the text after the prefixes in the
// lines that it prints
// when it is up.
func program(t *testing.T, env []string, command string, prefixes ...string) []string {
	t.Helper()
	words := strings.Fields(command)
	path, err := filepath.Abs(filepath.Join(*bin, words[0]))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, words[1:]...)
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "TMPDIR=" + os.TempDir(),
		"ERRAND_HTTP_ADDR=127.0.0.1:0", "ERRAND_WORKER_ADDR=127.0.0.1:0",
	}, env...)
	said := &strings.Builder{}
	cmd.Stderr = said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %s: %v (make build)", command, err)
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(stdout); s.Scan(); {
			lines <- strings.TrimSpace(s.Text())
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		kill := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		for range lines { // to its end
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", command, err)
		}
		kill.Stop()
		if t.Failed() {
			t.Logf("%s said:\n%s", command, said)
		}
	})
	var found []string
	for len(found) < len(prefixes) {
		select {
		case line, ok := <-lines:
			if !ok {
				t.Fatalf("%s ended before it was up", command)
			}
			if rest, is := strings.CutPrefix(line, prefixes[len(found)]); is {
				found = append(found, strings.TrimSpace(rest))
			}
		case <-limited(t).Done():
			t.Fatalf("%s did not get up", command)
		}
	}
	go func() {
		for range lines { // what it says later is of no interest
		}
	}()
	return found
}
