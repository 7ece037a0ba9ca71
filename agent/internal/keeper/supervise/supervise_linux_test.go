package supervise

import (
	"os/exec"
	"testing"
	"time"
)

// A keeper that stood still together with its worker ends the run, whatever the worker has written since: another
// may have the thread.
func TestKeeperThawed(t *testing.T) {
	t.Parallel()
	for name, away := range map[string]time.Duration{
		"for long": 2*time.Second + SilenceGrace + time.Second, "for a moment": time.Second,
	} {
		cmd := exec.Command("/bin/sleep", "600")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		s := &supervisor{
			pid: cmd.Process.Pid, order: Order{WorkerTimeout: 2 * time.Second}, checked: sinceBoot() - away,
		}
		s.heard.Store(int64(sinceBoot()))
		s.checkWorker()
		if ended := s.silence > 0 && s.stopped; ended != (name == "for long") {
			t.Errorf("%s: silent for %s, stopped %t", name, s.silence, s.stopped)
		}
		if name != "for long" {
			_ = cmd.Process.Kill()
		}
		_ = cmd.Wait()
	}
}
