package assemble

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// timeout(1) sends its signal to the process and to the process group. Taken for a second one, it would end the process
// before it has handed its runs back.
func TestSignalsThatComeTogether(t *testing.T) {
	seen := make(chan os.Signal, 1)
	signal.Notify(seen, syscall.SIGTERM)
	defer signal.Stop(seen)
	ctx := Signals(t.Context())
	for range 2 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-seen
	}
	<-ctx.Done()
}
